"""The board: assignments, failures, and the end of a fleet."""

import pytest

from aggregate_hand import Hand
from board_hand import ask, assigned, close, fail, go, happened, make, opened, recalled, rest, split, states
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.dispatch.task_index import fold, work_of
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Envelope, Event
from lifefold.core.lifecycles import task
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import Tell

# Claims


def test_a_waiting_worker_gets_the_first_ready_task_by_priority_then_by_place() -> None:
    """Priority 1 is the highest; among equals the plan's order decides."""
    of = opened(
        make("late", priority=2, ordinal=3), make("early", priority=2, ordinal=1),
        make("urgent", priority=1, ordinal=2), make("idle", priority=3, ordinal=0),
    )  # fmt: skip
    order: list[str] = []
    for _ in range(4):
        ask(of)
        (given,) = assigned(of)
        order.append(given[1])
        close(of, given[1])
    assert order == ["urgent", "early", "late", "idle"]


def test_a_task_is_handed_over_with_its_brief_and_its_seat() -> None:
    """The owner gets a new epoch, the prompt, the proof, and why the last attempt failed."""
    of = ask(opened(make("T1")))
    assert of.record("task:T1").owner == "ann"
    assert of.record("worker_slot:ann") == worker_slot.WorkerSlot(worker_slot.State.WORKING, "T1")
    assert of.told() == [("worker/ann", "assignment", assignment.Assigned(task.Brief("T1", 1, "do T1", (), "", 1)))]


def test_exactly_one_worker_gets_a_task() -> None:
    """The second one waits; the worker slot that has waited longest is the next."""
    of = ask(
        ask(opened(make("T1"), make("T2", "T1"), make("T3", "T1", ordinal=1), worker_slots=("ann", "bob", "cid"))),
        "bob",
    )
    assert (of.state("worker_slot:ann"), of.state("worker_slot:bob")) == ("Working", "Waiting")
    ask(of, "cid")
    close(of, "T1")
    assert sorted(assigned(of)) == [("worker/bob", "T2"), ("worker/cid", "T3")]


def test_dependencies_wait_for_closed() -> None:
    """Done is not enough: a worktree starts from the fleet's branch, and only what is merged is in it."""
    of = ask(opened(make("T1"), make("T2", "T1")))
    ask(of, "bob")
    of.hear("worker/ann", "task:T1", task.Started(1)).hear("worker/ann", "task:T1", task.Completed(1))
    assert (of.state("task:T1"), of.state("task:T2"), of.told()) == ("DONE", "OPEN", [])
    of.hear("worker/ann", "task:T1", task.Verified(1, "c0ffee"))
    assert assigned(of) == [("worker/bob", "T2")]


def test_a_task_waits_for_all_that_it_depends_on() -> None:
    """Each of them once, even if the plan names one twice."""
    of = ask(opened(make("T1", priority=1), make("T2"), make("T3", "T1", "T2", "T1")))
    close(of, "T1")
    ask(of)
    ask(of, "bob")
    assert of.state("task:T3") == "OPEN"
    close(of, "T2")
    assert assigned(of) == [("worker/bob", "T3")]
    assert not work_of(of.aggregate).ready


def test_a_task_that_was_cancelled_is_not_given_out_when_its_dependency_closes() -> None:
    """And it does not overtake a waiting worker."""
    of = ask(opened(make("T1"), make("T2", "T1", priority=1), make("T3", "T1")))
    ask(of, "bob")
    of.give("task:T2", task.Cancelled("not needed"))
    close(of, "T1")
    assert assigned(of) == [("worker/bob", "T3")]


# Failures


def test_a_failed_task_rests_and_is_opened_again_while_it_has_retries() -> None:
    """The next owner learns why; the last failure is for good (E5, E6)."""
    of = ask(opened(make("T1", max_retries=1)))
    fail(of, "T1", "first")
    assert (of.state("task:T1"), of.record("task:T1").retries) == ("FAILED", 0)
    rest(of, "T1")
    assert (of.now_ms, of.state("task:T1"), of.record("task:T1").retries) == (30_000, "OPEN", 1)
    ask(of)
    assert of.told() == [
        ("worker/ann", "assignment", assignment.Assigned(task.Brief("T1", 2, "do T1", (), "first", 1)))
    ]
    fail(of, "T1", "second")
    assert (of.state("task:T1"), of.record("task:T1").reason) == ("FAILED", "second")


