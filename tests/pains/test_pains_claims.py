"""Claims that are taken twice, reports of claims that are over, tasks that are parked: each planted, found shortly."""

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
from planted import ALL, STUCK, shipped, way_to
from property_ground import changed, without_timer

OPEN, CLAIMED, DONE = State.OPEN, State.CLAIMED, State.DONE
FENCE: Final = "a report of another claim changes nothing"


def test_who_comes_second_finds_the_task_claimed() -> None:
    """anthropics/claude-code#22239: no claim is atomic, and two of three workers do the same task."""
    twice = shipped("task").with_rows(row(CLAIMED, Claimed, CLAIMED, task.claim))
    way = way_to("nobody claims what somebody has", twice)
    assert ["Claimed(owner='worker')" in line for line in way[-2:]] == [True, True]


def test_a_claim_that_is_told_twice_is_one() -> None:
    """librefang/librefang#5961: the claims race, and each is announced."""
    twice = shipped("turn").with_rows(row(turn.State.CLAIMING, turn.TaskClaimed, STAY, turn.take_on))
    way = way_to("a report that comes again", twice)
    assert ["TaskClaimed(turn=1, id='x'" in line for line in way] == [True, True]


def _by_anybody(t: Task, _e: Completed) -> Step[Task, Any]:
    return Step(replace(t, owner=""))


def test_only_the_present_owner_completes_a_task() -> None:
    """camunda/camunda#57335: a worker whose lease is over completes the job that another one has."""
    way = way_to(FENCE, _unfenced(row(State.IN_PROGRESS, Completed, DONE, _by_anybody)))
    assert "Completed(epoch=1)" not in way[-1]
    assert "IN_PROGRESS → DONE" in way[-1]


def test_a_former_owner_strips_nobody_of_a_claim() -> None:
    """aegra/aegra#502: a worker that was given up for dead lets go what its replacement has."""
    way = way_to(FENCE, _unfenced(row(CLAIMED, Released, OPEN)))
    assert "Released(epoch=1" not in way[-1]
    assert "CLAIMED → OPEN" in way[-1]


def _overwritten(t: Task, _e: Started) -> Step[Task, Any]:
    return Step(replace(t, owner="the former one"))


def test_a_former_owner_begins_nobodys_work() -> None:
    """aegra/aegra#547: a worker that was given up for dead overwrites what its replacement has."""
    way = way_to(FENCE, _unfenced(row(CLAIMED, Started, State.IN_PROGRESS, _overwritten)))
    assert "Started(epoch=1)" not in way[-1]
    assert "CLAIMED → IN_PROGRESS" in way[-1]


def _unfenced(more: Row[Any]) -> Machine[Any]:
    """Return a task that takes reports of other claims, too, and shows whose it has taken."""
    old = shipped("task")
    return rebuilt(old, rows=(*old.rows, more))


def _had_it(t: Task, e: Completed) -> bool:
    return e.epoch == t.epoch > 0


def test_a_claim_whose_lease_is_over_completes_nothing() -> None:
    """imtms/tagent-core#56: renewing, completing and failing are possible with a lease that has expired."""
    late = row(OPEN, Completed, DONE, when=_had_it)
    old = shipped("task-governed")
    copy = rebuilt(old, rows=(late, *old.rows))
    way = way_to("who has lost a task begins, ends and gives back nothing", copy, said=(Approved, Claimed, Completed))
    assert "LeaseExpired" in way[-2]
    assert "OPEN → DONE" in way[-1]


def _dropped(t: GovernedTask, _e: Completed) -> Step[Task, Any]:
    return Step(t)


def test_a_report_that_comes_too_late_is_kept() -> None:
    """majiayu000/harness#1878: what is completed after the lease is dropped, and nobody hears of it."""
    silent = changed(shipped("task-governed"), "row(ANY, Completed", action=_dropped)
    way = way_to("a report that changes nothing is kept", silent, said=(Approved, Claimed, Completed))
    assert "Completed(epoch=" in way[-1]
    assert "KeepDeadLetter" not in way[-1]


def _cancelled_alone(t: GovernedTask, e: Cancelled) -> Step[Task, Any]:
    return Step(task.explain(t, e).record)


def test_who_works_at_a_cancelled_task_is_ended() -> None:
    """NousResearch/hermes-agent#57596: the task is archived, and its worker goes on."""
    alone = instead(shipped("task-governed"), row(CLAIMED, Cancelled, State.CANCELLED, _cancelled_alone))
    said = (Approved, Claimed, Cancelled)
    way = way_to("the session of who works at a cancelled task is ended", alone, said=said)
    assert "CLAIMED → CANCELLED" in way[-1]
    assert "AbortSession" not in way[-1]


def test_what_has_to_wait_is_not_begun() -> None:
    """anthropics/claude-code#1314: work is begun before the quota that it waits for is there again."""
    hasty = instead(shipped("task-governed"), row(OPEN, Claimed, CLAIMED, task.claim))
    way = way_to("nobody claims a task that has to rest", hasty, said=(Approved, Claimed, Failed, task.Retried))
    assert "FAILED → OPEN" in way[-2]
    assert "OPEN → CLAIMED" in way[-1]


def _unrecorded(t: Task, e: Claimed) -> Step[Task, Any]:
    return Step(replace(task.claim(t, e).record, kept=t.kept))


def test_who_works_knows_from_where_to_go_on() -> None:
    """Wred/tmux-delta#18: the id under which a session could be resumed is never recorded."""
    unknown = instead(shipped("task"), row(OPEN, Claimed, CLAIMED, _unrecorded))
    way = way_to("what is kept of unfinished work is gone on from", unknown)
    assert "OPEN → CLAIMED" in way[-1]


def test_a_failure_has_somebody_who_reports_it() -> None:
    """elizaOS/eliza#13771: nothing ever reports that a sub-agent has failed, and it is stuck."""
    owned = frozenset({CLAIMED, State.IN_PROGRESS, State.ORPHANED})
    way = way_to("every claim ends", shipped("task").without_rows((owned, Failed)), states=ALL)
    assert "OPEN → CLAIMED" in way[-2]


def test_who_waits_for_subtasks_does_not_wait_for_ever() -> None:
    """nick-pape/grackle#186: children that were faster than the question leave their parent parked."""
    parked = without_timer(shipped("task-governed"), "SubtasksOverdue")
    way = way_to("WAITING_FOR_SUBTASKS does not last for ever", parked, ALL, (Approved, task.Decomposed))
    assert "OPEN → WAITING_FOR_SUBTASKS" in way[-2]
    assert way[-1] == STUCK


def test_an_approval_completes_no_task_that_is_somewhere_else() -> None:
    """sipyourdrink-ltd/bernstein#3081: to approve a task completes it, wherever it is."""
    forced = approval.with_approval(shipped("task"), "task").with_rows(row(OPEN, ApprovalGranted, DONE))
    way = way_to("nobody agrees to what was not asked", forced)
    assert "ApprovalGranted(reason='')   OPEN → DONE" in way[-1]


def test_nobody_is_waited_for_without_end() -> None:
    """apocohq/clawdboard#16: everything waits for one person."""
    way = way_to("nobody is waited for for ever", without_timer(shipped("task-approval"), "ApprovalExpired"), ALL)
    assert "DONE → PENDING_APPROVAL" in way[-2]
    assert way[-1] == STUCK
