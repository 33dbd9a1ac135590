"""What every interpreter must do, as checks that a set of handlers can be put through: yours, too.

A check is an async function that takes a ``Bench``: an interpreter in surroundings that are new, with an example of
everything that it is asked to do, and a way to look at what it has done. It returns if the handlers keep the property
in the check's docstring, and raises ``AssertionError`` if they do not. ``INTERPRETER_CHECKS`` has them all;
``InterpreterConformance`` is a class of tests made of them.

Which activities end by themselves only a user can know; a check that needs one takes those whose example says so.
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
"""How long a handler may take until it has returned."""


class Example(msgspec.Struct, frozen=True):
    """Something to be performed: an effect, or an activity, for an entity of an aggregate as it is then.

    ``ends`` is whether the activity comes to an end by itself, so that it may be waited for. ``under_way`` returns when
    the activity is well under way, in the world outside: another moment at which it is then cancelled.
    """

    what: Effect | Activity
    within: Aggregate
    ref: str
    ends: bool = False
    under_way: Callable[[], Awaitable[object]] | None = None


class Bench(Protocol):
    """Surroundings that an interpreter works in: new for each check."""

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
        """One example at least of each effect and of each activity that is to be looked at."""
        ...

    async def look(self) -> object:
        """Return what the handlers have done in the world and what is left of it, as something that can be compared."""
        ...


InterpreterCheck = Callable[[Bench], Awaitable[None]]
"""Raises ``AssertionError`` if handlers do not keep the property in its docstring."""


class Recorded(ActivityContext):
    """An activity in a check: what is reported is kept, and taken."""

    def __init__(self, bench: Bench, example: Example, *, resumed: bool = False, cleanup_only: bool = False) -> None:
        """Let the activity of an example begin."""
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
        """Take what is reported; nothing after that with which the activity is over."""
        await checkpoint()
        if self.is_over:
            return False
        self.reported.append(event)
        self.heard.set()
        return True

    @property
    def is_over(self) -> bool:
        """Whether an event was reported with which the activity is over."""
        return any(isinstance(each, self.last) for each in self.reported)


async def perform(bench: Bench, context: ActivityContext) -> None:
    """Let the handler of an activity do its work, until it returns."""
    activity = context.begin.activity
    with anyio.move_on_after(PATIENCE_S) as scope:
        await bench.interpreter.activities[type(activity)](activity, context)
    assert not scope.cancelled_caught, f"the handler of {context.begin.slot} has not returned in {PATIENCE_S} s"


Moment = int | Callable[[], Awaitable[object]] | None
"""When an activity is cancelled: after so many turns of the event loop, when something has returned, or (None) when it
has reported something, or is over."""


async def perform_until(bench: Bench, context: Recorded, moment: Moment, *, ending: bool) -> None:
    """Let the handler of an activity work until this moment, and cancel it."""

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
"""When every activity is cancelled, and again when it is under way, if its example says when that is."""


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
    return "when it said something" if moment is None else "when it was under way"


async def everything_has_a_handler(bench: Bench) -> None:
    """There is a handler for everything that the system can ask for."""
    bench.interpreter.must_serve(bench.system)


async def an_effect_comes_to_the_same_when_it_is_performed_again(bench: Bench) -> None:
    """Performed twice under one identity, as after a crash, an effect has done what it has done once."""
    for number, example in enumerate(bench.examples):
        if isinstance(effect := example.what, Effect):
            handler = bench.interpreter.effects[type(effect)]
            occasion = EffectContext(example.within, example.ref, example.within.version, number)
            await _performed(handler(effect, occasion))
            once = await bench.look()
            await _performed(handler(effect, occasion))
            assert await bench.look() == once, f"{effect!r} comes to more when it is performed again"


async def _performed(work: Awaitable[None]) -> None:
    """Perform an effect; one that reaches no activity does nothing, and says so."""
    with suppress(Unreached):
        await work


async def an_activity_reports_what_it_yields_and_how_it_is_over(bench: Bench) -> None:
    """A handler that has returned by itself has reported an event with which the activity is over, and only its own."""
    for example in (each for each in bench.examples if each.ends):
        context = Recorded(bench, example)
        await perform(bench, context)
        strange = [event for event in context.reported if not isinstance(event, context.yields)]
        assert not strange, f"{context.begin.slot} reports {strange!r}, which it does not yield"
        assert context.is_over, f"{context.begin.slot} has returned, and reported no end: {context.reported!r}"


async def an_activity_that_is_ended_leaves_nothing(bench: Bench) -> None:
    """A handler that is cancelled because its end was asked for returns, and nothing is left, whenever that is."""
    for example, moment in interrupted(bench):
        before = await bench.look()
        await perform_until(bench, Recorded(bench, example), moment, ending=True)
        assert await bench.look() == before, f"{example.what!r} has left something, ended {at(moment)}"


async def what_a_crash_has_left_is_ended(bench: Bench) -> None:
    """A handler that is called for what is left over begins nothing that stays, returns, and leaves nothing."""
    for example, moment in interrupted(bench):
        before = await bench.look()
        await perform_until(bench, Recorded(bench, example), moment, ending=False)
        await perform(bench, Recorded(bench, example, resumed=True, cleanup_only=True))
        assert await bench.look() == before, f"{example.what!r}, left over by a crash {at(moment)}, is not gone"


async def what_a_crash_has_interrupted_goes_on(bench: Bench) -> None:
    """A handler that is called again after a crash comes to an end with which the activity is over."""
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
    """Tests of an interpreter of yours: subclass it in a test module, with a fixture ``bench`` that gives a ``Bench``.

    ``backend`` is the event loop: "asyncio" or "trio".
    """

    backend: ClassVar[str] = "asyncio"

    @pytest.mark.parametrize("check", INTERPRETER_CHECKS, ids=[check.__name__ for check in INTERPRETER_CHECKS])
    def test_the_interpreter_keeps_the_property(self, check: InterpreterCheck, bench: Bench) -> None:
        """Each check says in its docstring what it asks of handlers."""
        anyio.run(check, bench, backend=self.backend)
