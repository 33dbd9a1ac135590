"""The effects of a task on others of the board: its dependents, its parts, and its parent."""

from typing import Any

import pytest

from aggregate_hand import Hand
from board_hand import (
    ask,
    assigned,
    brief,
    close,
    fail,
    finish,
    go,
    happened,
    make,
    opened,
    recalled,
    rest,
    say,
    split,
    states,
)
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.system import board_properties
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Created, Reaction, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Stage
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import CancelTimer, StartTimer

# Retries


def test_a_retry_that_is_granted_frees_a_whole_chain_at_once() -> None:
    """Tasks go on that an exhausted task has blocked, directly or through another one (E19)."""
    of = ask(opened(make("T1"), make("T2", "T1"), make("T3", "T2"), make("T4", "T3")))
    fail(of, "T1", "no key")
    assert states(of, "T1", "T2", "T3", "T4") == ["FAILED", "BLOCKED", "BLOCKED", "BLOCKED"]
    of.give("task:T1", fleet_task.RetryGranted("the key is there"))
    assert states(of, "T1", "T2", "T3", "T4") == ["OPEN", "OPEN", "OPEN", "OPEN"]
    assert all(of.record(f"task:T{n}").blocked_by == of.record(f"task:T{n}").reason == "" for n in (2, 3, 4))
    assert brief(ask(of)).failure == "no key"


def test_a_retry_that_is_granted_to_a_task_that_rests_ends_its_rest() -> None:
    """It costs one of the retries that it has, and no more are allowed than were."""
    of = fail(ask(opened(make("T1", max_retries=2))), "T1")
    of.give("task:T1", fleet_task.RetryGranted())
    record = of.record("task:T1")
    assert (record.state, record.retries, record.limit, record.max_retries) == (task.State.OPEN, 1, 2, 2)
    assert of.effects(CancelTimer)


def test_a_failure_that_can_not_pass_is_not_tried_again_until_a_person_lets_it() -> None:
    """And then once: the next such failure is for good again (E5)."""
    of = ask(opened(make("T1", max_retries=3)))
    fail(of, "T1", "permission denied")
    assert task.settled(of.record("task:T1"))
    assert not of.effects(StartTimer)
    ask(of.give("task:T1", fleet_task.RetryGranted()))
    fail(of, "T1", "permission denied")
    assert (of.record("task:T1").retries, task.settled(of.record("task:T1"))) == (1, True)


def test_what_lacks_two_tasks_is_freed_when_it_lacks_none() -> None:
    """Freed by one, it is blocked by the other; it never goes on while something that it waits for is lost."""
    of = opened(make("T1"), make("T2"), make("T3", "T1", "T2"))
    ask(of, "ann", "bob")
    fail(fail(of, "T1"), "T2")
    assert of.record("task:T3").blocked_by == "T1"
    of.give("task:T1", fleet_task.RetryGranted())
    assert (of.state("task:T3"), of.record("task:T3").blocked_by) == ("BLOCKED", "T2")
    of.give("task:T2", fleet_task.RetryGranted())
    assert states(of, "T1", "T2", "T3") == ["OPEN", "OPEN", "OPEN"]


def test_a_resting_task_is_not_lost_for_its_dependents() -> None:
    """Nothing that depends on it is blocked before its last retry has failed."""
    of = ask(opened(make("T1", max_retries=1), make("T2", "T1")))
    assert states(fail(of, "T1"), "T1", "T2") == ["FAILED", "OPEN"]
    ask(rest(of, "T1"))
    assert states(fail(of, "T1"), "T1", "T2") == ["FAILED", "BLOCKED"]


def test_a_task_that_was_declined_blocks_what_is_approved_after_it_and_what_was_before() -> None:
    """Whatever the order in which a person decides."""
    planned: dict[str, Any] = {"state": task.State.PLANNED}
    of = opened(make("T1", **planned), make("T2", "T1", **planned), make("T3", "T1", **planned))
    of.give("task:T2", task.Approved()).give("task:T1", task.Declined("no")).give("task:T3", task.Approved())
    assert states(of, "T1", "T2", "T3") == ["CANCELLED", "BLOCKED", "BLOCKED"]