def test_a_task_that_was_given_back_is_handed_over_without_a_failure_that_never_was() -> None:
    """Only what failed is told the next owner, and it is told whatever happened after it."""
    of = ask(opened(make("T1", max_retries=1)))
    of.hear("worker/ann", "task:T1", task.Released(1, "stopped"))
    assert of.record("task:T1").reason == "stopped"
    ask(of)
    assert of.told() == [("worker/ann", "assignment", assignment.Assigned(task.Brief("T1", 2, "do T1", (), "", 1)))]
    ask(rest(fail(of, "T1", "tests fail"), "T1"))
    of.hear("worker/ann", "task:T1", task.Released(3, "stopped again"))
    ask(of)
    assert of.told() == [
        ("worker/ann", "assignment", assignment.Assigned(task.Brief("T1", 4, "do T1", (), "tests fail", 1)))
    ]


def test_a_rejected_result_is_a_failure() -> None:
    """Whether verification or the merge refused it."""
    of = ask(opened(make("T1", max_retries=1)))
    of.hear("worker/ann", "task:T1", task.Completed(1)).hear("worker/ann", "task:T1", task.Rejected(1, "conflict"))
    assert (of.state("task:T1"), of.record("task:T1").reason) == ("FAILED", "conflict")
    rest(of, "T1")
    assert (of.state("task:T1"), of.record("task:T1").retries) == ("OPEN", 1)


def test_what_depends_on_an_exhausted_task_is_blocked_with_the_reason() -> None:
    """Its dependents too, in turn. It is not assigned again and again (E19, sipyourdrink-ltd/bernstein#3621)."""
    of = ask(opened(make("T1"), make("T2", "T1"), make("T3", "T2"), make("T4")))
    fail(of, "T1")
    assert [of.state(f"task:T{n}") for n in range(1, 5)] == ["FAILED", "BLOCKED", "BLOCKED", "OPEN"]
    assert of.record("task:T2").reason == "depends on T1, which is FAILED"
    assert of.record("task:T3").reason == "depends on T2, which is BLOCKED"


def test_what_depends_on_a_task_that_is_retried_waits_for_it_and_is_done_after_it() -> None:
    """The retry has the same id, so nothing that waits is left behind (E5, sipyourdrink-ltd/bernstein#4376)."""
    of = ask(opened(make("T1", max_retries=1), make("T2", "T1")))
    ask(fail(of, "T1"))
    assert states(of, "T1", "T2") == ["FAILED", "OPEN"]
    rest(of, "T1")
    assert (of.state("task:T1"), of.record("task:T1").retries, of.state("task:T2")) == ("CLAIMED", 1, "OPEN")
    ask(close(of, "T1"))
    assert of.state("task:T2") == "CLAIMED"


def test_what_depends_on_a_cancelled_task_is_blocked() -> None:
    """It will not be done either (E19)."""
    of = opened(make("T1"), make("T2", "T1"))
    of.give("task:T1", task.Cancelled("no"))
    assert of.record("task:T2").reason == "depends on T1, which is CANCELLED"


def test_a_task_that_was_unblocked_is_given_out_when_it_is_ready() -> None:
    """No worker asks again."""
    of = ask(opened(make("T1"), make("T2")))
    of.give("task:T1", task.Blocked("no key"))
    ask(of, "bob")
    assert of.state("worker_slot:bob") == "Working"
    close(of, "T2")
    ask(of)
    of.give("task:T1", task.Unblocked())
    assert assigned(of) == [("worker/ann", "T1")]


@pytest.mark.parametrize("lost", ["cancelled", "failed", "blocked"])
def test_a_task_that_is_opened_while_it_waits_for_what_will_not_be_done_is_blocked_again(lost: str) -> None:
    """No worker could ever take it, and the fleet would never end.

    E19; what a task depends on is asked whenever it is opened, not only when it is made (777genius/agent-teams-ai#618).
    """
    of = ask(opened(make("T1"), make("T2", "T1"), make("T3", "T2")))
    if lost == "failed":
        fail(of, "T1")
    else:
        of.give("task:T1", task.Cancelled("no") if lost == "cancelled" else task.Blocked("no key"))
    of.give("task:T2", task.Unblocked())
    assert of.state("task:T2") == "BLOCKED"
    assert of.record("task:T2").reason == f"depends on T1, which is {of.state('task:T1')}"
    assert board.finished(of.aggregate)


def test_what_depends_on_a_task_goes_on_by_itself_when_that_is_unblocked_and_waits_for_it() -> None:
    """Also if it depends on another one, too, that is not known here yet."""
    of = ask(opened(make("T1"), make("T2", "T1", "T9")))
    of.give("task:T1", task.Blocked("no key"))
    assert states(of, "T1", "T2") == ["BLOCKED", "BLOCKED"]
    of.give("task:T1", task.Unblocked())
    assert states(of, "T1", "T2") == ["OPEN", "OPEN"]


