"""The kit for interpreters: every mistake that handlers can make is found by a check that is named for it."""

import inspect
from collections.abc import Sequence
from typing import Any, Final

import anyio
import pytest
from anyio.lowlevel import checkpoint

import kiln
from kiln import Announce, Fire, Fired, Kiln
from lifefold.core.kernel import Aggregate, Created, Envelope, Reaction, System, react
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, MissingHandlersError
from lifefold.interpreters.testing import INTERPRETER_CHECKS, Bench, Example, InterpreterConformance, interpreters


class Hearth:
    """A world with fires that outlive their handlers."""

    def __init__(self) -> None:
        self.burning: set[int] = set()
        self.said: dict[tuple[str, int, int], str] = {}

    async def announce(self, effect: Announce, context: EffectContext) -> None:
        await checkpoint()
        self.said[context.identity] = effect.word

    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        if context.cleanup_only:
            await self.put_out(activity)
            return
        self.burning.add(activity.firing)
        try:
            for _ in range(3):
                await checkpoint()
        except anyio.get_cancelled_exc_class():
            if context.ending:
                await self.put_out(activity)
            raise
        self.burning.discard(activity.firing)
        await self.say(context)

    async def put_out(self, activity: Fire) -> None:
        self.burning.discard(activity.firing)

    async def say(self, context: ActivityContext) -> None:
        await context.report(Fired(1))

    @property
    def interpreter(self) -> Interpreter:
        return Interpreter({Announce: self.announce}, {Fire: self.fire})


class HasNoHandler(Hearth):
    @property
    def interpreter(self) -> Interpreter:
        return Interpreter({}, {Fire: self.fire})


class SaysItAgain(Hearth):
    async def announce(self, effect: Announce, context: EffectContext) -> None:
        self.said[("", 0, len(self.said))] = effect.word
        await checkpoint()
        del context


class SaysNothing(Hearth):
    async def say(self, context: ActivityContext) -> None:
        del context


class SaysSomethingElse(Hearth):
    async def say(self, context: ActivityContext) -> None:
        await context.report(kiln.Cooled())
        await super().say(context)


class LeavesItBurning(Hearth):
    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        self.burning.add(activity.firing)
        await super().fire(activity, context)
        self.burning.discard(activity.firing)

    async def put_out(self, activity: Fire) -> None:
        del activity


class LeavesItBurningOnceItIsStoked(Hearth):
    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        if context.cleanup_only:
            await self.put_out(activity)
            return
        self.burning.add(activity.firing)
        try:
            for _ in range(200):
                await checkpoint()
        except anyio.get_cancelled_exc_class():
            if context.ending:
                await self.put_out(activity)
            raise
        await context.report(kiln.Stoked())
        await checkpoint()
        self.burning.discard(activity.firing)
        await self.say(context)


class ForgetsWhatIsLeft(Hearth):
    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        if not context.cleanup_only:
            await super().fire(activity, context)


class WillNotGoOn(Hearth):
    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        if not context.resumed or context.cleanup_only:
            await super().fire(activity, context)


class LeavesItBurningOnceItRoars(Hearth):
    """Cannot be found out by counting turns of the event loop: the fire is elsewhere, and takes its time."""

    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        if context.cleanup_only:
            return
        for _ in range(300):
            await checkpoint()
        self.burning.add(activity.firing)
        for _ in range(300):
            await checkpoint()
        self.burning.discard(activity.firing)
        await self.say(context)


MISTAKES: Final[dict[str, tuple[type[Hearth], ...]]] = {
    "everything_has_a_handler": (HasNoHandler,),
    "an_effect_comes_to_the_same_when_it_is_performed_again": (SaysItAgain,),
    "an_activity_reports_what_it_yields_and_how_it_is_over": (SaysNothing, SaysSomethingElse),
    "an_activity_that_is_ended_leaves_nothing": (
        LeavesItBurning,
        LeavesItBurningOnceItIsStoked,
        LeavesItBurningOnceItRoars,
    ),
    "what_a_crash_has_left_is_ended": (ForgetsWhatIsLeft, LeavesItBurningOnceItRoars),
    "what_a_crash_has_interrupted_goes_on": (WillNotGoOn,),
}
"""For each check, handlers that make a mistake it is for."""


def burning() -> Aggregate:
    """Return a kiln that burns."""
    of, aggregate = kiln.system.aggregates["kiln"], kiln.system.aggregates["kiln"].start("kiln/a")
    for event in (Created(Kiln()), kiln.Lit()):
        outcome = react(of, aggregate, Envelope("kiln", event, 0))
        assert isinstance(outcome, Reaction)
        aggregate = outcome.aggregate
    return aggregate


class Workshop:
    """The bench for a hearth."""

    def __init__(self, hearth: Hearth) -> None:
        self.system: System = kiln.system
        self.hearth = hearth
        self.interpreter = hearth.interpreter
        within = burning()
        self.examples: Sequence[Example] = (
            Example(Announce("lit 1"), within, "kiln"),
            Example(Fire(1), within, "kiln", ends=True),
            Example(Fire(2), within, "kiln", ends=True, under_way=self.roars),
        )

    async def roars(self) -> None:
        for _ in range(500):
            if 2 in self.hearth.burning:
                return
            await checkpoint()

    async def look(self) -> object:
        return frozenset(self.hearth.burning), dict(self.hearth.said)


@pytest.fixture
def bench() -> Bench:
    return Workshop(Hearth())


class TestOnAsyncio(InterpreterConformance):
    """Sound handlers pass."""


class TestOnTrio(InterpreterConformance):
    """On the other event loop, too."""

    backend = "trio"


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check, each) for check in INTERPRETER_CHECKS for each in MISTAKES[check.__name__]],
    ids=lambda each: str(each.__name__),
)
def test_a_check_finds_the_mistake_that_it_is_for(check: Any, mistake: type[Hearth]) -> None:
    """Handlers with the mistake fail it."""
    with pytest.raises((AssertionError, MissingHandlersError)):
        anyio.run(check, Workshop(mistake()))


def test_the_kit_has_every_check() -> None:
    """No check of the kit's module is left out of its list, and each says what it guarantees."""
    functions = [each for _, each in inspect.getmembers(interpreters, inspect.iscoroutinefunction)]
    written = {each for each in functions if list(inspect.signature(each).parameters) == ["bench"]}
    assert set(INTERPRETER_CHECKS) == written
    assert all(check.__doc__ for check in INTERPRETER_CHECKS)
