"""The assignment of tasks: roles, shared files, and one claim each, however many workers are free at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board_hand import ask, assigned, brief, close, fail, go, happened, make, opened, park, rest, say, split, states
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.dispatch.claims import brief_of
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system import board_properties
from lifefold.core.kernel import Created
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.budget.amounts import Amounts

# Roles


def test_a_task_goes_to_the_longest_waiting_worker_with_its_role() -> None:
    """A worker without the role goes on waiting."""
    of = opened(
        make("T0"), make("T1", "T0", role="tester"), worker_slots={"ann": (), "bob": ("tester",), "cid": ("tester",)}
    )
    ask(of, "ann", "cid", "bob")
    close(of, "T0")
    assert assigned(of) == [("worker/cid", "T1")]


def test_a_task_of_another_role_does_not_stand_in_the_way() -> None:
    """A worker that may not take the first task takes the next possible one, also one without a role."""
    of = opened(
        make("T1", role="tester", priority=1), make("T2", role="writer"), make("T3", ordinal=9),
        worker_slots={"ann": ("writer",), "bob": (), "cid": ("tester", "writer")},
    )  # fmt: skip
    ask(of, "ann")
    assert assigned(of) == [("worker/ann", "T2")]
    ask(of, "bob")
    assert assigned(of) == [("worker/bob", "T3")]
    ask(of, "cid")
    assert assigned(of) == [("worker/cid", "T1")]


def test_what_is_done_asks_for_no_role() -> None:
    """Anybody can merge it."""
    of = opened(make("T1", role="tester", needs_approval=True), worker_slots={"ann": ("tester",), "bob": ()})
    ask(park(ask(of), "T1"), "bob").give("task:T1", approval.ApprovalGranted())
    assert assigned(of) == [("worker/bob", "T1")]


# Files


def test_tasks_that_change_the_same_file_take_turns() -> None:
    """The second is begun when the first is merged: then its change is in the branch."""
    of = ask(opened(make("T1", files=("a",)), make("T2", files=("a",), ordinal=1)), "ann", "bob")
    assert states(of, "T1", "T2") == ["CLAIMED", "OPEN"]
    say(of, "T1", task.Completed)
    assert of.state("task:T2") == "OPEN"
    close(of, "T1")
    assert assigned(of) == [("worker/bob", "T2")]


@pytest.mark.parametrize("end", ["closed", "failed", "released", "cancelled", "blocked", "split", "parked", "gone"])
def test_however_a_task_is_put_out_of_hand_its_rival_goes_on(end: str) -> None:
    """Its files are free as soon as no worker has it, also when it is parked."""
    first = make("T1", files=("a/b",), needs_approval=end == "parked", most_subtasks=1, max_retries=1)
    of = ask(opened(first, make("T2", files=("a",), ordinal=1)), "ann", "bob")
    match end:
        case "closed":
            close(of, "T1")
        case "failed":
            fail(of, "T1")
        case "released":
            of.give("task:T1", task.Blocked("no key")).give("task:T1", task.Unblocked())
        case "cancelled":
            of.give("task:T1", task.Cancelled("no"))
        case "blocked":
            of.give("task:T1", task.Blocked("no key"))
        case "split":
            split(of, "T1", 1)
        case "parked":
            park(of, "T1")
        case _:
            go(of, "ann")
    if end == "gone":
        assert assigned(of) == [("worker/bob", "T1")]
    else:
        assert of.record("task:T2").owner == "bob" or of.record("task:T1+1").owner == "bob"
    assert board_properties.rivals_take_turns(of.aggregate)


def test_a_task_whose_rival_rests_is_not_kept_from_work() -> None:
    """And the one that is opened again waits in turn."""
    of = ask(opened(make("T1", files=("a",), max_retries=1), make("T2", files=("a/b",), ordinal=1)), "ann", "bob")
    ask(fail(of, "T1"))
    rest(of, "T1")
    assert states(of, "T1", "T2") == ["OPEN", "CLAIMED"]
    close(of, "T2")
    assert assigned(of) == [("worker/ann", "T1")]


def test_a_task_that_is_only_merged_or_verified_hinders_no_rival() -> None:
    """No files are changed by it that were not before."""
    of = ask(opened(make("T1", files=("a",), needs_approval=True), make("T2", files=("a",), ordinal=1)), "ann", "bob")
    ask(park(of, "T1"))
    assert states(of, "T1", "T2") == ["PENDING_APPROVAL", "CLAIMED"]
    of.give("task:T1", approval.ApprovalGranted())
    assert (of.record("task:T1").owner, of.record("task:T2").owner) == ("ann", "bob")


PATHS = st.lists(st.lists(st.sampled_from(["a", "b", "bc", ""]), min_size=1, max_size=3).map("/".join), max_size=3).map(
    tuple
)


@given(st.lists(PATHS, min_size=1, max_size=7))
def test_the_rivals_that_are_looked_up_are_the_tasks_that_overlap(files: list[tuple[str, ...]]) -> None:
    """Each with each, whatever the order in which they come: the same file, or one in a folder of the other."""
    of = opened()
    tasks = [make(f"T{n}", files=each) for n, each in enumerate(files)]
    for each in tasks:
        of.give(f"task:{each.id}", Created(each))
    found = {name: set(others) for name, others in work_of(of.aggregate).rivals.items()}
    for one in tasks:
        assert found.get(one.id, set()) == {
            other.id for other in tasks if other is not one and board_properties.overlap(one, other)
        }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a", "a", True), ("a", "a/b", True), ("a", "a/b/c", True), ("a/b", "a/c", False),
        ("a", "ab", False), ("a/b", "a/bc", False), ("a", "b/a", False), ("a/b", "b", False),
    ],
)  # fmt: skip
def test_a_folder_is_all_that_is_in_it_and_no_more(one: str, other: str, same: bool) -> None:  # noqa: FBT001 - drawn
    """A name that only begins alike is another one."""
    pair = make("T1", files=(one,)), make("T2", files=(other,))
    assert board_properties.overlap(*pair) is board_properties.overlap(*reversed(pair)) is same


# One claim each


def test_every_waiting_worker_gets_one_of_the_tasks_opened_together() -> None:
    """Tasks in their order, workers in theirs. No worker gets two, and no task is assigned twice."""
    tasks = [make(f"T{n}", "T0", ordinal=n) for n in range(1, 5)]
    of = ask(opened(make("T0"), *tasks, worker_slots=("ann", "bob", "cid", "dan")), "ann", "dan", "cid", "bob")
    close(of, "T0")
    assert sorted(assigned(of)) == [("worker/bob", "T3"), ("worker/cid", "T2"), ("worker/dan", "T1")]
    assert assigned(ask(of)) == [("worker/ann", "T4")]
    assert [of.record(f"task:T{n}").epoch for n in range(5)] == [1] * 5


def test_the_parts_of_a_task_go_to_as_many_as_wait() -> None:
    """Each to one, while they are being made."""
    of = ask(opened(make("T1", most_subtasks=3), worker_slots=("ann", "bob", "cid")), "ann", "bob", "cid")
    split(of, "T1", 3)
    assert sorted(assigned(of)) == [("worker/bob", "T1+1"), ("worker/cid", "T1+2")]
    assert assigned(ask(of)) == [("worker/ann", "T1+3")]


def test_of_rivals_that_come_free_at_once_only_one_is_given_out() -> None:
    """The first task is assigned. The other waiting workers get tasks without its files."""
    tasks = (make("T1", "T0", files=("a",)), make("T2", "T0", files=("a/b",), ordinal=1), make("T3", "T0", ordinal=2))
    of = close(ask(opened(make("T0"), *tasks, worker_slots=("ann", "bob", "cid")), "ann", "bob", "cid"), "T0")
    assert sorted(assigned(of)) == [("worker/bob", "T1"), ("worker/cid", "T3")]


def test_a_task_that_is_taken_from_one_goes_to_another_in_the_same_step() -> None:
    """Under another number; the first hears that his is over."""
    of = ask(opened(make("T1")), "ann", "bob")
    of.give("task:T1", task.Released(1, "too slow"))
    assert happened(of, "T1") == ["Released", "Claimed"]
    assert (brief(of).epoch, of.record("task:T1").owner) == (2, "bob")


def test_a_worker_that_asks_twice_is_given_one_task() -> None:
    """He waits already."""
    of = ask(opened(make("T1", "T0")))
    assert of.dismiss("worker/ann", "worker_slot:ann", worker_slot.WorkWanted()).kind == "illegal"
    assert work_of(of.aggregate).waiting == ("worker_slot:ann",)


def test_a_brief_says_what_is_left_of_a_task_and_nothing_of_others() -> None:
    """As the task has it."""
    record = make(
        "T1", needs_approval=True, stage=task.Stage.MERGE, result=3, epoch=4, verify=(("true",),), kept=2, failure="x"
    )
    left = task.Brief(
        "T1",
        4,
        "do T1",
        (("true",),),
        "x",
        2,
        needs_approval=True,
        stage=task.Stage.MERGE,
        result=3,
        share=Amounts(tokens=5),
    )
    assert brief_of(record, Amounts(tokens=5)) == left