# Roles without a worker


def test_a_task_with_a_role_that_no_worker_has_is_blocked() -> None:
    """From the beginning, or as soon as the last who has it is gone; the others go on."""
    of = opened(
        make("T1", role="tester"), make("T2", role="writer"), make("T3"), worker_slots={"ann": ("tester",), "bob": ()}
    )
    assert states(of, "T1", "T2", "T3") == ["OPEN", "BLOCKED", "OPEN"]
    assert of.record("task:T2").reason == "asks for the role writer, and no worker is left that has it"
    go(of, "ann")
    assert states(of, "T1", "T3") == ["BLOCKED", "OPEN"]


def test_what_the_last_with_a_role_had_in_hand_is_blocked_when_it_is_given_back() -> None:
    """No other worker could take it. A merge needs no role, so it goes on."""
    of = opened(
        make("T1", role="tester"),
        make("T2", role="tester", needs_approval=True),
        worker_slots={"ann": ("tester",), "bob": ()},
    )
    ask(of)
    assert states(go(of, "ann"), "T1", "T2") == ["BLOCKED", "BLOCKED"]


# Parts


def whole(parts: int = 2, **fields: Any) -> Hand:
    """Return a board on which ann has split T1, and has nothing in hand any more."""
    fields = {"most_subtasks": 5, **fields}
    return ask(split(ask(opened(make("T1", **fields), make("T2", "T1"))), "T1", parts), "bob")


def test_the_parts_of_a_task_are_tasks_with_what_it_has() -> None:
    """Its role, priority, place and retries; with files and commands of their own, and without an approval."""
    proof = (("make", "test"),)
    of = ask(
        opened(
            make(
                "T1",
                max_retries=2,
                role="tester",
                priority=1,
                ordinal=7,
                most_subtasks=5,
                subtasks_ms=9,
                approval_ms=11,
                needs_approval=True,
            ),
            worker_slots={"ann": ("tester",)},
        )
    )
    split(of, "T1", 2, files=("a",), verify=proof)
    part = of.record("task:T1+2")
    assert (part.state, part.prompt, part.verify, part.files) == (task.State.OPEN, "part 2", proof, ("a",))
    assert (part.parent, part.role, part.priority, part.ordinal) == ("T1", "tester", 1, 7)
    assert (part.max_retries, part.limit, part.subtasks_ms, part.needs_approval) == (2, 2, 9, False)
    assert part.approval_ms == 11
    assert part.most_subtasks == 2


def test_a_worker_that_splits_its_task_gives_it_up_and_gets_other_work() -> None:
    """It hears that its claim is over; a part of it may well be its next task."""
    of = ask(opened(make("T1", most_subtasks=2)))
    split(of, "T1")
    assert recalled(of) == [("worker/ann", assignment.Recalled("T1", 1, ""))]
    assert assigned(ask(of)) == [("worker/ann", "T1+1")]


def test_a_task_with_closed_parts_is_verified_as_a_whole_by_any_free_worker() -> None:
    """Under a new number, with nothing to be worked at; only then is it closed, and what waits for it goes on (E7)."""
    of = close(ask(whole()), "T1+1")
    assert of.state("task:T1") == "WAITING_FOR_SUBTASKS"
    ask(close(of, "T1+2"), "ann")
    assert (of.state("task:T1"), of.record("task:T1").owner) == ("DONE", "ann")
    assert of.record("task:T1").stage is Stage.VERIFY
    assert states(ask(close(of, "T1"), "ann"), "T1", "T2") == ["CLOSED", "CLAIMED"]


def test_what_the_parts_came_to_can_be_rejected_and_is_then_worked_at_again() -> None:
    """By one worker, all of it: the parts are closed, and no task waits for them again."""
    of = whole(1, max_retries=1)
    ask(close(of, "T1+1"), "bob")
    say(of, "T1", task.Rejected, reason="does not fit together")
    rest(of, "T1")
    ask(of)
    record = of.record("task:T1")
    assert (record.state, record.stage, record.waits_for_parts, record.parts) == (
        task.State.CLAIMED,
        Stage.WORK,
        False,
        1,
    )


