"""What a next run of a fleet begins with: all that is neither closed nor cancelled; nothing is done twice."""

from itertools import combinations, product

import board_hand
import fleet_worker
from lifefold.core.fleet import Plan, TaskPlan
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.system.rerun import FinishedFleet, ended, is_over, left_out, remainder
from lifefold.core.fleet.worker import desired_state
from lifefold.core.lifecycles.task import State

CHAIN = Plan(
    "chain",
    (),
    (TaskPlan("A", "do A"), TaskPlan("B", "do B", depends_on=("A",)), TaskPlan("C", "do C", depends_on=("A", "B"))),
)
NAMES = ("A", "B", "C")


def names(plan: Plan) -> set[str]:
    """Return the tasks of a plan."""
    return {each.id for each in plan.tasks}


def test_a_fleet_is_over_when_no_task_is_left_and_no_worker_is_busy() -> None:
    """All is settled, or no worker is there, and the remaining ones have stopped and left nothing."""
    ready = board_hand.opened(board_hand.make("A")).aggregate
    done = board_hand.opened(board_hand.make("A", state=State.CLOSED)).aggregate
    waits = fleet_worker.wanting()
    works = waits.aggregate
    gone = waits.give("desired_state", desired_state.StopWanted("enough")).aggregate
    assert not is_over({})
    for desk, worker, answer in ((ready, gone, False), (done, works, False), (done, gone, True)):
        assert is_over({"board": desk, "worker/ann": worker}) is answer


def test_what_is_left_is_all_but_what_is_closed_or_can_never_be_done() -> None:
    """And nothing that is left needs anything else: for every way in which three tasks can have ended."""
    for ends in product((State.CLOSED, State.CANCELLED, State.FAILED, State.BLOCKED), repeat=3):
        of: dict[str, State] = dict(zip(NAMES, ends, strict=True))
        board = board_hand.opened(*(board_hand.make(name, state=of[name]) for name in NAMES)).aggregate
        so_far = ended(board, FinishedFleet())
        left = remainder(CHAIN, so_far)
        dead = {name for name in NAMES if of[name] is State.CANCELLED}
        for each in CHAIN.tasks:
            if of[each.id] is not State.CLOSED and dead.intersection(each.depends_on):
                dead.add(each.id)
        assert names(left) == {name for name in NAMES if of[name] is not State.CLOSED} - dead, ends
        assert all(names(left) >= set(each.depends_on) for each in left.tasks), ends
        assert set(left_out(CHAIN, board, so_far)) == {each for each in dead if of[each] is not State.CANCELLED}, ends


def test_a_run_that_takes_up_what_others_have_left_remembers_all_that_they_have_closed() -> None:
    """However often: nothing that is closed anywhere is done again."""
    for first, then in product(*([set(each) for n in range(4) for each in combinations(NAMES, n)],) * 2):
        before = FinishedFleet()
        for closed in (first, then):
            tasks = (
                board_hand.make(each.id, state=State.CLOSED if each.id in closed else State.FAILED)
                for each in remainder(CHAIN, before).tasks
            )
            before = ended(board_hand.opened(*tasks).aggregate, before)
        assert set(before.closed) == first | then
        assert names(remainder(CHAIN, before)) == set(NAMES) - first - then


def test_the_next_prompt_has_what_the_last_attempt_has_failed_by() -> None:
    """And that of a task that has not failed is as it was."""
    failed = board_hand.make("A", state=State.FAILED, failure="no such file")
    before = ended(board_hand.opened(failed, board_hand.make("B", "A", state=State.BLOCKED)).aggregate, FinishedFleet())
    first, second, _ = remainder(CHAIN, before).tasks
    assert first.prompt == "do A\n\nAn earlier attempt at this task failed: no such file"
    assert second.prompt == "do B"


def test_a_task_that_was_split_is_told_which_of_its_parts_are_merged() -> None:
    """It is taken up as a whole; and by what the others have failed."""
    board = board_hand.opened(
        board_hand.make("A", state=State.BLOCKED, parts=2),
        board_hand.make("A+1", state=State.CLOSED, parent="A", prompt="write one"),
        board_hand.make("A+2", state=State.FAILED, parent="A", failure="no ink"),
    ).aggregate
    (first, *_) = remainder(CHAIN, ended(board, FinishedFleet())).tasks
    told = "it was split; A+1 is merged already (write one); A+2 failed: no ink"
    assert first.prompt == f"do A\n\nAn earlier attempt at this task failed: {told}"


def test_what_was_declined_with_the_whole_plan_is_proposed_again() -> None:
    """It was not cancelled: the fleet file may have another plan by then."""
    declined = plan_approval.Proposal(state=plan_approval.State.DECLINED)
    board = board_hand.opened(board_hand.make("A", state=State.CANCELLED), plan=declined).aggregate
    assert names(remainder(CHAIN, ended(board, FinishedFleet()))) == set(NAMES)


def test_what_was_added_to_a_run_and_is_not_in_the_plan_is_said_to_be_left_out() -> None:
    """Unless it is done, or cancelled, or a part of another one."""
    added = (
        board_hand.make("A", state=State.BLOCKED),
        board_hand.make("D", state=State.FAILED),
        board_hand.make("E", state=State.CLOSED),
        board_hand.make("F", state=State.CANCELLED),
        board_hand.make("A.1", state=State.FAILED, parent="A"),
    )
    board = board_hand.opened(*added).aggregate
    assert left_out(CHAIN, board, ended(board, FinishedFleet())) == ("D",)
