"""A request for budget is decided once."""

from typing import Final

import pytest

from lifefold.core.budget.request import Approve, BudgetRequest, Cancel, Reject, State, machine
from lifefold.core.kernel import Event, IllegalTransition, Step, replace

EVENTS: Final[dict[str, Event]] = {
    "Approve": Approve(5, "ann"),
    "TooMuch": Approve(6),
    "Nothing": Approve(0),
    "Reject": Reject("no", "bob"),
    "Cancel": Cancel(),
}

GRID: Final = """
          Approve  TooMuch Nothing Reject   Cancel
PENDING   APPROVED .       .       REJECTED CANCELLED
APPROVED  .        .       .       .        .
REJECTED  .        .       .       .        .
CANCELLED .        .       .       .        .
"""

ASKED = BudgetRequest(holder="agent_1", asked_microusd=5)


def cells() -> list[tuple[str, str, str]]:
    head, *lines = [line.split() for line in GRID.strip().splitlines()]
    return [(line[0], column, word) for line in lines for column, word in zip(head, line[1:], strict=True)]


@pytest.mark.parametrize(("state", "column", "word"), cells())
def test_every_pair_is_what_the_grid_says(state: str, column: str, word: str) -> None:
    """Whoever comes second finds it decided; nobody gets more than was asked for."""
    answer = machine.step(replace(ASKED, state=State(state)), EVENTS[column])
    assert (answer.record.state.value if isinstance(answer, Step) else ".") == word
    assert isinstance(answer, Step | IllegalTransition)


def test_a_decision_is_kept_with_who_made_it() -> None:
    """And how much, or why not."""
    assert machine.step(ASKED, EVENTS["Approve"]) == Step(
        replace(ASKED, state=State.APPROVED, granted_microusd=5, by="ann")
    )
    assert machine.step(ASKED, EVENTS["Reject"]) == Step(replace(ASKED, state=State.REJECTED, reason="no", by="bob"))


def test_money_is_granted_by_approval_only() -> None:
    """The invariant notices the contrary."""
    (granted_means_approved,) = machine.invariants
    assert not granted_means_approved(replace(ASKED, granted_microusd=1))
