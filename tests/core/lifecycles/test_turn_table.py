"""What document 004's eighteen rows of a turn change; ``test_documents`` compares the rows with the document."""

from typing import Final

import pytest

from document_tables import lines
from lifefold.core.kernel import IllegalTransition, Step, replace
from lifefold.core.lifecycles import turn
from lifefold.core.lifecycles.turn import State, TaskClaimed, TaskFailed, Turn, completing_fails, machine
from lifefold.core.policy.reasons import AbortReason

LINES: Final = [(line.sources[0], line.events[0], line.targets[0]) for line in lines("turn")]
TABLE: Final = {(source, event): target for source, event, target in LINES}
KINDS: Final = {kind.label(): kind for kind in turn.EVENTS}


def test_repetitions_are_recognised_in_every_state() -> None:
    """The rows that keep the state are for them (E26)."""
    assert [r.event for r in machine.rows if r.target is None] == list(turn.EVENTS)
    assert all(r.when is turn.is_repeated for r in machine.rows if r.target is None)
    assert machine.final == {State.REAPED}


CHANGES: Final[dict[tuple[str, str], dict[str, object]]] = {
    ("IDLE", "task_claimed"): {"task": "T1"},
    ("RUNNING", "tool_started"): {"tool_calls": 1},
    ("RUNNING", "compact_needed"): {"compactions": 1},
    **{
        (source, event): {"reason": "broken", "abort_reason": AbortReason.BASH_ERROR}
        for source, event, _ in LINES
        if event == "task_failed"
    },
}


@pytest.mark.parametrize(("source", "event"), TABLE, ids=lambda word: word)
def test_each_row_changes_what_it_must_and_nothing_else(source: str, event: str) -> None:
    """The whole record after each of the eighteen transitions."""
    said = {
        "task_claimed": TaskClaimed(task="T1", id="e1"),
        "task_failed": TaskFailed(reason="broken", abort_reason=AbortReason.BASH_ERROR, id="e1"),
    }.get(event, KINDS[event](id="e1"))
    before = Turn(state=State(source), agent="A1", seen=("e0",))
    step = machine.step(before, said)
    assert isinstance(step, Step)
    changed = {"seen": ("e0", "e1"), **CHANGES.get((source, event), {})}
    assert step.effects == ()
    assert step.record == replace(before, state=State(TABLE[source, event]), **changed)


def test_a_crash_while_completing_is_in_a_profile() -> None:
    """One row more, ahead of the others; off by default (E24)."""
    crash = TaskFailed(reason="gone")
    completing = Turn(state=State.COMPLETING)
    assert isinstance(machine.step(completing, crash), IllegalTransition)
    step = completing_fails.step(completing, crash)
    assert isinstance(step, Step)
    assert (step.record.state, step.record.reason) == (State.FAILED, "gone")
