"""Document 002's interface beyond its samples: its errors, its history, restoring, recovering, removing."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.lifecycles import process
from lifefold.interpreters.facades.process import (
    ProcessLifecycle,
    ProcessState,
    ProcessTransition,
    SnapshotError,
    StateError,
)
from process_handle import EDGES, lifecycle


def error(lc: ProcessLifecycle, *given: Any, **named: Any) -> str:
    """Return the text of the StateError that a move raises; nothing must have changed by it."""
    before = lc.snapshot()
    with pytest.raises(StateError) as raised:
        lc.move(*given, **named)
    assert lc.snapshot() == before
    return str(raised.value)


# The table


@pytest.mark.parametrize("target", ProcessState)
@pytest.mark.parametrize("source", ProcessState)
def test_every_pair_of_states_is_as_the_table_says(source: ProcessState, target: ProcessState) -> None:
    """64 pairs: allowed and made, or refused with the document's text, the state itself among the refused (C9, C10)."""
    lc = ProcessLifecycle(source)
    assert lc.can_transition(target) == (target.value in EDGES[source.value])
    if lc.can_transition(target):
        made = lc.move(target)
        assert (made.from_state, made.to_state, lc.state) == (source, target, target)
    else:
        first = f"Cannot transition from '{source.value}' to '{target.value}'."
        assert error(lc, target) == f"{first}\nAllowed targets: {EDGES[source.value]}"


def test_an_error_names_the_process_if_it_has_an_id() -> None:
    """The document's text with a prefix (C10)."""
    text = error(lifecycle(process_id="p1"), ProcessState.RUNNING)
    assert text.startswith("Process 'p1': Cannot transition from 'created' to 'running'.\nAllowed targets: [")


def test_states_are_equal_to_the_cores_and_to_their_values_and_printed_as_the_document_prints_them() -> None:
    """One spelling everywhere; only ``str`` differs."""
    assert [state.value for state in ProcessState] == [state.value for state in process.State]
    for state in ProcessState:
        known: object = process.State(state.value)
        assert state == known == state.value
        assert str(state) == f"ProcessState.{state.name}"


def test_the_later_profile_can_stop_what_failed() -> None:
    """FAILED to STOPPING is another table, not another code (C3)."""
    assert not lifecycle("starting", "failed").can_transition(ProcessState.STOPPING)
    later = lifecycle("starting", "failed", "stopping", "stopped", machine=process.by_hand_1_5)
    assert later.state is ProcessState.STOPPED
    restored = ProcessLifecycle.from_snapshot(later.snapshot(), machine=process.by_hand_1_5)
    assert restored.snapshot() == later.snapshot()


def test_an_expectation_makes_a_move_conditional() -> None:
    """Refused with what was expected if it is another state, or nothing that exists (C2)."""
    lc = lifecycle("starting", "running")
    said = error(lc, ProcessState.STOPPING, expected_from=ProcessState.SUSPENDED)
    assert said == "Cannot transition from 'running' to 'stopping'.\nExpected state: 'suspended'"
    assert "Expected state: 'asleep'" in error(lc, ProcessState.STOPPING, expected_from="asleep")
    assert lc.move(ProcessState.STOPPING, expected_from=ProcessState.RUNNING).to_state is ProcessState.STOPPING


def test_a_value_will_do_for_a_state() -> None:
    """Who reads states from a file need not convert them; a word that is none is refused as the table refuses."""
    lc = ProcessLifecycle()
    word: Any = "starting"
    assert lc.can_transition(word)
    assert lc.move(word).to_state is ProcessState.STARTING
    assert error(lc, "asleep") == "Cannot transition from 'starting' to 'asleep'.\nAllowed targets: " + str(
        EDGES["starting"]
    )


# The history


def test_a_transition_is_written_in_the_documents_format_and_read_back() -> None:
    """Five fields, the time in ISO and UTC; reason and metadata may be missing when it is read."""
    made = lifecycle().move(ProcessState.STARTING, "why", {"a": [1]})
    data = {
        "from_state": "created",
        "to_state": "starting",
        "timestamp": "2026-01-01T12:00:00+00:00",
        "reason": "why",
        "metadata": {"a": [1]},
    }
    assert made.to_dict() == data
    assert ProcessTransition.from_dict(json.loads(json.dumps(data))) == made
    del data["reason"], data["metadata"]
    assert ProcessTransition.from_dict(data) == ProcessTransition(
        ProcessState.CREATED, ProcessState.STARTING, datetime(2026, 1, 1, 12, tzinfo=UTC)
    )


@pytest.mark.parametrize("time", ["2026-01-01T12:00:00", "2026-01-01T13:00:00+01:00", "2026-01-01T12:00:00Z"])
def test_a_time_is_read_as_utc(time: str) -> None:
    """Whatever its zone; one without is UTC."""
    read = ProcessTransition.from_dict({"from_state": "created", "to_state": "starting", "timestamp": time})
    assert read.to_dict()["timestamp"] == "2026-01-01T12:00:00+00:00"


