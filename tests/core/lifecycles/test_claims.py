"""Claims: the claim that a report without a proof is about."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import Step
from lifefold.core.lifecycles.claims import Claims
from lifefold.core.lifecycles.task import Claimed, Orphaned, Released, Started, State, Task, machine
from lifefold.core.lifecycles.task_profiles import GovernedTask, governed

NO_CLAIMS: Final = Claims()


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_a_report_of_an_earlier_owner_is_about_its_own_last_claim(owners: list[str]) -> None:
    """A later owner's claim does not count; a report of an actor without a claim is about the present one (E12)."""
    claims, task = NO_CLAIMS, Task(state=State.OPEN)
    for owner in owners:
        for event in (Claimed(owner), Released(task.epoch + 1)):
            taken = machine.step(task, event)
            assert isinstance(taken, Step)
            task, claims = taken.record, claims.after(event, taken.record)
            held = task.epoch if isinstance(event, Claimed) else 0
            assert claims.meant_by("janitor", task) == held
    numbers = {owner: number for number, owner in enumerate(owners, 1)}
    assert {owner: claims.meant_by(owner, task) for owner in "abc"} == {o: numbers.get(o, 0) for o in "abc"}


@pytest.mark.parametrize("state", State, ids=str)
def test_a_report_of_a_task_without_an_owner_is_about_no_claim(state: State) -> None:
    """Its epoch is that of a claim that is over; where there is an owner, or work of one, it is his (E12)."""
    free = state in {State.PLANNED, State.OPEN, State.BLOCKED, State.WAITING_FOR_SUBTASKS}
    assert NO_CLAIMS.meant_by("planner", Task(state=state, epoch=3)) == (0 if free else 3)


def test_an_owner_from_the_beginning_has_claimed() -> None:
    """The task's epoch is his claim's number; no owner has none."""
    owned = NO_CLAIMS.knowing(Task(state=State.CLAIMED, owner="a", epoch=4))
    assert owned.meant_by("a", Task(state=State.CLAIMED, owner="b", epoch=5)) == 4
    assert NO_CLAIMS.knowing(Task()) is NO_CLAIMS


def test_an_owner_that_was_given_up_for_dead_keeps_the_number_of_his_claim() -> None:
    """The recovery of the work has the next one, without being the owner (E12)."""
    claims, task = NO_CLAIMS, GovernedTask(state=State.OPEN)
    for event in (Claimed("a"), Started(1), Orphaned(1)):
        taken = governed.step(task, event)
        assert isinstance(taken, Step)
        task, claims = taken.record, claims.after(event, taken.record)
    assert (task.owner, task.epoch) == ("a", 2)
    assert claims.knowing(task) is claims
    assert (claims.meant_by("a", task), claims.meant_by("janitor", task)) == (1, 2)
