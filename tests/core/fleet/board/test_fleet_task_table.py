"""The table of a task on a board, held against its transcription, pair by pair, and against the document's."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Event, IllegalTransition, Step, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Stage, State
from lifefold.core.policy.access import AccessLevel
from lifefold.effects import StartTimer

TABLE: Final = """
PLANNED              Approved          -> OPEN
PLANNED              Declined          -> CANCELLED
OPEN                 Claimed           -> CLAIMED
OPEN                 Entrusted         -> CLAIMED
OPEN                 Decomposed        -> WAITING_FOR_SUBTASKS
OPEN                 Cancelled         -> CANCELLED
OPEN                 DependencyLost    -> BLOCKED
CLAIMED              Started           -> IN_PROGRESS
CLAIMED              Released          -> OPEN
CLAIMED              Completed         -> DONE
CLAIMED              Failed            -> FAILED
CLAIMED              Cancelled         -> CANCELLED
CLAIMED              Decomposed        -> WAITING_FOR_SUBTASKS
CLAIMED              Split             -> WAITING_FOR_SUBTASKS
CLAIMED              Blocked           -> BLOCKED
IN_PROGRESS          Completed         -> DONE
IN_PROGRESS          Failed            -> FAILED
IN_PROGRESS          Blocked           -> BLOCKED
IN_PROGRESS          Decomposed        -> WAITING_FOR_SUBTASKS
IN_PROGRESS          Split             -> WAITING_FOR_SUBTASKS
IN_PROGRESS          Released          -> OPEN
IN_PROGRESS          Cancelled         -> CANCELLED
IN_PROGRESS          Orphaned          -> ORPHANED
ORPHANED             Salvaged          -> DONE
ORPHANED             Failed            -> FAILED
ORPHANED             Released          -> OPEN
BLOCKED              Unblocked         -> OPEN
BLOCKED              DependencyBack    -> OPEN
BLOCKED              Cancelled         -> CANCELLED
WAITING_FOR_SUBTASKS SubtasksCompleted -> DONE
WAITING_FOR_SUBTASKS SubtasksOverdue   -> BLOCKED
WAITING_FOR_SUBTASKS DependencyLost    -> BLOCKED
WAITING_FOR_SUBTASKS Cancelled         -> CANCELLED
FAILED               Retried           -> OPEN
FAILED               Rested            -> OPEN
FAILED               RetryGranted      -> FAILED
DONE                 Verified          -> CLOSED
DONE                 Rejected          -> FAILED
DONE                 NothingDone       -> FAILED
DONE                 Parked            -> PENDING_APPROVAL
DONE                 Handed            -> DONE
DONE                 Returned          -> DONE
PENDING_APPROVAL     ApprovalGranted   -> DONE
PENDING_APPROVAL     ApprovalRefused   -> FAILED
PENDING_APPROVAL     ApprovalExpired   -> FAILED
CLAIMED              ToolAborted       -> CLAIMED
IN_PROGRESS          ToolAborted       -> IN_PROGRESS
OPEN                 ConversationKept  -> OPEN
CLAIMED              ConversationKept  -> CLAIMED
IN_PROGRESS          ConversationKept  -> IN_PROGRESS
BLOCKED              ConversationKept  -> BLOCKED
WAITING_FOR_SUBTASKS ConversationKept  -> WAITING_FOR_SUBTASKS
ORPHANED             ConversationKept  -> ORPHANED
DONE                 ConversationKept  -> DONE
PENDING_APPROVAL     ConversationKept  -> PENDING_APPROVAL
FAILED               ConversationKept  -> FAILED
OPEN                 AbortWanted       -> OPEN
CLAIMED              AbortWanted       -> CLAIMED
IN_PROGRESS          AbortWanted       -> IN_PROGRESS
BLOCKED              AbortWanted       -> BLOCKED
WAITING_FOR_SUBTASKS AbortWanted       -> WAITING_FOR_SUBTASKS
ORPHANED             AbortWanted       -> ORPHANED
DONE                 AbortWanted       -> DONE
PENDING_APPROVAL     AbortWanted       -> PENDING_APPROVAL
FAILED               AbortWanted       -> FAILED
OPEN                 Aborted           -> CANCELLED
CLAIMED              Aborted           -> CANCELLED
IN_PROGRESS          Aborted           -> CANCELLED
BLOCKED              Aborted           -> CANCELLED
WAITING_FOR_SUBTASKS Aborted           -> CANCELLED
ORPHANED             Aborted           -> ORPHANED
DONE                 Aborted           -> DONE
PENDING_APPROVAL     Aborted           -> PENDING_APPROVAL
FAILED               Aborted           -> FAILED
PLANNED              Replanned         -> PLANNED
OPEN                 Replanned         -> OPEN
CLAIMED              Replanned         -> CLAIMED
IN_PROGRESS          Replanned         -> IN_PROGRESS
ORPHANED             Replanned         -> ORPHANED
DONE                 Replanned         -> DONE
PENDING_APPROVAL     Replanned         -> PENDING_APPROVAL
WAITING_FOR_SUBTASKS Replanned         -> WAITING_FOR_SUBTASKS
BLOCKED              Replanned         -> BLOCKED
FAILED               Replanned         -> FAILED
PLANNED              Removed           -> CANCELLED
OPEN                 Removed           -> BLOCKED
BLOCKED              Removed           -> BLOCKED
FAILED               Removed           -> FAILED
"""

LINES: Final = [line.split() for line in TABLE.strip().splitlines()]
LEADS: Final = {(state, event): target for state, event, _arrow, target, *_ in LINES}

BASE: Final = fleet_task.FleetTask(id="T1", owner="w", epoch=2, needs_approval=True, most_subtasks=5, blocked_by="T0")
RECORDS: Final = (
    BASE,
    replace(BASE, owner=""),
    replace(BASE, level=AccessLevel.TRUSTED, merges=AccessLevel.ELEVATED),
    replace(BASE, stage=Stage.VERIFY),
    replace(BASE, stage=Stage.MERGE, result=1),
    replace(BASE, needs_approval=False, most_subtasks=0, blocked_by="", retries=3),
    replace(BASE, fate=fleet_task.Fate()),
    replace(BASE, anew=True),
)
"""Records under which each guard holds, and under which it does not."""


def answers(state: State, kind: type[Event]) -> Iterator[Step[fleet_task.FleetTask, Any] | IllegalTransition]:
    """Yield what the machine answers to every example of an event, in every record that there is here."""
    for record in RECORDS:
        for event in kind.examples_for(replace(record, state=state)):
            yield fleet_task.machine.step(replace(record, state=state), event)


@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
def test_a_pair_is_taken_if_and_only_if_the_table_has_it(state: State) -> None:
    """Every state with every event: its target, or a refusal. What is over, however it ended, takes nothing."""
    assert {name for _, name in LEADS} == {event.__name__ for event in fleet_task.machine.events}
    for kind in fleet_task.machine.events:
        target = LEADS.get((str(state.value), kind.__name__))
        reached = {each.record.state.value for each in answers(state, kind) if isinstance(each, Step)}
        if kind is fleet_task.Rested and state is State.FAILED:
            assert reached == {"OPEN", "FAILED"}, "who has no retries left stays where it is"
        elif kind is fleet_task.Replanned and state is State.PENDING_APPROVAL:
            assert reached == {"DONE", "PENDING_APPROVAL"}, "other commands verify it again"
        else:
            assert reached == ({target} if target else set()), (state, kind)


def test_the_cancellable_states_are_those_that_the_table_cancels() -> None:
    """So a caller that asks before a cancellation gets the same answer (E16)."""
    cancelled = [line.split()[0] for line in TABLE.strip().splitlines() if line.split()[1] == "Cancelled"]
    assert sorted(cancelled) == sorted(fleet_task.CANCELLABLE)


def test_the_documents_rows_are_all_there_and_lead_where_they_did() -> None:
    """In their order; what a board adds comes behind them. Some do a little more, none anything else."""
    document = [(row.source_label, row.event, row.target, row.when) for row in task.machine.rows]
    ours = [(row.source_label, row.event, row.target, row.when) for row in fleet_task.machine.rows]
    assert ours[: len(document)] == document
    assert len(ours) == len(document) + 27
    assert fleet_task.machine.final == task.machine.final
    assert fleet_task.machine.detached == frozenset()


def test_the_operator_commands_of_a_task_on_a_board_are_these() -> None:
    """Everything else is said by workers, by rules, or by timers."""
    assert {each.__name__ for each in board.aggregate.commands["task"]} == {
        "Approved", "Declined", "Cancelled", "Unblocked", "Retried", "RetryGranted", "Split", "ApprovalGranted",
        "ApprovalRefused", "ToolAborted", "AbortWanted",
    }  # fmt: skip


TIMED: Final[dict[str, tuple[fleet_task.FleetTask, Event, StartTimer]]] = {
    "a rest": (replace(BASE, state=State.CLAIMED), task.Failed(2), StartTimer("Rested", 30_000)),
    "parts": (
        replace(BASE, state=State.CLAIMED, subtasks_ms=8),
        fleet_task.Split(2, (fleet_task.Subtask(),)),
        StartTimer("SubtasksOverdue", 8),
    ),
    "a person": (
        replace(BASE, state=State.DONE, approval_ms=7),
        fleet_task.Parked(2),
        StartTimer("ApprovalExpired", 7),
    ),
}


@pytest.mark.parametrize(("record", "event", "timer"), TIMED.values(), ids=TIMED)
def test_three_things_are_waited_for_no_longer_than_they_may_last(
    record: fleet_task.FleetTask, event: Event, timer: StartTimer
) -> None:
    """A rest, parts, and a person; each has the task's own time, and no other state has a timer."""
    step = fleet_task.machine.step(record, event)
    assert isinstance(step, Step)
    assert step.effects == (timer,)
    assert len(fleet_task.machine.during) == len(TIMED)


@pytest.mark.parametrize("kind", fleet_task.machine.events, ids=lambda kind: kind.__name__)
def test_every_event_has_examples_of_its_own_type(kind: type[Event]) -> None:
    """For a record of any claim; what may not be split has none of a split, what takes no trust none that shows it.

    And where a fleet has no aborts there is none of an abort, and without conversations none of one.
    """
    for record in RECORDS:
        examples = kind.examples_for(record)
        assert {type(example) for example in examples} <= {kind}
        assert (
            bool(examples)
            or (kind is fleet_task.Split and not record.most_subtasks)
            or (kind is fleet_task.Entrusted and not record.merges)
            or (kind is fleet_task.ConversationKept and not record.anew)
            or (kind in {fleet_task.ToolAborted, fleet_task.AbortWanted, fleet_task.Aborted} and record.fate is None)
        )
