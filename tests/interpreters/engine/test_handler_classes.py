"""Handlers as methods of a class, marked with ``handles``; a mistake raises an error at once."""

from typing import Any

import anyio
import pytest

from lifefold.core.kernel import Aggregate
from lifefold.effects import (
    Activity,
    CancelSession,
    Effect,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    PrepareWorktree,
    RunSession,
    StorePrompt,
)
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, handles


class Desk:
    """Handlers of one effect, of two, and of an activity."""

    def __init__(self) -> None:
        self.heard: list[Effect | Activity] = []

    @handles(LogFatal)
    async def page(self, effect: LogFatal, _occasion: EffectContext) -> None:
        self.heard.append(effect)

    @handles(CancelSession, ForceStopSession)
    async def end(self, effect: Effect, _occasion: EffectContext) -> None:
        self.heard.append(effect)

    @handles(PrepareWorktree)
    async def prepare(self, activity: PrepareWorktree, _ongoing: ActivityContext) -> None:
        self.heard.append(activity)


def test_the_marked_methods_are_the_handlers() -> None:
    """By the types that they are marked with; they are bound to the object."""
    desk = Desk()
    made = Interpreter.of(desk)
    assert made.effects == {LogFatal: desk.page, CancelSession: desk.end, ForceStopSession: desk.end}
    assert made.activities == {PrepareWorktree: desk.prepare}

    async def perform() -> None:
        await made.effects[LogFatal](LogFatal("no key"), EffectContext(Aggregate("worker/ann"), "session", 1, 0))

    anyio.run(perform)
    assert desk.heard == [LogFatal("no key")]


def test_an_override_needs_no_mark_and_may_have_another() -> None:
    """A subclass performs the same in its own way, or something else with it."""

    class Quiet(Desk):
        async def page(self, effect: LogFatal, _occasion: EffectContext) -> None: ...

        @handles(CancelSession, ForceStopSession, StorePrompt)
        async def end(self, effect: Effect, _occasion: EffectContext) -> None: ...

    quiet = Quiet()
    assert Interpreter.of(quiet).effects == dict.fromkeys((CancelSession, ForceStopSession, StorePrompt), quiet.end) | {
        LogFatal: quiet.page
    }


def test_only_what_is_wanted_can_be_taken_of_it() -> None:
    """So one effect can be replaced by an interpreter that has handlers for more."""
    desk = Desk()
    some = Interpreter.of(desk).only({LogFatal, PrepareWorktree})
    assert (some.effects, some.activities) == ({LogFatal: desk.page}, {PrepareWorktree: desk.prepare})


def test_two_methods_for_one_type_are_one_too_many() -> None:
    """It would be ambiguous."""

    class Both(Desk):
        @handles(LogFatal)
        async def call(self, effect: LogFatal, _occasion: EffectContext) -> None: ...

    with pytest.raises(TypeError, match="Both: both page and call handle LogFatal; accepted: one of them"):
        Interpreter.of(Both())


def test_an_object_without_handlers_is_no_interpreter() -> None:
    """A decorator was forgotten."""
    with pytest.raises(TypeError, match=r"object has no handlers: mark methods, such as @handles\(LogFatal\)"):
        Interpreter.of(object())


@pytest.mark.parametrize(
    "kinds",
    [(), (str,), (LogFatal("x"),), (LogFatal, PrepareWorktree), (Effect | Activity,)],
    ids=["nothing", "no effect", "not a type", "both", "a union"],
)
def test_only_types_of_effects_or_of_activities_are_handled(kinds: tuple[type[Effect], ...]) -> None:
    """It is told where the class is written; no method takes both, which come with different things."""
    with pytest.raises(TypeError, match="accepted: types of effects, or types of activities, at least one"):
        handles(*kinds)


def test_a_handler_that_is_not_async_is_told_where_it_is_written() -> None:
    """And not when the first effect comes."""

    def sync(_self: object, _effect: StorePrompt, _occasion: EffectContext) -> None: ...

    forgotten: Any = sync
    with pytest.raises(TypeError, match="handles StorePrompt, and is no coroutine function: write async def"):
        handles(StorePrompt)(forgotten)


def not_async(*_given: object) -> None:
    """Be no coroutine function."""


@pytest.mark.parametrize("override", [not_async, None], ids=["no coroutine function", "nothing"])
def test_an_override_that_is_not_async_is_told_with_its_name(override: object) -> None:
    """When the interpreter is made, and not when the first effect comes."""
    wrong = type("Wrong", (Desk,), {"end": override})
    told = "Wrong.end handles CancelSession, and is no coroutine function: write async def"
    with pytest.raises(TypeError, match=f"^{told}$"):
        Interpreter.of(wrong())


class Typed:
    """Handlers whose types are those that they are marked with, alone or together."""

    @handles(CancelSession, ForceStopSession)
    async def end(self, effect: CancelSession | ForceStopSession, _occasion: EffectContext) -> None:
        """Take either."""

    @handles(LogFatal, StorePrompt, IncrementSession)
    async def write(self, effect: LogFatal | StorePrompt | IncrementSession, _occasion: EffectContext) -> None:
        """Take any of three."""

    @handles(PrepareWorktree, RunSession)
    async def begin(self, activity: PrepareWorktree | RunSession, _ongoing: ActivityContext) -> None:
        """Take either activity."""


def test_a_method_may_be_typed_with_all_that_it_handles() -> None:
    """Type checkers take a union for two types, and for three; the checks of the types of this file hold that."""
    typed = Typed()
    made = Interpreter.of(typed)
    assert made.effects[ForceStopSession] == typed.end
    assert made.effects[IncrementSession] == typed.write
    assert made.activities == dict.fromkeys((PrepareWorktree, RunSession), typed.begin)