def test_a_report_under_a_stale_epoch_is_refused() -> None:
    """A worker that lost its task can say nothing about it any more (E12)."""
    of = ask(opened(make("T1", max_retries=3)))
    rest(fail(of, "T1"), "T1")
    ask(of, "bob")
    for late in (
        task.Started(1),
        task.Completed(1),
        task.Failed(1),
        task.Released(1),
        task.Rejected(1),
        task.Verified(1),
    ):
        assert of.dismiss("worker/ann", "task:T1", late).kind == "illegal"
    assert (of.state("task:T1"), of.record("task:T1").owner) == ("CLAIMED", "bob")


# Recalls


@pytest.mark.parametrize("started", [False, True], ids=["claimed", "in progress"])
@pytest.mark.parametrize(
    ("event", "reason", "abort_reason"),
    [
        (task.Cancelled("not any more"), "not any more", AbortReason.USER_INTERRUPT),
        (task.Blocked("no key"), "no key", AbortReason.SHUTDOWN_SIGNAL),
        (task.Released(1, "taken away"), "taken away", AbortReason.SHUTDOWN_SIGNAL),
        (task.Failed(1, "hopeless"), "hopeless", AbortReason.SHUTDOWN_SIGNAL),
        (fleet_task.Split(1, (fleet_task.Subtask(),)), "", AbortReason.SHUTDOWN_SIGNAL),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_owner_whose_claim_an_operator_ends_is_recalled(
    started: bool,  # noqa: FBT001 - drawn
    event: Event,
    reason: str,
    abort_reason: AbortReason,
) -> None:
    """Which claim, and why; nothing that comes of it counts any more (E20)."""
    of = ask(opened(make("T1", most_subtasks=1)))
    if started:
        of.hear("worker/ann", "task:T1", task.Started(1))
    of.give("task:T1", event)
    assert recalled(of) == [("worker/ann", assignment.Recalled("T1", 1, reason, abort_reason=abort_reason))]
    assert of.dismiss("worker/ann", "task:T1", task.Completed(1)).kind == "illegal"


def test_an_owner_that_ends_its_claim_itself_is_told_nothing() -> None:
    """It knows."""
    for event in (task.Released(1, "stopped"), task.Failed(1, "broken"), task.Completed(1)):
        assert recalled(ask(opened(make("T1"))).hear("worker/ann", "task:T1", event)) == []


def test_a_claim_of_an_unknown_worker_is_recalled_from_no_worker() -> None:
    """A person may claim a task, and a worker that is gone hears nothing."""
    of = opened(make("T1"))
    of.offer(Envelope("task:T1", task.Claimed("a person"), 0))
    assert recalled(of.give("task:T1", task.Cancelled("no"))) == []
    gone = ask(opened(make("T1"))).hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone())
    assert recalled(gone) == []


def test_a_recalled_worker_gets_other_work_as_soon_as_it_wants_it() -> None:
    """And its task goes to a waiting worker."""
    of = ask(opened(make("T1"), make("T2", "T1")))
    ask(of, "bob")
    of.give("task:T1", task.Released(1, "taken away"))
    assert assigned(of) == [("worker/bob", "T1")]
    close(of, "T1")
    assert assigned(ask(of)) == [("worker/ann", "T2")]


def test_done_work_cannot_be_cancelled() -> None:
    """What is done is verified and merged, and counts (E16)."""
    of = ask(opened(make("T1"))).hear("worker/ann", "task:T1", task.Completed(1))
    assert of.must_refuse("task:T1", task.Cancelled("no")).kind == "illegal"


# Workers that go


def test_the_task_of_a_worker_that_is_gone_is_released() -> None:
    """From CLAIMED directly, from IN_PROGRESS by way of ORPHANED; the next one waiting gets it (E11)."""
    for started in (False, True):
        of = ask(opened(make("T1")))
        if started:
            of.hear("worker/ann", "task:T1", task.Started(1))
        ask(of, "bob")
        of.hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone("killed"))
        assert happened(of, "T1") == [*(["Orphaned"] if started else []), "Released", "Claimed"]
        assert assigned(of) == [("worker/bob", "T1")]
        assert of.record("task:T1").epoch == 2
        assert of.record("worker_slot:ann") == worker_slot.WorkerSlot(worker_slot.State.GONE, "", "killed")


