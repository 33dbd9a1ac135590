"""A plan change says of a task that its place has changed only if another task of the board has overtaken it."""

from typing import Final

import pytest

from aggregate_hand import Hand
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import plan_change
from lifefold.core.fleet.system.plan_difference import difference, rules_of
from lifefold.core.kernel import Created, Opened

PLACES: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "one more at the front": ("XZBC", {"Z": "", "B": "", "C": ""}),
    "one more between": ("ZXBC", {"B": "", "C": ""}),
    "one less": ("BC", {"B": "", "C": ""}),
    "one less at the end": ("ZB", {}),
    "two that change places": ("BZC", {"Z": "its place", "B": "its place"}),
    "one that goes to the end, and one more": ("BXCZ", dict.fromkeys("ZB", "its place")),
}


@pytest.mark.parametrize("after", PLACES)
def test_only_a_task_that_was_overtaken_has_another_place(after: str) -> None:
    """All others have another number, which no operator has changed."""
    names, expected = PLACES[after]
    old, new = (Plan("f", (AgentPlan("ann"),), tuple(TaskPlan(each, "do it") for each in of)) for of in ("ZBC", names))
    first = next(envelope for name, envelope in opening(old, 0) if name == "board")
    assert isinstance(first.event, Opened)
    board = Hand("board", dict(first.event.records))
    change = plan_change.PlanChange(plan_change.State.ACCEPTED, difference(old, new), rules_of(new), meaning="file")
    board.give(plan_change.ref_of(1), Created(change))
    told = [(each.entity, each.event) for each in board.reaction.transitions]
    replanned = {ref: event.what for ref, event in told if isinstance(event, fleet_task.Replanned)}
    assert replanned == {f"task:{name}": what for name, what in expected.items()}
