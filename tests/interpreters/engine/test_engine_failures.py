"""Handlers and rules that raise do not end the engine: errors are retried, reported, skipped, or quarantined."""

from typing import Any, Never

import anyio
import pytest

from engine_harness import Pottery, never
from kiln import Announce, Called, Doused, Fire, Heat, Lit
from lifefold.core.kernel import (
    EntityReleased,
    Envelope,
    Event,
    HandlerFailed,
    Machine,
    Reaction,
    Record,
    Refusal,
    State,
    Step,
    after,
    alone,
    row,
)
from lifefold.interpreters.engine import (
    SKIP,
    STOP,
    ActivityContext,
    EffectContext,
    Engine,
    Interpreter,
    OnError,
    Then,
    handles,
)
from lifefold.interpreters.store import MemoryStore, Shelf, StoreError

pytestmark = pytest.mark.anyio


class Flaky:
    """A handler that raises some times before it does its work."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.calls = 0

    async def announce(self, _effect: Announce, context: EffectContext) -> None:
        if context.within.name != "kiln/a":
            return
        self.calls += 1
        if self.calls <= self.times:
            raise OSError(f"no line, {self.calls}")

    def over(self, pottery: Pottery, policy: OnError | None = None) -> Interpreter:
        declared: dict[type, OnError] = {} if policy is None else {Announce: policy}
        return Interpreter({Announce: self.announce}, on_error=declared).over(pottery.hands.interpreter())


async def failures(pottery: Pottery) -> list[tuple[int, str]]:
    """Return the failures in the log: the attempt, and what followed."""
    return [(each.attempt, each.then) for each in await pottery.events() if isinstance(each, HandlerFailed)]


async def pass_time(pottery: Pottery, times: int) -> None:
    """Let it be the next time that the engine waits for, so many times."""
    for _ in range(times):
        pottery.clock.set(pottery.clock.now_ms() + 60_000)
        await pottery.quiet()


async def test_an_effect_that_fails_is_performed_again_after_a_pause(pottery: Pottery) -> None:
    """The engine goes on meanwhile; the attempts stand in the log."""
    flaky = Flaky(2)
    async with pottery.running("a", "b", interpreter=flaky.over(pottery)):
        await pottery.say(Called("one"))
        assert (flaky.calls, await failures(pottery)) == (1, [(1, "retry")])
        await pottery.take(Lit(), to="kiln/b")
        await pass_time(pottery, 2)
        assert (flaky.calls, await failures(pottery)) == (3, [(1, "retry"), (2, "retry")])
        await pottery.take(Called("two"))
        assert flaky.calls == 4


async def test_a_restarted_engine_continues_the_count_of_attempts(pottery: Pottery) -> None:
    """The attempts of an earlier engine are in the log: a restart does not reset the count."""
    flaky = Flaky(100)
    for calls in (1, 2):
        async with pottery.running(interpreter=flaky.over(pottery, OnError(retries=2))):
            if calls == 1:
                await pottery.say(Called("one"))
            assert flaky.calls == calls
    async with pottery.running(interpreter=flaky.over(pottery, OnError(retries=2))) as engine:
        assert await failures(pottery) == [(1, "retry"), (2, "retry"), (3, "quarantine")]
        why = "the handler of Announce has failed 3 times: OSError: no line, 3"
        assert engine.quarantined == {("kiln/a", "kiln"): why}


async def test_an_entity_whose_handler_fails_for_good_is_quarantined_until_it_is_released(pottery: Pottery) -> None:
    """It takes nothing, also after a restart; the others go on, and when it is released so does it."""
    flaky = Flaky(1)
    policy = OnError(retries=0)
    async with pottery.running("a", "b", interpreter=flaky.over(pottery, policy)):
        await pottery.say(Called("one"))
    async with pottery.running(interpreter=flaky.over(pottery, policy)) as engine:
        outcome = await pottery.say(Lit())
        assert isinstance(outcome, Refusal)
        assert (outcome.kind, flaky.calls) == ("quarantined", 1)
        await pottery.take(Called("two"), to="kiln/b")
        await pottery.take(EntityReleased(), Lit())
        assert (engine.quarantined, pottery.entity.state) == ({}, Heat.FIRING)


async def test_what_is_to_be_skipped_is_skipped(pottery: Pottery) -> None:
    """What comes after it is performed, and nothing is quarantined."""
    flaky = Flaky(1)
    policy = OnError(retries=0, then=Then.SKIP)
    async with pottery.running(interpreter=flaky.over(pottery, policy)) as engine:
        await pottery.take(Called("one"), Called("two"))
        assert (flaky.calls, engine.quarantined) == (2, {})
        assert await failures(pottery) == [(1, "skip")]
    assert SKIP.then is Then.SKIP


async def test_an_error_can_be_reported_as_an_event(pottery: Pottery) -> None:
    """The entity decides what follows from it."""
    flaky = Flaky(1)

    def lit(effect: Announce, error: Exception) -> Event:
        assert (effect.word, str(error)) == ("one", "no line, 1")
        return Lit()

    policy = OnError(retries=0, then=Then.REPORT, report=lit)
    async with pottery.running(interpreter=flaky.over(pottery, policy)):
        await pottery.take(Called("one"))
        assert pottery.entity.state is Heat.FIRING


@pytest.mark.parametrize("error", [OSError("no line"), StoreError("no disk")], ids=["declared", "of the store"])
async def test_an_engine_can_be_stopped_by_an_error(pottery: Pottery, error: Exception) -> None:
    """By policy, and by a store that fails whatever the policy is."""

    async def announce(_effect: Announce, _occasion: EffectContext) -> None:
        raise error

    policy = STOP if isinstance(error, OSError) else OnError()
    dying = Interpreter({Announce: announce}, on_error={Announce: policy}).over(pottery.hands.interpreter())
    with pytest.RaisesGroup(type(error), flatten_subgroups=True):
        async with pottery.running(interpreter=dying):
            await pottery.say(Called("one"))
            await pottery.quiet()


async def test_an_activity_that_fails_is_begun_again_and_looks_what_is_there(pottery: Pottery) -> None:
    """Its handler is called as after a crash; when it fails for good its end is seen to, and confirmed."""
    called: list[str] = []

    async def fire(_activity: Fire, context: ActivityContext) -> None:
        called.append("cleanup_only" if context.cleanup_only else "resumed" if context.resumed else "new")
        if not context.cleanup_only:
            raise OSError("damp")

    damp = Interpreter(activities={Fire: fire}, on_error={Fire: OnError(retries=1)})
    async with pottery.running(interpreter=damp.over(pottery.hands.interpreter())) as engine:
        await pottery.say(Lit())
        await pass_time(pottery, 1)
        assert called == ["new", "resumed", "cleanup_only"]
        assert list(engine.quarantined) == [("kiln/a", "kiln")]
        assert pottery.entity.running == ()


async def test_the_end_of_an_activity_may_be_asked_for_while_it_waits_to_be_tried_again(pottery: Pottery) -> None:
    """Then all that is wanted of its handler is the end."""
    called: list[str] = []

    async def fire(_activity: Fire, context: ActivityContext) -> None:
        called.append("cleanup_only" if context.cleanup_only else "new")
        if not context.cleanup_only:
            raise OSError("damp")

    damp = Interpreter(activities={Fire: fire}).over(pottery.hands.interpreter())
    async with pottery.running(interpreter=damp):
        await pottery.take(Lit(), Doused())
        assert called == ["new", "cleanup_only"]
        assert pottery.entity.running == ()


def test_a_policy_is_declared_where_a_handler_is() -> None:
    """It goes with the handler when interpreters are composed; what does not go together is refused."""

    class Bell:
        @handles(Announce, on_error=SKIP)
        async def ring(self, effect: Announce, context: EffectContext) -> None:
            """Ring."""

    bell = Interpreter.of(Bell())

    async def other(_effect: Announce, _occasion: EffectContext) -> None:
        """Do nothing."""

    plain = Interpreter({Announce: other})
    assert bell.on_error == bell.over(plain).on_error == bell.only({Announce}).on_error == {Announce: SKIP}
    assert plain.over(bell).on_error == bell.only(()).on_error == {}
    unusable: tuple[dict[str, Any], ...] = ({"then": Then.REPORT}, {"report": _is_lit}, {"retries": -1})
    for wrong in unusable:
        with pytest.raises(ValueError, match=r"^OnError: "):
            OnError(**wrong)
    assert [OnError().pause_ms(attempt) for attempt in (1, 2, 3, 7, 1_000)] == [1_000, 2_000, 4_000, 60_000, 60_000]


def _is_lit(_effect: Any, _error: Exception) -> Lit:
    """Report an error as something else."""
    return Lit()


class Door(State):
    """Where a door is."""

    CLOSED = "Closed"
    OPEN = "Open"


class Pushed(Event, frozen=True):
    """It is pushed, so hard."""

    force: int = 1


class Shut(Event, frozen=True):
    """It is to be closed."""


class Lobby(Record, frozen=True):
    """A door, and how hard it was pushed."""

    state: Door = Door.CLOSED
    force: int = 1


def push(lobby: Lobby, event: Pushed) -> Step[Lobby, Never]:
    """Divide the force."""
    return Step(Lobby(lobby.state, 10 // event.force))


def close(lobby: Lobby, _event: Shut) -> Step[Lobby, Never]:
    """Divide it again, which a weak one is not fit for."""
    return Step(Lobby(lobby.state, 10 // (lobby.force - 5)))


lobby = Machine(
    "lobby",
    Lobby(),
    rows=(row(Door.CLOSED, Pushed, Door.OPEN, push), row(Door.OPEN, Shut, Door.CLOSED, close)),
    during={Door.OPEN: after(1, Shut)},
)
system, opening = alone(lobby)
PUSHED = "row(Closed, Pushed(force), Open)"
BY_ZERO = "integer division or modulo by zero"


async def test_an_input_whose_action_raises_is_refused_and_leaves_no_trace() -> None:
    """The sender is told the row, the state and the event; the log folds, and the engine goes on."""
    shelf = Shelf()
    engine = Engine(system, MemoryStore(shelf), Interpreter())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.run, never)
        assert isinstance(await engine.send("lobby", opening["lobby"]), Reaction)
        outcome = await engine.send("lobby", Envelope("lobby", Pushed(0), 0))
        assert isinstance(outcome, Refusal)
        assert (outcome.kind, outcome.reason) == (
            "failed",
            f"lobby: lobby in Closed, Pushed, {PUSHED}: ZeroDivisionError: {BY_ZERO} (in push)",
        )
        assert len(shelf.entries) == 1
        tasks.cancel_scope.cancel()


async def test_an_entity_whose_timer_raises_is_quarantined() -> None:
    """No sender is there to be told; it does not raise again at every restart."""
    shelf = Shelf()
    engine = Engine(system, MemoryStore(shelf), Interpreter())
    engine.offer("lobby", opening["lobby"])
    engine.offer("lobby", Envelope("lobby", Pushed(2), 0))
    with anyio.fail_after(60):
        await engine.run(lambda each: bool(each.quarantined))
    why = engine.quarantined["lobby", "lobby"]
    assert why.startswith("lobby in Open, TimerFired, row(Open, Shut, Closed): ZeroDivisionError")
    again = Engine(system, MemoryStore(shelf), Interpreter())
    with anyio.fail_after(60):
        await again.run(lambda each: each.aggregates["lobby"].version == 4)
    assert again.quarantined == engine.quarantined