def test_unmerged_work_of_a_gone_worker_is_rejected() -> None:
    """It counts as a failure: no worker will merge it."""
    of = ask(opened(make("T1", max_retries=1)))
    of.hear("worker/ann", "task:T1", task.Completed(1)).hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone())
    record = of.record("task:T1")
    assert (record.state, record.reason, record.failure) == (task.State.FAILED, "ann is gone", "ann is gone")
    rest(of, "T1")
    assert (of.state("task:T1"), of.record("task:T1").retries) == ("OPEN", 1)


def test_a_worker_that_goes_leaves_alone_what_is_not_its_own() -> None:
    """A task that it has given back, or that was cancelled in its hands, or nothing at all."""
    of = ask(opened(make("T1"), make("T2"), worker_slots=("ann", "bob", "cid")))
    of.hear("worker/ann", "task:T1", task.Released(1, "stopped"))
    ask(of, "bob")
    assert of.record("task:T1").owner == "bob"
    of.hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone())
    assert (of.record("task:T1").owner, of.state("task:T1")) == ("bob", "CLAIMED")
    of.give("task:T1", task.Cancelled("no")).hear("worker/bob", "worker_slot:bob", worker_slot.WorkerGone())
    assert of.state("task:T1") == "CANCELLED"
    of.hear("worker/cid", "worker_slot:cid", worker_slot.WorkerGone())
    assert board.finished(of.aggregate)


def test_a_task_waits_for_its_subtasks_although_a_worker_is_gone() -> None:
    """No worker has it; its subtasks decide."""
    of = go(split(ask(opened(make("T1", most_subtasks=2))), "T1"), "ann")
    assert states(of, "T1", "T1+1", "T1+2") == ["WAITING_FOR_SUBTASKS", "OPEN", "OPEN"]


def test_a_worker_that_closed_its_last_task_and_goes_changes_nothing_more() -> None:
    """Closed work stays closed."""
    of = close(ask(opened(make("T1"), make("T2", "T1"))), "T1")
    of.hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone())
    assert of.state("task:T1") == "CLOSED"


# The end


def home(of: Hand) -> list[str]:
    """Return who was sent home by the last reaction."""
    return [
        to
        for to, entity, event in of.told()
        if entity == "desired_state" and isinstance(event, desired_state.StopWanted)
    ]


def test_when_every_task_is_settled_all_present_workers_are_stopped() -> None:
    """In the order of their names, whatever they do; who is gone already is left alone."""
    of = ask(opened(make("T1"), make("T2", ordinal=1), worker_slots=("dan", "ann", "bob", "cid")))
    of.hear("worker/cid", "worker_slot:cid", worker_slot.WorkerGone())
    close(of, "T1")
    assert (home(of), board.finished(of.aggregate)) == ([], False)
    ask(of)
    fail(of, "T2")
    assert home(of) == ["worker/ann", "worker/bob", "worker/dan"]
    assert board.finished(of.aggregate)


@pytest.mark.parametrize("last", ["closed", "exhausted", "cancelled", "blocked"])
def test_any_way_to_settle_the_last_task_ends_the_fleet(last: str) -> None:
    """Done, failed for good, cancelled, or waiting for a decision; all of them are transitions.

    E18; sipyourdrink-ltd/bernstein#5967.
    """
    of = ask(opened(make("T1")))
    match last:
        case "closed":
            close(of, "T1")
        case "exhausted":
            fail(of, "T1")
        case "cancelled":
            of.give("task:T1", task.Cancelled("no"))
        case _:
            of.give("task:T1", task.Blocked("no key"))
    assert home(of) == ["worker/ann", "worker/bob"]


def test_a_retry_keeps_every_worker() -> None:
    """A failed task with retries left is not settled."""
    of = fail(ask(opened(make("T1", max_retries=1))), "T1")
    assert home(of) == []


def test_a_fleet_without_workers_is_finished() -> None:
    """No worker is left, however many tasks there are."""
    of = opened(make("T1"))
    of.hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone()).hear(
        "worker/bob", "worker_slot:bob", worker_slot.WorkerGone()
    )
    assert board.finished(of.aggregate)
    assert of.state("task:T1") == "OPEN"
    assert of.effects(Tell) == []


def test_the_view_passes_over_what_it_does_not_know() -> None:
    """Only tasks and worker slots are counted."""
    of = opened(make("T1"))
    (step, *_) = of.reaction.transitions
    work = work_of(of.aggregate)
    assert fold(work, type(step)("other", None, step.after, step.event, 0, "", ())) is work
