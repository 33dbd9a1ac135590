"""Refusals of a plan change name the parts that are in the way, in the words of the fleet file."""

from dataclasses import dataclass
from typing import Any, Final

import pytest

from aggregate_hand import Hand
from board_hand import ask
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.system import plan_change
from lifefold.core.fleet.system.plan_difference import difference, rules_of
from lifefold.core.fleet.system.plan_obstacles import Obstacle, obstacles
from lifefold.core.fleet.system.plan_places import parts_of, place_of
from lifefold.core.fleet.worker.stall_detector import Limits
from lifefold.core.kernel import Opened

STALL: Final = Limits(warn_ms=60_000, nudge_ms=90_000, end_ms=120_000)


@dataclass(frozen=True)
class Edit:
    """A change of the silences of an agent's sessions, and the keys that are refused."""

    was: Limits | None
    now: Limits | None
    keys: tuple[str, ...]


def plan(*tasks: str, stall: Limits | None = None, **fields: Any) -> Plan:
    """Return a plan with one agent."""
    given = tuple(TaskPlan(name, f"do {name}", **fields) for name in tasks)
    return Plan("f", (AgentPlan("ann", stall=stall),), given)


def refused(old: Plan, new: Plan) -> tuple[Obstacle, ...]:
    """Return the obstacles of a change of a fleet whose agent is at its first task."""
    first = next(envelope for name, envelope in opening(old, 0) if name == "board")
    assert isinstance(first.event, Opened)
    board = ask(Hand("board", dict(first.event.records))).aggregate
    after = plan_change.last_in_force(board)
    change = plan_change.PlanChange(plan_change.State.ACCEPTED, difference(old, new), rules_of(new), after, meaning="")
    return obstacles(board, change)


EDITS: Final = {
    "the warning": Edit(STALL, Limits(50_000, 90_000, 120_000), ("stall_warn",)),
    "the nudge": Edit(STALL, Limits(60_000, 80_000, 120_000), ("stall_interrupt",)),
    "no nudge": Edit(STALL, Limits(60_000, None, 120_000), ("stall_interrupt",)),
    "the end": Edit(STALL, Limits(60_000, 90_000, 130_000), ("stall_timeout",)),
    "two of them": Edit(STALL, Limits(50_000, 90_000, 130_000), ("stall_warn", "stall_timeout")),
    "a detector": Edit(None, Limits(60_000, None, 120_000), ("stall_warn", "stall_timeout")),
    "no detector": Edit(STALL, None, ("stall_warn", "stall_interrupt", "stall_timeout")),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_changed_silence_is_refused_by_its_own_key(edit: Edit) -> None:
    """The keys of the stall detector are three, and each is named only if it differs."""
    found = refused(plan("T1", stall=edit.was), plan("T1", stall=edit.now))
    assert [each.what for each in found] == [f"agents.ann.{key}" for key in edit.keys]


def test_the_id_of_a_task_cannot_be_read_as_a_key_of_another_task() -> None:
    """The file may have a task `v1` and a task `v1.files`: a name with a dot has quotes, as in TOML."""
    whole, key = plan("v1.files", files=("a",)), plan("v1", files=("a",))
    assert [each.what for each in refused(plan("v1.files"), whole)] == ['tasks."v1.files".files']
    assert [each.what for each in refused(plan("v1"), key)] == ["tasks.v1.files"]
    assert [each.what for each in refused(plan("v1.files", "T2"), plan("T2"))] == ['tasks."v1.files"']


@pytest.mark.parametrize(
    ("path", "place", "parts"),
    [
        (("fleet", "budget", "usd"), "fleet.budget.usd", ("fleet", "", "budget.usd")),
        (("agents", "v1", "budget", "usd"), "agents.v1.budget.usd", ("agents", "v1", "budget.usd")),
        (("tasks", "v1"), "tasks.v1", ("tasks", "v1", "")),
        (("tasks", "v1.2"), 'tasks."v1.2"', ("tasks", "v1.2", "")),
        (("tasks", "v1.2", "verify"), 'tasks."v1.2".verify', ("tasks", "v1.2", "verify")),
        (("the plan",), "the plan", ("the plan", "", "")),
    ],
)
def test_a_place_has_one_kind_one_name_and_one_key(path: tuple[str, ...], place: str, parts: tuple[str, ...]) -> None:
    """Whatever other tasks there are."""
    assert (place_of(*path), parts_of(place)) == (place, parts)


def test_an_edit_of_a_task_at_work_is_told_to_wait_and_a_changed_file_can_be_put_back_as_well() -> None:
    """The file of an edit is as it was, so there is nothing to put back."""
    (found,) = refused(plan("T1"), plan("T1", priority=1))
    assert str(found) == (
        "tasks.T1.priority: the task is CLAIMED with ann; put that back, or wait until it is not;"
        " this says what comes next"
    )
    assert found.of_edit == (
        "tasks.T1.priority: the task is CLAIMED with ann; wait until it is not; this says what comes next"
    )
