"""Verified work of a fleet with ``to_branch`` becomes a ready branch: by the plan, and with its name to the end."""

from typing import Final

import pytest

from aggregate_hand import Hand
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.system.plan_change import PlanChange, State
from lifefold.core.fleet.system.plan_difference import difference, rules_of
from lifefold.core.fleet.system.plan_obstacles import obstacles
from lifefold.core.fleet.system.ready_branches import impossible_keys
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Opened, replace
from lifefold.core.lifecycles import task
from lifefold.effects import Begin, MergeWork

PLAN: Final = Plan("f", (AgentPlan("ann"),), (TaskPlan("T1", "do T1"),), guarded=True)
MERGED: Final = task.Brief("T1", 2, "do it", stage=task.Stage.MERGE, result=1, collected="c0ffee")
BRANCH: Final = "lifefold-ready/f/T1"


def opened(name: str, plan: Plan) -> Hand:
    """Return an aggregate of the plan's fleet."""
    event = dict(opening(plan, 0))[name].event
    assert isinstance(event, Opened)
    return Hand(name, dict(event.records))


@pytest.mark.parametrize("to_branch", [False, True])
def test_the_plan_decides_what_becomes_of_verified_work(*, to_branch: bool) -> None:
    """The activity of the merge says whether its commit becomes a ready branch."""
    of = opened("worker/ann", replace(PLAN, to_branch=to_branch))
    of.give("assignment", assignment.WorkRequested())
    of.hear("board", "assignment", assignment.Assigned(MERGED))
    begun = [each.effect.activity for each in of.reaction.effects if isinstance(each.effect, Begin)]
    assert begun == [MergeWork("T1", 2, "do it", 1, "c0ffee", to_branch=to_branch)]


def test_the_board_hears_the_name_of_the_ready_branch() -> None:
    """Together with its commit, under the epoch of the claim."""
    of = opened("worker/ann", replace(PLAN, to_branch=True))
    of.give("assignment", assignment.WorkRequested())
    of.hear("board", "assignment", assignment.Assigned(MERGED))
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee", BRANCH))
    assert ("board", "task:T1", task.Verified(2, "c0ffee", BRANCH)) in of.told()


def test_a_closed_task_keeps_its_ready_branch() -> None:
    """Its record has the name and the commit."""
    done = task.Task(task.State.DONE, id="T1", owner="ann", epoch=2)
    closed, _ = task.machine.reduce(done, task.Verified(2, "c0ffee", BRANCH)).unwrap()
    assert (closed.state, closed.commit, closed.branch) == (task.State.CLOSED, "c0ffee", BRANCH)


@pytest.mark.parametrize(
    ("planned", "keys"),
    [
        (TaskPlan("T2", "do it"), []),
        (TaskPlan("T2", "do it", depends_on=("T1",)), ["depends_on"]),
        (TaskPlan("T2", "do it", most_subtasks=2), ["most_subtasks"]),
        (TaskPlan("T2", "do it", depends_on=("T1",), most_subtasks=2), ["depends_on", "most_subtasks"]),
    ],
)
def test_a_task_with_a_ready_branch_needs_no_work_of_others(planned: TaskPlan, keys: list[str]) -> None:
    """Dependencies and parts are impossible, each with a reason."""
    found = dict(impossible_keys(planned))
    assert list(found) == keys
    assert all(found.values())


def test_a_living_fleet_does_not_change_what_becomes_of_its_work() -> None:
    """The refusal names the key of the fleet file."""
    new = replace(PLAN, to_branch=True)
    change = PlanChange(State.ACCEPTED, difference(PLAN, new), rules_of(new))
    assert [each.what for each in obstacles(opened("board", PLAN).aggregate, change)] == ["fleet.merge"]
