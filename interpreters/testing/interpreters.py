"""The conformance kit for interpreters: checks that any set of handlers must pass.

A check is an async function that takes a ``Bench``. A bench has an interpreter in a new environment, an example of
each effect and activity, and a way to observe the results. A check returns if the handlers have the property in its
docstring, and raises ``AssertionError`` otherwise. ``INTERPRETER_CHECKS`` has them all; ``InterpreterConformance`` is
a class of tests made of them.

Only a user can know which activities end by themselves: a check that needs one takes an example with ``ends``.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import ClassVar, Final, Protocol

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from lifefold.core.kernel import Aggregate, Does, Event, System
from lifefold.effects import Activity, Begin, Effect
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, Unreached

PATIENCE_S: Final = 30.0
"""The time within which a handler must return, in seconds."""


class Example(msgspec.Struct, frozen=True):
    """An effect or an activity, for an entity of an aggregate.

    ``ends`` is whether the activity comes to an end by itself. ``under_way`` returns when the activity is well under
    way in the outside world: a further moment at which checks cancel it.
    """

    what: Effect | Activity
    within: Aggregate
    ref: str
    ends: bool = False
    under_way: Callable[[], Awaitable[object]] | None = None


class Bench(Protocol):
    """The environment of an interpreter: new for each check."""

    @property
    def system(self) -> System:
        """The system that it serves."""
        ...

    @property
    def interpreter(self) -> Interpreter:
        """The handlers."""
        ...

    @property
    def examples(self) -> Sequence[Example]:
        """At least one example of each effect and of each activity."""
        ...

    async def look(self) -> object:
        """Return the observable results of the handlers, as a value for comparisons."""
        ...


InterpreterCheck = Callable[[Bench], Awaitable[None]]
"""Raises ``AssertionError`` if handlers do not have the property in its docstring."""


class Recorded(ActivityContext):
    """The context of an activity in a check: reports are kept, and accepted."""

    def __init__(self, bench: Bench, example: Example, *, resumed: bool = False, cleanup_only: bool = False) -> None:
        """Begin the activity of an example."""
        activity = example.what
        assert isinstance(activity, Activity), f"{activity!r} is no activity"
        slot = type(activity).__name__
        begin = Begin(slot, activity, generation=1, resumed=resumed)
        super().__init__(begin, EffectContext(example.within, example.ref, 1, 0), cleanup_only=cleanup_only)
        self.reported: Final[list[Event]] = []
        self.heard: Final = anyio.Event()
        machine = bench.system.type_of(example.within.name).machines[example.ref.partition(":")[0]]
        during = machine.spans[slot].during
        assert isinstance(during, Does), f"{slot} is a timer"
        self.yields: Final = during.yields
        self.last: Final = during.last

    async def report(self, event: Event) -> bool:
        """Accept a report, unless an earlier one has ended the activity."""
        await checkpoint()
        if self.is_over:
            return False
        self.reported.append(event)
        self.heard.set()
        return True

    @property
    def is_over(self) -> bool:
        """Whether an event was reported that ends the activity."""
        return any(isinstance(each, self.last) for each in self.reported)


async def perform(bench: Bench, context: ActivityContext) -> None:
    """Run the handler of an activity until it returns."""
    activity = context.begin.activity
    with anyio.move_on_after(PATIENCE_S) as scope:
        await bench.interpreter.activities[type(activity)](activity, context)
    assert not scope.cancelled_caught, f"the handler of {context.begin.slot} has not returned in {PATIENCE_S} s"


Moment = int | Callable[[], Awaitable[object]] | None
"""The moment at which an activity is cancelled: after so many turns of the event loop, or at the return of a call.