def test_history_cannot_be_rewritten_through_what_was_given_or_returned() -> None:
    """Metadata are copied deeply on the way in and on the way out, and a record is immutable (C13)."""
    lc = lifecycle()
    metadata: dict[str, Any] = {"error": {"codes": [1]}}
    returned = lc.move(ProcessState.STARTING, metadata=metadata)
    before = lc.snapshot()
    metadata["error"]["codes"].append(2)
    returned.metadata["error"]["codes"].append(3)
    lc.history[0].metadata.clear()
    lc.history.clear()
    lc.snapshot()["history"][0]["metadata"].clear()
    returned.to_dict()["metadata"].clear()
    assert lc.snapshot() == before
    assert before["history"][0]["metadata"] == {"error": {"codes": [1]}}
    with pytest.raises(AttributeError):
        returned.reason = "another"  # type: ignore[misc]  # what must not be possible
    assert len({returned, lc.history[0]}) == 2


def test_transitions_are_numbered_whatever_the_clock_does() -> None:
    """``seq`` is the order of things; a clock that goes backwards is not followed (C17)."""
    times = iter([5_000, 4_000, 3_000, 9_000, 1_000, 1_000, 1_000])
    lc = ProcessLifecycle(clock=lambda: next(times, 1_000))
    for target in (ProcessState.STARTING, ProcessState.RUNNING, ProcessState.STOPPING):
        lc.move(target)
    assert [made.seq for made in lc.history] == [1, 2, 3]
    stamps = [made.timestamp for made in lc.history]
    assert stamps == sorted(stamps)


def test_without_a_limit_all_of_the_history_is_kept() -> None:
    """The default (C14)."""
    lc = lifecycle("starting", "running", *["suspended", "running"] * 500)
    assert (len(lc.history), lc.dropped) == (1_002, 0)
    assert "dropped" not in lc.snapshot()


def test_with_a_limit_the_newest_are_kept_and_the_others_counted() -> None:
    """The numbers go on, also after the history was restored with a smaller limit (C14)."""
    lc = lifecycle("starting", "running", *["suspended", "running"] * 500, history_limit=10)
    assert (len(lc.history), lc.dropped) == (10, 992)
    assert [made.seq for made in lc.history] == list(range(993, 1_003))
    restored = ProcessLifecycle.from_snapshot(json.loads(json.dumps(lc.snapshot())), history_limit=4)
    assert [made.seq for made in restored.history] == list(range(999, 1_003))
    assert restored.dropped == 998
    assert restored.move(ProcessState.STOPPING).seq == 1_003


@pytest.mark.parametrize("limit", [0, -1, 10**30, "ten", True])
def test_a_limit_that_makes_no_sense_is_refused(limit: Any) -> None:
    """By what every handle says of such a number; None is how one says that there is no limit."""
    raised, said = (ValueError, "between 1 and") if type(limit) is int else (TypeError, "an int, not")
    with pytest.raises(raised, match=f"history_limit must be {said}"):
        ProcessLifecycle(history_limit=limit)


# Restoring


def test_a_snapshot_is_what_the_document_says_and_restores_to_the_same() -> None:
    """State and history, as JSON; the history may be missing."""
    lc = lifecycle("starting", "running", "awaiting")
    snapshot = json.loads(json.dumps(lc.snapshot()))
    assert snapshot["state"] == "awaiting"
    assert ProcessLifecycle.from_snapshot(snapshot).history == lc.history
    assert ProcessLifecycle.from_snapshot({"state": "running"}).state is ProcessState.RUNNING


