"""``run`` loads and resumes by itself; calls of an engine in the wrong order raise an error that says what to do."""

import anyio
import pytest

import kiln
from engine_harness import START_MS, Pottery, TappedStore, never
from kiln import Called, Doused, Heat, Lit
from lifefold.core.kernel import (
    Created,
    Envelope,
    Event,
    Machine,
    Record,
    RunnerRecovered,
    State,
    TimerFired,
    after,
    alone,
    row,
)
from lifefold.interpreters.engine import Engine, EngineMisuseError, Interpreter
from lifefold.interpreters.simulate.virtual_time import VirtualClock
from lifefold.interpreters.store import MemoryStore, Shelf

pytestmark = pytest.mark.anyio


class Door(State):
    """Where a door is."""

    CLOSED = "Closed"
    OPEN = "Open"


class Opened(Event, frozen=True):
    """It is opened."""


class Shut(Event, frozen=True):
    """It is to be closed."""


class Lobby(Record, frozen=True):
    """A door that closes by itself."""

    state: Door = Door.CLOSED


OPEN_MS = 300_000
lobby = Machine(
    "lobby",
    Lobby(),
    rows=(row(Door.CLOSED, Opened, Door.OPEN), row(Door.OPEN, Shut, Door.CLOSED)),
    during={Door.OPEN: after(OPEN_MS, Shut)},
)
system, opening = alone(lobby)


def shut_again(engine: Engine) -> bool:
    """Tell whether the door was open, and is closed again."""
    return "lobby" in engine.aggregates and engine.aggregates["lobby"].version == 3


async def entries(engine: Engine, shelf: Shelf) -> list[tuple[type[Event], int]]:
    """Return the events in the log, each with its time."""
    log = await MemoryStore(shelf).read()
    envelopes = [engine.ledger.codec.decode(each.stream, each.envelope) for each in log]
    return [(type(each.event), each.at_ms) for each in envelopes]


def fresh(pottery: Pottery) -> Engine:
    """Return an engine on the pottery's log, of which nothing was asked yet."""
    pottery.store = TappedStore(pottery.log.open())
    pottery.engine = Engine(kiln.system, pottery.store, pottery.hands.interpreter(), clock=pottery.clock)
    return pottery.engine


async def test_an_input_from_outside_happens_when_the_engine_takes_it() -> None:
    """A sender's time of 0, or of tomorrow, moves no deadline: the timer elapses after its delay, not at once."""
    shelf, clock = Shelf(), VirtualClock(START_MS)
    engine = Engine(system, MemoryStore(shelf), Interpreter(), clock=clock)
    engine.offer("lobby", opening["lobby"])
    engine.offer("lobby", Envelope("lobby", Opened(), 0, "me"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        await engine.run(shut_again)
        tasks.cancel_scope.cancel()
    assert await entries(engine, shelf) == [
        (Created, START_MS),
        (Opened, START_MS),
        (TimerFired, START_MS + OPEN_MS),
    ]


async def test_what_is_sent_is_stamped_too(pottery: Pottery) -> None:
    """A sender may be ahead: what it sends is of now, and what comes later is not dated by it."""
    async with pottery.running():
        await pottery.engine.send("kiln/a", Envelope("kiln", Lit(), START_MS + 10**9, "potter"))
        assert pottery.entity.entered_ms == START_MS
        assert pottery.engine.ledger.last_ms == START_MS


async def test_run_loads_and_resumes_by_itself(pottery: Pottery) -> None:
    """A restarted program that only runs strands no timer, and begins again what should be going on."""
    async with pottery.running():
        await pottery.take(Lit())
    pottery.hands.fires.clear()
    engine = fresh(pottery)
    engine.offer("kiln/a", Envelope("kiln", Doused(), START_MS, "potter"))
    with anyio.fail_after(60):
        await engine.run(lambda each: each.aggregates["kiln/a"].record("kiln").state is not Heat.FIRING)
    assert pottery.hands.fires[0].resumed
    events = [type(each) for each in await pottery.events()]
    assert events.index(RunnerRecovered) < events.index(Doused)


async def test_loading_and_resuming_twice_is_once(pottery: Pottery) -> None:
    """``run`` after ``load`` and ``resume`` does neither again: one ``RunnerRecovered`` for each aggregate."""
    async with pottery.running():
        await pottery.take(Called("one"))
    engine = fresh(pottery)
    for _ in range(2):
        await engine.load()
    for _ in range(2):
        engine.resume()
    with anyio.fail_after(60):
        await engine.run(lambda each: each.aggregates["kiln/a"].version == 3)
    assert [type(each) for each in await pottery.events()].count(RunnerRecovered) == 1


async def test_what_is_spawned_before_run_is_done_when_it_runs(pottery: Pottery) -> None:
    """It waits for the engine; nothing is lost."""
    engine = fresh(pottery)
    done: list[str] = []

    async def beside() -> None:
        done.append("beside")
        engine.wake()

    engine.spawn(beside)
    with anyio.fail_after(60):
        await engine.run(lambda _: bool(done))
    assert done == ["beside"]


async def nothing() -> None:
    """Do nothing."""


async def test_an_engine_that_has_ended_takes_nothing(pottery: Pottery) -> None:
    """A lost input is an error with its remedy; ``send`` answers that the engine has stopped."""
    engine = fresh(pottery)
    await engine.run(lambda _: True)
    assert engine.has_ended
    another = "the engine has ended; make another Engine on the same log: it goes on where this one has stopped"
    with pytest.raises(EngineMisuseError, match=f"^offer: {another}$"):
        engine.offer("kiln/a", Envelope("kiln", Lit(), 0))
    with pytest.raises(EngineMisuseError, match=f"^spawn: {another}$"):
        engine.spawn(nothing)
    with pytest.raises(EngineMisuseError, match=f"^run: {another}$"):
        await engine.run(never)
    with pytest.raises(EngineMisuseError, match=f"^resume: {another}$"):
        engine.resume()


async def test_an_engine_runs_once_at_a_time(pottery: Pottery) -> None:
    """A second ``run`` beside the first one is refused; the first goes on."""
    async with pottery.running() as engine:
        with pytest.raises(EngineMisuseError, match=r"^run: the engine is running; one run at a time"):
            await engine.run(never)
        await pottery.take(Lit())


async def test_there_is_nothing_to_resume_before_the_log_is_loaded(pottery: Pottery) -> None:
    """It would be for no aggregate; nothing is changed, and ``run`` still does it."""
    engine = fresh(pottery)
    with pytest.raises(EngineMisuseError, match=r"^resume: the engine has no log loaded; await engine.load\(\) first"):
        engine.resume()
    await engine.run(lambda _: True)
