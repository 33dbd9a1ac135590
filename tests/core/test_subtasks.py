"""What other tasks mean for one: its subtasks, and its dependencies."""

import pytest

from lifefold.core.subtasks import satisfied, verdict
from lifefold.core.task import Blocked, State, SubtasksCompleted

OVER = {State.DONE, State.CLOSED}
LOST = {State.FAILED, State.CANCELLED}


@pytest.mark.parametrize("first", State, ids=str)
@pytest.mark.parametrize("second", State, ids=str)
def test_subtasks_are_completed_when_every_one_is_done_or_closed(first: State, second: State) -> None:
    """One that is lost blocks at once, with the reason; anything else is waited for (E7)."""
    answer = verdict({"S1": first, "S2": second})
    if LOST & {first, second}:
        assert isinstance(answer, Blocked)
        assert ("S1" in answer.reason) is (first in LOST)
        assert ("S2" in answer.reason) is (second in LOST)
    else:
        assert answer == (SubtasksCompleted() if {first, second} <= OVER else None)


def test_subtasks_that_were_faster_than_their_parent_are_completed() -> None:
    """The same question, asked when the parent begins to wait (E8, nick-pape/grackle#186)."""
    assert verdict({"S1": State.CLOSED}) == SubtasksCompleted()


def test_a_parent_whose_subtasks_are_not_known_yet_waits_for_them() -> None:
    """It is not done by having been split (E8)."""
    assert verdict({}) is None


def test_a_parent_that_is_unblocked_learns_what_its_subtasks_have_done_meanwhile() -> None:
    """The same question again: done work is not done twice (E10)."""
    assert verdict({"S1": State.FAILED, "S2": State.DONE}) == Blocked("S1 is FAILED")
    assert verdict({"S1": State.DONE, "S2": State.DONE}) == SubtasksCompleted()


@pytest.mark.parametrize("state", State, ids=str)
def test_a_dependency_is_satisfied_by_done_or_closed(state: State) -> None:
    """By CLOSED alone for who wants only what is merged (E45)."""
    assert satisfied(state) is (state in OVER)
    assert satisfied(state, closed_only=True) is (state is State.CLOSED)