def broken(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return a snapshot with something wrong in it."""
    snapshot = lifecycle("starting", "running", "suspended").snapshot()
    change(snapshot)
    return snapshot


ILLEGAL: Final[dict[str, dict[str, Any]]] = {
    "the history leads to 'suspended', but the state is 'running'": broken(lambda s: s.update(state="running")),
    "transition 2 begins in 'running', not in 'starting'": broken(lambda s: s["history"].pop(1)),
    "transition 3 is not in the table: from 'running' to 'stopped'": broken(
        lambda s: s["history"][2].update(to_state="stopped")
    ),
}

MALFORMED: Final[dict[str, Any]] = {
    "a snapshot must be a mapping, not NoneType": None,
    "state must be one of created, starting, ": broken(lambda s: s.update(state="asleep")),
    "state must be one of created, starting, running": broken(lambda s: s.pop("state")),
    "the history must be a list, not str": broken(lambda s: s.update(history="none")),
    "dropped must be a number of transitions": broken(lambda s: s.update(dropped=-1)),
    "dropped must be a number": broken(lambda s: s.update(dropped=True)),
    "transition 2: it must be a mapping, not int": broken(lambda s: s["history"].insert(1, 5)),
    "transition 1: from_state must be one of": broken(lambda s: s["history"][0].update(from_state=7)),
    "transition 3: to_state must be one of": broken(lambda s: s["history"][2].pop("to_state")),
    "transition 1: timestamp must be an ISO 8601 time": broken(lambda s: s["history"][0].update(timestamp="noon")),
    "transition 2: timestamp must be an ISO 8601 time": broken(lambda s: s["history"][1].pop("timestamp")),
    "transition 3: timestamp must be an ISO 8601 time": broken(
        lambda s: s["history"][2].update(timestamp="0001-01-01T00:00:00+10:00")
    ),
    "transition 1: reason must be a str, not list": broken(lambda s: s["history"][0].update(reason=[])),
    "transition 1: metadata must be a mapping with texts for keys": broken(
        lambda s: s["history"][0].update(metadata=[1])
    ),
}


@pytest.mark.parametrize(("said", "snapshot"), ILLEGAL.items())
def test_a_history_that_cannot_have_been_is_refused_if_one_is_strict(said: str, snapshot: dict[str, Any]) -> None:
    """The default; who only wants to read it may say so, and gets what is written (C11)."""
    with pytest.raises(SnapshotError) as raised:
        ProcessLifecycle.from_snapshot(snapshot)
    assert str(raised.value) == said
    assert ProcessLifecycle.from_snapshot(snapshot, strict=False).snapshot() == snapshot


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(("said", "snapshot"), MALFORMED.items())
def test_what_is_no_snapshot_is_refused_with_its_place(said: str, snapshot: Any, *, strict: bool) -> None:
    """A clear error, whether one is strict or not."""
    with pytest.raises(SnapshotError, match=r".") as raised:
        ProcessLifecycle.from_snapshot(snapshot, strict=strict)
    assert said in str(raised.value)


@given(st.lists(st.integers(0, 99), max_size=30))
def test_any_history_that_was_made_is_restored(choices: list[int]) -> None:
    """What ``snapshot`` returns is always a legal snapshot, and the same after a way through JSON."""
    lc = ProcessLifecycle()
    for choice in choices:
        allowed = EDGES[lc.state.value]
        lc.move(ProcessState(allowed[choice % len(allowed)]), reason=str(choice))
    restored = ProcessLifecycle.from_snapshot(json.loads(json.dumps(lc.snapshot())))
    assert restored.snapshot() == lc.snapshot()
    assert [made.seq for made in restored.history] == list(range(1, len(choices) + 1))


# Recovery and removal


@pytest.mark.parametrize("state", ProcessState)
def test_what_was_live_is_orphaned_by_a_crash(state: ProcessState) -> None:
    """A restored process is unchanged, for the audit; ``recover`` fails it (C12)."""
    lc = ProcessLifecycle.from_snapshot({"state": state.value})
    assert lc.state is state
    orphaned = lc.recover()
    if state.value in {"created", "stopped", "failed"}:
        assert (orphaned, lc.state, lc.history) == (None, state, [])
    else:
        assert orphaned is not None
        assert (orphaned.from_state, orphaned.to_state, orphaned.reason) == (state, ProcessState.FAILED, "orphaned")
        assert lc.history == [orphaned]
        orphaned.metadata["later"] = True
        assert lc.history[0].metadata == {}
        assert ProcessLifecycle.from_snapshot(lc.snapshot()).state is ProcessState.FAILED


def test_a_removed_process_stays_dead() -> None:
    """It can be read, and never moved or recovered to life; to remove it again is nothing (C16)."""
    lc = lifecycle("starting", "failed")
    lc.remove()
    lc.remove()
    assert (lc.is_removed, lc.state, len(lc.history)) == (True, ProcessState.FAILED, 2)
    assert not any(lc.can_transition(target) for target in ProcessState)
    assert error(lc, ProcessState.STARTING) == (
        "Cannot transition from 'failed' to 'starting'.\nThe process was removed."
    )
    assert lc.recover() is None
    again = ProcessLifecycle.from_snapshot(lc.snapshot())
    assert again.is_removed
    with pytest.raises(SnapshotError, match="removed must be true or false"):
        ProcessLifecycle.from_snapshot({**lc.snapshot(), "removed": 1})


@pytest.mark.parametrize("state", ["starting", "running", "suspended", "awaiting", "stopping"])
def test_what_is_alive_cannot_be_removed(state: str) -> None:
    """Removing is forgetting; what is forgotten alive is left behind (C16)."""
    lc = ProcessLifecycle(ProcessState(state), process_id="p1")
    with pytest.raises(StateError) as raised:
        lc.remove()
    assert str(raised.value) == f"Process 'p1': Cannot remove while '{state}'.\nStop it first."
    assert not lc.is_removed


@pytest.mark.parametrize(
    ("named", "raised"),
    [
        ({"initial": "asleep"}, ValueError),
        ({"initial": 3}, TypeError),
        ({"initial": None}, TypeError),
        ({"process_id": 7}, TypeError),
    ],
)
def test_a_lifecycle_is_not_made_of_nonsense(named: dict[str, Any], raised: type[Exception]) -> None:
    """The constructor says what it cannot use."""
    with pytest.raises(raised):
        ProcessLifecycle(**named)
