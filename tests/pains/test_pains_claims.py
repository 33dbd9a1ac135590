"""Double claims, reports of past claims, and parked tasks: a mutant and a short trace of each."""

from typing import Any, Final

from declared import instead, rebuilt
from lifefold.core.kernel import STAY, Machine, Row, Step, replace, row
from lifefold.core.lifecycles import approval, task, turn
from lifefold.core.lifecycles.approval import ApprovalGranted
from lifefold.core.lifecycles.task import (
    Approved,
    Cancelled,
    Claimed,
    Completed,
    Failed,
    Released,
    Started,
    State,
    Task,
)
from lifefold.core.lifecycles.task_profiles import GovernedTask
from mutated import ALL, STUCK, shipped, way_to
from property_checks import changed, without_timer

OPEN, CLAIMED, DONE = State.OPEN, State.CLAIMED, State.DONE
FENCE: Final = "a report of another claim changes nothing"


def test_a_second_claim_finds_the_task_claimed() -> None:
    """anthropics/claude-code#22239: claims are not atomic, and two of three workers do the same task."""
    twice = shipped("task").with_rows(row(CLAIMED, Claimed, CLAIMED, task.claim))
    trace = way_to("a claimed task cannot be claimed again", twice)
    assert ["Claimed(owner='worker')" in line for line in trace[-2:]] == [True, True]


def test_a_claim_that_is_told_twice_is_one() -> None:
    """librefang/librefang#5961: claims race, and each is announced."""
    twice = shipped("turn").with_rows(row(turn.State.CLAIMING, turn.TaskClaimed, STAY, turn.take_on))
    trace = way_to("a repeated report, or one of another turn, changes nothing", twice)
    assert ["TaskClaimed(turn=1, id='x'" in line for line in trace] == [True, True]


def _by_any_claim(t: Task, _e: Completed) -> Step[Task, Any]:
    return Step(replace(t, owner=""))


def test_only_the_present_owner_completes_a_task() -> None:
    """camunda/camunda#57335: a worker with an expired lease completes the job of another worker."""
    trace = way_to(FENCE, _unfenced(row(State.IN_PROGRESS, Completed, DONE, _by_any_claim)))
    assert "Completed(epoch=1)" not in trace[-1]
    assert "IN_PROGRESS → DONE" in trace[-1]


def test_a_former_owner_ends_no_other_claim() -> None:
    """aegra/aegra#502: a worker declared dead releases the claim of its replacement."""
    trace = way_to(FENCE, _unfenced(row(CLAIMED, Released, OPEN)))
    assert "Released(epoch=1" not in trace[-1]
    assert "CLAIMED → OPEN" in trace[-1]


def _overwritten(t: Task, _e: Started) -> Step[Task, Any]:
    return Step(replace(t, owner="the former one"))


def test_a_former_owner_begins_no_work_of_another() -> None:
    """aegra/aegra#547: a worker declared dead overwrites the work of its replacement."""
    trace = way_to(FENCE, _unfenced(row(CLAIMED, Started, State.IN_PROGRESS, _overwritten)))
    assert "Started(epoch=1)" not in trace[-1]
    assert "CLAIMED → IN_PROGRESS" in trace[-1]


def _unfenced(more: Row[Any]) -> Machine[Any]:
    """Return a task that takes reports of other claims, too, and shows whose it has taken."""
    old = shipped("task")
    return rebuilt(old, rows=(*old.rows, more))


def _had_it(t: Task, e: Completed) -> bool:
    return e.epoch == t.epoch > 0


def test_a_claim_with_an_expired_lease_completes_nothing() -> None:
    """imtms/tagent-core#56: an expired lease still permits renewal, completion and failure."""
    late = row(OPEN, Completed, DONE, when=_had_it)
    old = shipped("task-governed")
    copy = rebuilt(old, rows=(late, *old.rows))
    trace = way_to(
        "an owner that has lost its task begins, ends and gives back nothing", copy, said=(Approved, Claimed, Completed)
    )
    assert "LeaseExpired" in trace[-2]
    assert "OPEN → DONE" in trace[-1]


