"""Forks: recorded inputs given again, with and without a crash, and a log of its own from the first entries."""

from pathlib import Path

import anyio
import pytest

from lifefold import Envelope, Ledger, SqliteStore, alone
from lifefold.core.kernel import ActivityEnded, Created, Event, RunnerRecovered, TimerFired
from lifefold.interpreters.engine import Decision
from lifefold.interpreters.recorder import forks
from lifefold.interpreters.recorder.recording import recorded, world_after
from lifefold.interpreters.store import Entry
from lobby import ALLOWED, RUN, Turned, entries_of, lobby, system, turn_twice, written
from oven import Baked, Lit, Oven
from oven import machine as oven

OF_OVEN, _ = alone(oven)


def baked() -> list[Entry]:
    """Return a run of an oven whose runner crashes while it bakes."""
    ledger, entries, at_ms = Ledger(OF_OVEN), list[Entry](), 1_000_000

    def given(event: Event, *, slot: str = "") -> None:
        nonlocal at_ms
        at_ms += 10
        entity = "" if isinstance(event, RunnerRecovered) else "oven"
        there = ledger.aggregates["oven"].entities["oven"] if ledger.aggregates else None
        part = None if there is None or not slot else there.find(slot)
        generation = -1 if part is None else part.generation
        envelope = Envelope(entity, event, at_ms, "me", slot=slot, generation=generation)
        decision = ledger.decide("oven", envelope)
        assert isinstance(decision, Decision), decision
        entries.append(decision.entry)

    given(Created(Oven()))
    given(Lit())
    given(RunnerRecovered(500))
    given(Baked(), slot="Bake")
    return entries


def test_without_its_crash_a_run_takes_the_same_inputs() -> None:
    """The recovery is left out, and the report of the activity fits although its generation is another one."""
    every = list(recorded(OF_OVEN, baked()))
    again = forks.repeated(OF_OVEN, every[1].world, every[2:], without_crash=True)
    assert (again.recoveries, again.left_out) == (1, ())
    assert [type(each.envelope.event) for each in again.steps] == [Baked]
    assert again.otherwise == ()


def test_with_its_crash_the_repeated_run_is_the_recorded_one() -> None:
    """All inputs are given again, and the world is the recorded one."""
    every = list(recorded(OF_OVEN, baked()))
    again = forks.repeated(OF_OVEN, every[1].world, every[2:], without_crash=False)
    assert again.recoveries == 0
    assert again.run.world.aggregates == every[-1].world.aggregates


def test_an_input_that_is_not_possible_any_more_is_noted_and_left_out() -> None:
    """From another state the later inputs go on where they can."""
    every = list(recorded(system, entries_of()))
    earlier = forks.repeated(system, every[1].world, every[1:3], without_crash=False)
    assert [(each.seq, each.aggregate) for each in earlier.left_out] == [(2, "lobby")]
    assert "Pulled" in earlier.left_out[0].why
    assert [type(each.envelope.event) for each in earlier.steps] == [Turned]


def test_an_entity_that_ends_otherwise_than_in_the_log_is_named() -> None:
    """The state in the log stands beside the state in the fork."""
    every = list(recorded(system, entries_of(RUN[:4])))
    other = forks.repeated(system, every[2].world, every[2:4], without_crash=False)
    assert [tuple(each) for each in other.otherwise] == [("lobby", "door", "Closed", "Locked")]


def test_the_present_rules_decide_in_a_fork() -> None:
    """A log of other rules is repeated by these."""
    every = list(recorded(system, entries_of(RUN[:3], lobby(turn_twice))))
    assert every[-1].world.aggregates["lobby"].record("door").turns == 2
    again = forks.repeated(system, every[1].world, every[2:], without_crash=False)
    assert again.run.world.aggregates["lobby"].record("door").turns == 1


def test_a_written_fork_has_the_first_entries(tmp_path: Path) -> None:
    """It is a log of its own, with another name, and its original stays as it is."""
    path = written(tmp_path / "door.db", ALLOWED)
    fork = forks.written(path, 3, "door", tmp_path / "fork.db")
    with SqliteStore.peek(fork) as store, SqliteStore.peek(path) as original:
        assert anyio.run(store.read) == anyio.run(original.read)[:3]
        assert store.meta("fleet") == "door forked at 3"
    with pytest.raises(FileExistsError):
        forks.written(path, 3, "door", fork)


def test_a_world_after_entries_goes_on_like_the_run() -> None:
    """The world has timers, activities and the time of the run."""
    world = world_after(OF_OVEN, baked())
    assert world.now_ms == 1_000_040
    causes = [type(given.envelope.event) for given in world.choices()]
    assert TimerFired in causes
    assert ActivityEnded not in causes