def test_parts_that_took_too_long_complete_their_whole_all_the_same() -> None:
    """It is blocked while they are not closed; when it waits for them again, there is nothing to wait for (E8, E10)."""
    of = whole(2)
    of.elapse("task:T1", "SubtasksOverdue")
    assert (of.state("task:T1"), of.record("task:T1").reason) == ("BLOCKED", "its subtasks take too long")
    ask(close(of, "T1+1"), "bob")
    assert of.state("task:T1") == "BLOCKED"
    close(of, "T1+2")
    assert happened(of, "T1") == ["Unblocked", "Decomposed", "SubtasksCompleted"]
    assert (of.state("task:T1"), of.record("task:T1").stage) == ("DONE", Stage.VERIFY)


def test_a_task_that_is_unblocked_waits_for_its_parts_again() -> None:
    """No worker has it meanwhile (E10)."""
    of = whole().elapse("task:T1", "SubtasksOverdue").give("task:T1", task.Unblocked())
    assert of.state("task:T1") == "WAITING_FOR_SUBTASKS"
    assert of.part("task:T1", "SubtasksOverdue").deadline_ms == of.now_ms + fleet_task.SUBTASKS_MS


def test_a_part_that_is_lost_blocks_its_whole_at_once_and_frees_it() -> None:
    """And everything that waits for the whole, in turn; so does the way back (E7)."""
    of = fail(whole(), "T1+1", "hopeless")
    assert states(of, "T1", "T2", "T1+2") == ["BLOCKED", "BLOCKED", "OPEN"]
    assert of.record("task:T1").reason == "T1+1, a part of it, is FAILED"
    of.give("task:T1+1", fleet_task.RetryGranted())
    assert states(of, "T1", "T2", "T1+1") == ["WAITING_FOR_SUBTASKS", "OPEN", "OPEN"]


def test_a_part_of_a_part_that_is_lost_blocks_all_that_wait_for_it() -> None:
    """Up to the top, and beyond."""
    of = whole(1)
    split(of, "T1+1", 1)
    ask(of, "bob")
    fail(of, "T1+1+1")
    assert states(of, "T1+1", "T1", "T2") == ["BLOCKED", "BLOCKED", "BLOCKED"]
    of.give("task:T1+1+1", fleet_task.RetryGranted())
    assert states(of, "T1+1", "T1", "T2") == ["WAITING_FOR_SUBTASKS", "WAITING_FOR_SUBTASKS", "OPEN"]


def test_a_task_is_cancelled_with_all_its_parts_and_their_parts_each_once() -> None:
    """Their workers are told. Done and failed parts stay as they are (E16, E36)."""
    of = whole(4)
    ask(split(of, "T1+1"), "bob", "ann")
    assert states(of, "T1+1", "T1+1+1", "T1+1+2") == ["WAITING_FOR_SUBTASKS", "CLAIMED", "CLAIMED"]
    ask(close(of, "T1+1+1"), "bob")
    finish(of, "T1+2")
    of.give("task:T1", task.Cancelled("not needed"))
    assert states(of, "T1", "T1+1", "T1+1+1", "T1+1+2") == ["CANCELLED", "CANCELLED", "CLOSED", "CANCELLED"]
    assert states(of, "T1+2", "T1+3", "T1+4") == ["DONE", "CANCELLED", "CANCELLED"]
    assert [happened(of, name) for name in ("T1+1", "T1+1+2", "T1+3")] == [["Cancelled"]] * 3
    recall = assignment.Recalled("T1+1+2", 1, "T1+1 is cancelled", abort_reason=AbortReason.PARENT_ABORTED)
    assert recalled(of) == [("worker/ann", recall)]
    assert of.record("task:T1+3").reason == "T1 is cancelled"
    assert board_properties.view_agrees(of.aggregate)