def _dropped(t: GovernedTask, _e: Completed) -> Step[Task, Any]:
    return Step(t)


def test_a_report_that_comes_too_late_is_kept() -> None:
    """majiayu000/harness#1878: a completion after the lease is dropped silently."""
    silent = changed(shipped("task-governed"), "row(ANY, Completed", action=_dropped)
    trace = way_to("a report that changes nothing is kept", silent, said=(Approved, Claimed, Completed))
    assert "Completed(epoch=" in trace[-1]
    assert "KeepDeadLetter" not in trace[-1]


def _cancelled_alone(t: GovernedTask, e: Cancelled) -> Step[Task, Any]:
    return Step(task.explain(t, e).record)


def test_the_session_at_a_cancelled_task_is_ended() -> None:
    """NousResearch/hermes-agent#57596: the task is archived, and its worker continues."""
    alone = instead(shipped("task-governed"), row(CLAIMED, Cancelled, State.CANCELLED, _cancelled_alone))
    said = (Approved, Claimed, Cancelled)
    trace = way_to("the session that works at a cancelled task is ended", alone, said=said)
    assert "CLAIMED → CANCELLED" in trace[-1]
    assert "AbortSession" not in trace[-1]


def test_a_resting_task_is_not_begun() -> None:
    """anthropics/claude-code#1314: work begins before its quota is renewed."""
    hasty = instead(shipped("task-governed"), row(OPEN, Claimed, CLAIMED, task.claim))
    trace = way_to("a task that has to rest cannot be claimed", hasty, said=(Approved, Claimed, Failed, task.Retried))
    assert "FAILED → OPEN" in trace[-2]
    assert "OPEN → CLAIMED" in trace[-1]


def _unrecorded(t: Task, e: Claimed) -> Step[Task, Any]:
    return Step(replace(task.claim(t, e).record, kept=t.kept))


def test_a_new_claim_knows_where_to_continue() -> None:
    """Wred/tmux-delta#18: the id for resuming a session is never recorded."""
    unknown = instead(shipped("task"), row(OPEN, Claimed, CLAIMED, _unrecorded))
    trace = way_to("the kept state of unfinished work is continued from", unknown)
    assert "OPEN → CLAIMED" in trace[-1]


def test_a_failure_is_reported_at_last() -> None:
    """elizaOS/eliza#13771: no report says that a sub-agent has failed, and it is stuck."""
    owned = frozenset({CLAIMED, State.IN_PROGRESS, State.ORPHANED})
    trace = way_to("every claim ends", shipped("task").without_rows((owned, Failed)), states=ALL)
    assert "OPEN → CLAIMED" in trace[-2]


def test_a_wait_for_subtasks_ends() -> None:
    """nick-pape/grackle#186: children that finish before the question leave their parent parked."""
    parked = without_timer(shipped("task-governed"), "SubtasksOverdue")
    trace = way_to("WAITING_FOR_SUBTASKS does not last for ever", parked, ALL, (Approved, task.Decomposed))
    assert "OPEN → WAITING_FOR_SUBTASKS" in trace[-2]
    assert trace[-1] == STUCK


def test_an_approval_completes_no_task_that_is_somewhere_else() -> None:
    """sipyourdrink-ltd/bernstein#3081: approving a task completes it, in any state."""
    forced = approval.with_approval(shipped("task"), "task").with_rows(row(OPEN, ApprovalGranted, DONE))
    trace = way_to("a grant needs a request", forced)
    assert "ApprovalGranted(reason='')   OPEN → DONE" in trace[-1]


def test_no_approval_is_awaited_without_end() -> None:
    """apocohq/clawdboard#16: everything waits for one person."""
    trace = way_to(
        "no work waits for a person for ever", without_timer(shipped("task-approval"), "ApprovalExpired"), ALL
    )
    assert "DONE → PENDING_APPROVAL" in trace[-2]
    assert trace[-1] == STUCK
