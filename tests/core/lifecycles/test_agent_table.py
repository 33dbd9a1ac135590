"""What document 004's six rows of an agent change; ``test_documents`` compares the rows with the document."""

from typing import Final

import pytest

from lifefold.core.kernel import Event, IllegalTransition, Step, replace
from lifefold.core.lifecycles.agent import (
    Agent,
    Died,
    Heartbeat,
    Recycled,
    SpawnFailed,
    State,
    TaskAssigned,
    TaskFinished,
    machine,
    supervised,
)
from lifefold.core.policy.reasons import AbortReason

TRIGGERS: Final[dict[tuple[str, str], Event]] = {
    ("starting", "working"): Heartbeat(),
    ("starting", "dead"): SpawnFailed("no such command"),
    ("working", "idle"): TaskFinished(),
    ("working", "dead"): Died("killed", None, AbortReason.OOM),
    ("idle", "working"): TaskAssigned("T2"),
    ("idle", "dead"): Recycled("not needed"),
}


def in_state(state: str) -> Agent:
    """Return an agent in this state that has a task if it may have one."""
    task = "" if state == "idle" else "T1"
    return Agent(state=State(state), id="A1", task=task, started_at_ms=1_000, task_at_ms=1_000, at_ms=5_000)


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


def test_the_supervised_profile_has_a_timer_for_the_launch_and_one_for_idleness() -> None:
    """Each belongs to one state; a death is illegal in these states without the profile."""
    assert {slot: sorted(span.states) for slot, span in supervised.spans.items()} == {
        "SpawnOverdue": ["starting"],
        "Recycled": ["idle"],
    }
    for state in (State.STARTING, State.IDLE):
        assert isinstance(machine.step(in_state(state), Died("crash")), IllegalTransition)