def test_a_part_that_is_not_looked_up_is_found_by_what_is_declared() -> None:
    """Also a part of a part, which belongs to the task at the top. No other property sees it sooner."""
    of = split(ask(opened(make("T1", most_subtasks=4))), "T1")
    split(ask(of, "bob"), "T1+1", 1)
    looked_up = of.aggregate.views["work"]
    assert {name: list(found) for name, found in looked_up.parts.items()} == {"T1": ["T1+1", "T1+2", "T1+1+1"]}
    assert board_properties.view_agrees(of.aggregate)
    for parts in (looked_up.parts.remove("T1"), looked_up.parts.set("T1", looked_up.parts["T1"].delete(2))):
        views = of.aggregate.views.set("work", replace(looked_up, parts=parts))
        assert not board_properties.view_agrees(replace(of.aggregate, views=views))


def test_parts_that_share_files_are_cancelled_before_a_worker_gets_one() -> None:
    """A worker that waits for its files gets no task that is about to be cancelled."""
    of = split(ask(opened(make("T1", most_subtasks=3), make("T9", "T1"))), "T1", 3, files=("a",))
    ask(of, "ann", "bob")
    assert states(of, "T1+1", "T1+2", "T1+3") == ["CLAIMED", "OPEN", "OPEN"]
    of.give("task:T1", task.Cancelled("no"))
    assert assigned(of) == []
    assert states(of, "T1+1", "T1+2", "T1+3") == ["CANCELLED"] * 3


def test_a_part_of_a_cancelled_task_that_rests_is_cancelled_when_it_is_opened() -> None:
    """A failed task cannot be cancelled, and is not assigned in between (E36)."""
    of = fail(whole(2, max_retries=1), "T1+1")
    ask(of, "bob")
    of.give("task:T1", task.Cancelled("no"))
    assert states(of, "T1+1", "T1+2") == ["FAILED", "CANCELLED"]
    ask(of)
    rest(of, "T1+1")
    assert (happened(of, "T1+1"), assigned(of)) == (["Rested", "Cancelled"], [])


def test_a_task_can_be_split_again_as_far_as_it_may() -> None:
    """The parts are numbered on, in all of its attempts together; one too many is refused."""
    of = whole(2, max_retries=1, most_subtasks=3)
    for name in ("T1+1", "T1+2"):
        if of.record(f"task:{name}").owner == "":
            ask(of, "bob")
        close(of, name)
    ask(of, "bob")
    say(of, "T1", task.Rejected, reason="no")
    ask(rest(of, "T1"))
    epoch = of.record("task:T1").epoch
    assert (
        of.must_refuse("task:T1", fleet_task.Split(epoch, (fleet_task.Subtask(), fleet_task.Subtask()))).kind
        == "illegal"
    )
    split(of, "T1", 1)
    assert of.record("task:T1+3").parent == "T1"


def test_a_task_that_comes_later_takes_part_like_any_other() -> None:
    """It is blocked if what it depends on is lost, and given out if nothing hinders it."""
    of = opened(make("T1"))
    of.give("task:T1", task.Cancelled("no"))
    ask(of)
    of.give("task:T2", Created(make("T2", "T1"))).give("task:T3", Created(make("T3")))
    assert (states(of, "T2", "T3"), assigned(of)) == (["BLOCKED", "CLAIMED"], [("worker/ann", "T3")])


@pytest.mark.parametrize("by", ["T1", "T2"])
def test_only_what_a_task_lacks_gives_it_back(by: str) -> None:
    """A word about another one changes nothing."""
    of = fail(ask(opened(make("T1"), make("T2"), make("T3", "T1"))), "T1")
    answer = of.offer(of.message("test", "task:T3", fleet_task.DependencyBack(by)))
    assert isinstance(answer, Reaction)
    assert bool(answer.refusals) is (by == "T2")


def test_a_seat_that_is_gone_is_left_alone_by_its_roles() -> None:
    """Another one that has the role is enough."""
    of = opened(make("T1", role="tester"), worker_slots={"ann": ("tester",), "bob": ("tester", "writer")})
    assert states(go(of, "ann"), "T1") == ["OPEN"]
    assert assigned(ask(of, "bob")) == [("worker/bob", "T1")]
    assert of.record("worker_slot:bob") == worker_slot.WorkerSlot(
        worker_slot.State.WORKING, "T1", roles=("tester", "writer")
    )
