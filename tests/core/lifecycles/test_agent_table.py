"""Agents: document 004's six rows, transcribed once more, and every pair of a state and an event held against them."""

from typing import Final

import pytest

from lifefold.core.kernel import Event, IllegalTransition, Step, replace
from lifefold.core.lifecycles.agent import (
    Agent,
    Died,
    Heartbeat,
    Recycled,
    SpawnFailed,
    SpawnOverdue,
    State,
    TaskAssigned,
    TaskFinished,
    Watched,
    machine,
    supervised,
)
from lifefold.core.policy.reasons import AbortReason

DOCUMENT: Final = """
starting working
starting dead
working idle
working dead
idle working
idle dead
"""
"""The exhaustive transition table of the document, from and to."""

TRIGGERS: Final[dict[tuple[str, str], Event]] = {
    ("starting", "working"): Heartbeat(),
    ("starting", "dead"): SpawnFailed("no such command"),
    ("working", "idle"): TaskFinished(),
    ("working", "dead"): Died("killed", None, AbortReason.OOM),
    ("idle", "working"): TaskAssigned("T2"),
    ("idle", "dead"): Recycled("not needed"),
}

BESIDE: Final = {("working", Heartbeat), ("idle", Heartbeat), ("working", Watched)}
"""Events that change only what stands beside the state."""


def in_state(state: str) -> Agent:
    """Return an agent in this state that has a task if it may have one."""
    task = "" if state == "idle" else "T1"
    return Agent(state=State(state), id="A1", task=task, started_at_ms=1_000, task_at_ms=1_000, at_ms=5_000)


def test_the_rows_are_the_documents_six_and_no_more() -> None:
    """Each pair once, in the document's order; the other rows keep the state."""
    moving = [(row.source_label, row.target_label) for row in machine.rows if row.target is not None]
    assert moving == [tuple(line.split()) for line in DOCUMENT.strip().splitlines()] == list(TRIGGERS)
    staying = {(state.value, row.event) for row in machine.rows if row.target is None for state in machine.sources(row)}
    assert staying == BESIDE


@pytest.mark.parametrize("state", [state.value for state in State])
def test_a_pair_is_taken_if_and_only_if_the_table_has_it(state: str) -> None:
    """Every state with every event of the table: its target, or a refusal."""
    expected = {(source, type(event)): target for (source, target), event in TRIGGERS.items()}
    expected |= {pair: pair[0] for pair in BESIDE}
    events = {type(event): event for event in TRIGGERS.values()} | {Watched: Watched()}
    assert set(events) == set(machine.events)
    for kind, event in events.items():
        answer = machine.step(in_state(state), event)
        target = expected.get((state, kind))
        assert isinstance(answer, Step) is (target is not None), (state, event)
        if isinstance(answer, Step):
            assert answer.record.state.value == target


CHANGES: Final[dict[tuple[str, str], dict[str, object]]] = {
    ("starting", "working"): {"heartbeat_at_ms": 5_000},
    ("starting", "dead"): {"reason": "no such command"},
    ("working", "idle"): {"task": ""},
    ("working", "dead"): {"reason": "killed", "abort_reason": AbortReason.OOM},
    ("idle", "working"): {"task": "T2", "task_at_ms": 5_000, "heartbeat_at_ms": 5_000},
    ("idle", "dead"): {"reason": "not needed"},
}


@pytest.mark.parametrize(("source", "target"), TRIGGERS, ids=lambda word: word)
def test_each_row_changes_what_it_must_and_nothing_else(source: str, target: str) -> None:
    """The whole record after each of the six transitions; none asks for an effect."""
    step = machine.step(in_state(source), TRIGGERS[source, target])
    assert isinstance(step, Step)
    assert step.effects == ()
    assert step.record == replace(in_state(source), state=State(target), **CHANGES[source, target])


def test_dead_is_final_and_an_agent_begins_by_starting() -> None:
    """No agent begins dead, and no dead agent comes back (E23)."""
    assert machine.final == {State.DEAD}
    assert machine.initial.state is State.STARTING
    assert machine.allowed(State.DEAD) == ()


def test_the_supervised_profile_adds_events_and_no_edges() -> None:
    """A timer for the launch and one for idling, and a death in every state."""
    edges = {
        (state.value, row.target.value)
        for row in supervised.rows
        if row.target is not None
        for state in supervised.sources(row)
    }
    assert edges == set(TRIGGERS)
    assert set(supervised.events) - set(machine.events) == {SpawnOverdue}
    assert {slot: sorted(span.states) for slot, span in supervised.spans.items()} == {
        "SpawnOverdue": ["starting"],
        "Recycled": ["idle"],
    }
    for state in (State.STARTING, State.IDLE):
        step = supervised.step(in_state(state), Died("crash", None, AbortReason.UNKNOWN))
        assert isinstance(step, Step)
        assert step.record.state is State.DEAD
        assert isinstance(machine.step(in_state(state), Died("crash")), IllegalTransition)
