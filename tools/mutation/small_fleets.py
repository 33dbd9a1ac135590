"""Small fleets in which mutants of the rules are checked: each shows behaviour that no other one has."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.board import fleet_task, intake
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.system.plan import fleet_task_of
from lifefold.core.fleet.worker import desired_state, mailbox
from lifefold.core.kernel import Envelope, Event, Opened, replace
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.session import Limits
from lifefold.core.policy.retry import RetryPolicy
from lifefold.interpreters.targets.bounded import one_undelivered

ONE_MESSAGE: Final[Mapping[str, Callable[[Any], bool]]] = {"mailbox": one_undelivered}
"""The bound of every fleet: at most one operator message waits."""


class Small(NamedTuple):
    """A small fleet: its plan, the operator commands and their number.

    ``tasks`` are tasks of its board that no plan can begin with; ``plan_is`` is the state of the plan's approval before
    they come. ``within`` bounds the records of machines.
    """

    plan: Plan
    operators: Mapping[str, tuple[type[Event], ...]]
    commands: int | None = None
    tasks: tuple[fleet_task.FleetTask, ...] = ()
    plan_is: plan_approval.State | None = None
    within: Mapping[str, Callable[[Any], bool]] = ONE_MESSAGE

    @property
    def opening(self) -> tuple[tuple[str, Envelope], ...]:
        """The opening inputs."""
        (name, first), *others = opening(self.plan, 0)
        assert isinstance(first.event, Opened)
        records = {**first.event.records, **{f"task:{each.id}": each for each in self.tasks}}
        if self.plan_is is not None:
            records[plan_approval.REF] = plan_approval.Proposal(self.plan_is)
        return ((name, replace(first, event=Opened(records))), *others)


def _plan(agents: int, errors: int, *tasks: TaskPlan) -> Plan:
    return Plan("small", _agents(agents, errors), tasks, approval_ms=3_600_000)


def _agents(number: int, errors: int, roles: tuple[tuple[str, ...], ...] = ((), ())) -> tuple[AgentPlan, ...]:
    limits = Limits(max_consecutive_errors=errors, max_total_errors=errors)
    return tuple(AgentPlan(f"a{n}", limits, roles=roles[n]) for n in range(number))


def _part(state: task.State, name: str, parent: str = "", parts: int = 0) -> fleet_task.FleetTask:
    most = 4 >> name.count("+")
    waits = parts > 0
    return fleet_task.FleetTask(
        state,
        name,
        "do it",
        max_retries=0,
        limit=0,
        parent=parent,
        parts=parts,
        waits_for_parts=waits,
        most_subtasks=most,
    )


_COMMANDS: Final = (desired_state.StopWanted, desired_state.HoldWanted, desired_state.RunWanted)
_TASK: Final = (task.Cancelled, task.Unblocked)
_ONE: Final = TaskPlan("T0", "do it", max_retries=1)
_NONE: Final = RetryPolicy(other_retries=0)
"""A failed task is not retried without an operator."""
_WHOLE: Final = TaskPlan("T0", "do it", priority=1, role="builds", max_retries=1, most_subtasks=2, subtasks_ms=1_000)
_IN_PARTS: Final = Plan("small", _agents(1, 1, (("builds",),)), (), retry=_NONE)

SMALL: Final[Mapping[str, Small]] = {
    "one agent, one task that a person agrees to": Small(
        _plan(
            1,
            1,
            TaskPlan("T0", "do it", max_retries=0, needs_approval=True, files=("a",)),
            TaskPlan("T1", "do that", depends_on=("T0",), max_retries=0, files=("a/b",)),
            TaskPlan("T2", "do the rest", depends_on=("T1",), max_retries=0, files=("a/b", "c")),
        ),
        {
            "task": (approval.ApprovalGranted, approval.ApprovalRefused, fleet_task.RetryGranted),
            "desired_state": (desired_state.StopWanted,),
        },
        commands=2,
    ),
    "one agent, a plan to be approved, and more to come": Small(
        Plan(
            "small",
            _agents(1, 1),
            (
                TaskPlan("T0", "do it", max_retries=0, verify=(("make", "test"),)),
                TaskPlan("T1", "do that", priority=1, max_retries=0),
            ),
            approve_plan=True,
            watch=True,
        ),
        {
            "plan": (plan_approval.PlanApproved, plan_approval.PlanDeclined),
            "intake": (intake.LastTaskIn,),
            "task": (task.Declined,),
        },
        commands=3,
    ),
    "one agent, a task that comes to an approved plan": Small(
        _plan(1, 1),
        {},
        tasks=(fleet_task.FleetTask(id="T0", max_retries=0, limit=0),),
        plan_is=plan_approval.State.APPROVED,
    ),
    "one agent, a task that comes to a declined plan": Small(
        _plan(1, 1, TaskPlan("T1", "do that", max_retries=0)),
        {},
        tasks=(fleet_task.FleetTask(id="T0", max_retries=0, limit=0),),
        plan_is=plan_approval.State.DECLINED,
    ),
    "two agents, one task": Small(
        _plan(2, 1, TaskPlan("T0", "do it", max_retries=0)),
        {"desired_state": (desired_state.StopWanted,), "task": (task.Cancelled,)},
        commands=1,
    ),
    "two agents, of whom one may take a task": Small(
        Plan(
            "small",
            _agents(2, 1, (("builds", "tests"), ("builds",))),
            (
                TaskPlan("T0", "do it", max_retries=0, role="tests"),
                TaskPlan("T1", "do that", max_retries=0),
            ),
        ),
        {"desired_state": (desired_state.StopWanted,)},
        commands=1,
    ),
    "one agent, a part of a part": Small(
        _plan(1, 1, TaskPlan("T1", "do that", depends_on=("T0",), max_retries=0)),
        {"task": (task.Cancelled, task.Unblocked), "desired_state": (desired_state.StopWanted,)},
        commands=2,
        tasks=(
            _part(task.State.WAITING_FOR_SUBTASKS, "T0", parts=1),
            _part(task.State.WAITING_FOR_SUBTASKS, "T0+1", "T0", parts=1),
            _part(task.State.OPEN, "T0+1+1", "T0+1"),
        ),
    ),
    "one agent, one task after another": Small(
        _plan(1, 2, _ONE, TaskPlan("T1", "do that", depends_on=("T0",), max_retries=0)),
        {"desired_state": (desired_state.StopWanted,), "task": _TASK},
        commands=2,
    ),
    "two agents, one task after two others": Small(
        _plan(
            2,
            1,
            TaskPlan("T0", "do it", max_retries=0),
            TaskPlan("T1", "do that", priority=1, max_retries=0),
            TaskPlan("T2", "do the rest", depends_on=("T0", "T1"), max_retries=0),
        ),
        {},
    ),
    "two agents, two tasks in the same folder": Small(
        _plan(
            2,
            1,
            TaskPlan("T0", "do it", max_retries=0, files=("a/b/c",)),
            TaskPlan("T1", "do that", max_retries=0, files=("a/b", "d")),
        ),
        {"task": (task.Cancelled,)},
        commands=1,
    ),
    "one agent, one task in parts": Small(
        _IN_PARTS,
        {"task": (fleet_task.Split, task.Cancelled, fleet_task.RetryGranted, task.Unblocked)},
        commands=2,
        tasks=(fleet_task_of(_WHOLE, 1, _IN_PARTS),),
    ),
    "one agent, one task": Small(
        _plan(1, 2, _ONE), {"desired_state": _COMMANDS, "mailbox": (mailbox.OperatorMessageArrived,), "task": _TASK}
    ),
}
"""The small fleets by description; the one that takes longest is the last."""