None is after its first report, or its end.
"""


async def perform_until(bench: Bench, context: Recorded, moment: Moment, *, ending: bool) -> None:
    """Run the handler of an activity until this moment, and cancel it."""

    async def work() -> None:
        try:
            await perform(bench, context)
        finally:
            context.heard.set()

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            if isinstance(moment, int):
                for _ in range(moment):
                    await checkpoint()
            else:
                await (context.heard.wait if moment is None else moment)()
            context.ending = ending
            tasks.cancel_scope.cancel()


MOMENTS: Final[tuple[int | None, ...]] = (0, 1, 2, 5, 20, 100, None)
"""The moments at which every activity is cancelled; a further one is when it is under way, if its example has that."""


def interrupted(bench: Bench) -> Iterator[tuple[Example, Moment]]:
    """Yield the examples of activities, each with the moments at which it is cancelled."""
    for example in bench.examples:
        if isinstance(example.what, Activity):
            says = any(kind not in Recorded(bench, example).last for kind in Recorded(bench, example).yields)
            yield from ((example, moment) for moment in MOMENTS if moment is not None or says or example.ends)
            if example.under_way is not None:
                yield example, example.under_way


def at(moment: Moment) -> str:
    """Return a moment in words."""
    if isinstance(moment, int):
        return f"after {moment} turns"
    return "after a report" if moment is None else "when it was under way"


async def everything_has_a_handler(bench: Bench) -> None:
    """Every effect and activity of the system has a handler."""
    bench.interpreter.must_serve(bench.system)


async def an_effect_comes_to_the_same_when_it_is_performed_again(bench: Bench) -> None:
    """An effect that is performed twice under one identity, as after a crash, has the result of one."""
    for number, example in enumerate(bench.examples):
        if isinstance(effect := example.what, Effect):
            handler = bench.interpreter.effects[type(effect)]
            origin = EffectContext(example.within, example.ref, example.within.version, number)
            await _performed(handler(effect, origin))
            once = await bench.look()
            await _performed(handler(effect, origin))
            assert await bench.look() == once, f"{effect!r} has another result when it is performed again"


async def _performed(work: Awaitable[None]) -> None:
    """Perform an effect; one that reaches no activity does nothing and raises an error."""
    with suppress(Unreached):
        await work


async def an_activity_reports_what_it_yields_and_how_it_is_over(bench: Bench) -> None:
    """A handler that returns by itself has reported an event that ends the activity, and only its own events."""
    for example in (each for each in bench.examples if each.ends):
        context = Recorded(bench, example)
        await perform(bench, context)
        strange = [event for event in context.reported if not isinstance(event, context.yields)]
        assert not strange, f"{context.begin.slot} reports {strange!r}, which it does not yield"
        assert context.is_over, f"{context.begin.slot} has returned, and reported no end: {context.reported!r}"


async def an_activity_that_is_ended_leaves_nothing(bench: Bench) -> None:
    """A handler that is cancelled because its end was requested returns, and nothing is left, at any moment."""
    for example, moment in interrupted(bench):
        before = await bench.look()
        await perform_until(bench, Recorded(bench, example), moment, ending=True)
        assert await bench.look() == before, f"{example.what!r} has left something, ended {at(moment)}"


async def what_a_crash_has_left_is_ended(bench: Bench) -> None:
    """A handler for cleanup only starts nothing that stays, returns, and leaves nothing."""
    for example, moment in interrupted(bench):
        before = await bench.look()
        await perform_until(bench, Recorded(bench, example), moment, ending=False)
        await perform(bench, Recorded(bench, example, resumed=True, cleanup_only=True))
        assert await bench.look() == before, f"{example.what!r}, left over by a crash {at(moment)}, is not gone"


async def what_a_crash_has_interrupted_goes_on(bench: Bench) -> None:
    """A handler that is called again after a crash comes to an end of the activity."""
    for example, moment in interrupted(bench):
        first, again = Recorded(bench, example), Recorded(bench, example, resumed=True)
        await perform_until(bench, first, moment, ending=False)
        if example.ends and not first.is_over:
            await perform(bench, again)
            said = f"{again.reported!r}"
            assert again.is_over, f"{again.begin.slot}, resumed after a crash {at(moment)}, comes to no end: {said}"
        else:
            await perform(bench, Recorded(bench, example, resumed=True, cleanup_only=True))


INTERPRETER_CHECKS: Final[tuple[InterpreterCheck, ...]] = (
    everything_has_a_handler,
    an_effect_comes_to_the_same_when_it_is_performed_again,
    an_activity_reports_what_it_yields_and_how_it_is_over,
    an_activity_that_is_ended_leaves_nothing,
    what_a_crash_has_left_is_ended,
    what_a_crash_has_interrupted_goes_on,
)


class InterpreterConformance:
    """Tests of your interpreter: subclass it in a test module, with a fixture ``bench`` that gives a ``Bench``.

    ``backend`` is the event loop: "asyncio" or "trio".
    """

    backend: ClassVar[str] = "asyncio"

    @pytest.mark.parametrize("check", INTERPRETER_CHECKS, ids=[check.__name__ for check in INTERPRETER_CHECKS])
    def test_the_interpreter_keeps_the_property(self, check: InterpreterCheck, bench: Bench) -> None:
        """The docstring of each check states the property."""
        anyio.run(check, bench, backend=self.backend)
