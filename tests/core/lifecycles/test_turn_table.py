"""Turns: document 004's eighteen rows, transcribed once more, and all ninety pairs held against them."""

from typing import Final

import pytest

from lifefold.core.kernel import IllegalTransition, Step, replace
from lifefold.core.lifecycles import turn
from lifefold.core.lifecycles.turn import State, TaskClaimed, TaskFailed, Turn, completing_fails, machine
from lifefold.core.policy.reasons import AbortReason

DOCUMENT: Final = """
IDLE       task_claimed     CLAIMING
CLAIMING   agent_spawned    SPAWNING
CLAIMING   task_failed      FAILED
SPAWNING   agent_spawned    RUNNING
SPAWNING   task_failed      FAILED
RUNNING    tool_started     TOOL_USE
RUNNING    compact_needed   COMPACTING
RUNNING    verify_requested VERIFYING
RUNNING    task_failed      FAILED
TOOL_USE   tool_completed   RUNNING
TOOL_USE   task_failed      FAILED
COMPACTING verify_requested RUNNING
COMPACTING task_failed      FAILED
VERIFYING  task_completed   COMPLETING
VERIFYING  compact_needed   RUNNING
VERIFYING  task_failed      FAILED
COMPLETING agent_reaped     REAPED
FAILED     agent_reaped     REAPED
"""
"""The exhaustive transition table of the document."""

LINES: Final = [tuple(line.split()) for line in DOCUMENT.strip().splitlines()]
TABLE: Final = {(source, event): target for source, event, target in LINES}
KINDS: Final = {kind.label(): kind for kind in turn.EVENTS}
STATES: Final = "IDLE CLAIMING SPAWNING RUNNING TOOL_USE COMPACTING VERIFYING COMPLETING FAILED REAPED".split()


def test_the_rows_are_the_documents_eighteen_and_no_more() -> None:
    """In its order and its spelling; the other rows keep the state, and are for repetitions (E25, E26)."""
    moving = [(r.source_label, r.event.label(), r.target_label) for r in machine.rows if r.target is not None]
    assert moving == LINES
    assert len(moving) == 18
    assert [r.event for r in machine.rows if r.target is None] == list(turn.EVENTS)
    assert all(r.when is turn.is_repeated for r in machine.rows if r.target is None)
    assert [state.value for state in State] == STATES
    assert machine.final == {State.REAPED}


@pytest.mark.parametrize("source", STATES)
def test_a_pair_is_taken_if_and_only_if_the_table_has_it(source: str) -> None:
    """Every state with every event: its target, or a refusal (E24, E28)."""
    for event, kind in KINDS.items():
        answer = machine.step(Turn(state=State(source)), kind())
        target = TABLE.get((source, event))
        assert isinstance(answer, IllegalTransition) is (target is None), (source, event)
        if isinstance(answer, Step):
            assert answer.record.state.value == target
            assert answer.effects == ()


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
    assert step.record == replace(before, state=State(TABLE[source, event]), **changed)


def test_a_crash_while_completing_is_in_a_profile() -> None:
    """One row more, ahead of the others; off by default (E24)."""
    crash = TaskFailed(reason="gone")
    completing = Turn(state=State.COMPLETING)
    assert isinstance(machine.step(completing, crash), IllegalTransition)
    step = completing_fails.step(completing, crash)
    assert isinstance(step, Step)
    assert (step.record.state, step.record.reason) == (State.FAILED, "gone")
    assert [str(r) for r in completing_fails.rows if r not in machine.rows] == [
        "row(COMPLETING, task_failed, FAILED when is_news)"
    ]
