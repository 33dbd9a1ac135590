"""Turns beyond their table: repeated reports, reports of an earlier turn, and illegal events."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import Event, IllegalTransition, Step, replace
from lifefold.core.lifecycles import turn
from lifefold.core.lifecycles.turn import (
    SEEN_LIMIT,
    AgentReaped,
    AgentSpawned,
    State,
    TaskClaimed,
    ToolCompleted,
    ToolStarted,
    Turn,
    following,
    machine,
)


def taken(record: Turn, *events: Event) -> Turn:
    """Return the turn after these events, all of them accepted."""
    for event in events:
        step = machine.step(record, event)
        assert isinstance(step, Step), str(step)
        record = step.record
    return record


def test_without_an_id_every_report_is_news() -> None:
    """As the document has it: the launch, then the readiness."""
    assert taken(Turn(), TaskClaimed(), AgentSpawned(), AgentSpawned()).state is State.RUNNING


def test_the_last_ids_are_remembered_and_older_ones_forgotten() -> None:
    """A turn with very many tool calls does not grow without bounds."""
    record = Turn(state=State.RUNNING)
    for call in range(SEEN_LIMIT):
        record = taken(record, ToolStarted(id=f"s{call}"), ToolCompleted(id=f"c{call}"))
    assert (len(record.seen), record.tool_calls) == (SEEN_LIMIT, SEEN_LIMIT)
    assert record.seen[-1] == f"c{SEEN_LIMIT - 1}"
    assert taken(record, ToolStarted(id=record.seen[0])) == record


def test_an_id_of_an_earlier_turn_is_no_repetition_in_this_one() -> None:
    """It is refused for its number, not accepted for its id (E27)."""
    second = replace(Turn(state=State.RUNNING), number=2, seen=("e1",))
    assert isinstance(machine.step(second, ToolStarted(turn=1, id="e1")), IllegalTransition)


def test_a_report_has_examples_of_news_of_repetitions_and_of_another_turn() -> None:
    """A search with the examples takes every branch."""
    assert ToolStarted.examples() == (ToolStarted(), ToolStarted(id="x"), ToolStarted(turn=0))


Report = turn.TaskClaimed | turn.AgentSpawned | turn.TaskFailed

IDS: Final = st.sampled_from(["", "a", "b", "c", "d"])


def report(kind: type[Report], event_id: str, number: int) -> Report:
    """Return a report of this kind."""
    return kind(id=event_id, turn=number)


REPORTS: Final = st.builds(report, st.sampled_from(turn.EVENTS), IDS, st.integers(1, 2))


@given(st.lists(REPORTS, max_size=40), st.data())
def test_repeating_reports_leads_nowhere_else(events: list[Report], data: st.DataObject) -> None:
    """A log in which everything with an id comes again, at once or later, folds to the same turn (E26)."""
    once = again = Turn()
    said: list[Event] = []
    for event in events:
        step = machine.step(once, event)
        repeated = machine.step(again, event)
        assert isinstance(step, Step) == isinstance(repeated, Step)
        if isinstance(step, Step) and isinstance(repeated, Step):
            once, again = step.record, repeated.record
            said += [event] if event.id else []
        if said:
            again = taken(again, data.draw(st.sampled_from(said)))
        assert once == again
        assert all(holds(once) for holds in machine.invariants)


@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
def test_a_repetition_changes_nothing_in_any_state(state: State) -> None:
    """Also when the turn is over: at least once is often enough (E26)."""
    record = Turn(state=state, seen=("e1", "e2"))
    for kind in turn.EVENTS:
        assert taken(record, kind(id="e1")) == record


def test_after_a_turn_comes_the_next_one_and_not_the_same_again() -> None:
    """REAPED is final; the next turn is a new record with the next number (E27)."""
    reaped = taken(Turn(agent="A1", state=State.FAILED, task="T1", seen=("e1",)), AgentReaped())
    for kind in turn.EVENTS:
        assert isinstance(machine.step(reaped, kind()), IllegalTransition)
    assert following(reaped) == Turn(agent="A1", number=2)
