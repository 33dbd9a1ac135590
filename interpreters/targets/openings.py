"""The small fleets that are looked at by name: what opens each of them, in the order of their agents and tasks."""

from typing import Final

from lifefold.core import fleet
from lifefold.core.fleet.system import plan_change, plan_difference
from lifefold.core.fleet.worker import stall_detector
from lifefold.core.kernel import Opened, replace
from lifefold.core.lifecycles import process, session
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.effects import Every
from lifefold.interpreters.search.opening import Opening

LADDER: Final = stall_detector.Limits(warn_ms=2, nudge_ms=3, end_ms=4)
"""How patient somebody is with a session that says nothing."""


def small(agents: int, tasks: int, *, retries: int, errors: int = 2) -> Opening:
    """Return what opens a fleet of agents, who stop by so many errors, with tasks that are tried again so often."""
    limits = session.Limits(max_consecutive_errors=errors, max_total_errors=errors)
    plan = fleet.Plan(
        "small",
        tuple(fleet.AgentPlan(name, limits) for name in ("ann", "ben")[:agents]),
        tuple(fleet.TaskPlan(f"T{number}", "do it", max_retries=retries) for number in range(1, tasks + 1)),
    )
    return tuple(fleet.opening(plan, 0))


def governed() -> Opening:
    """Return what opens a fleet of one agent whose plan a person approves, and whose work a person agrees to.

    Its first task may be split in two; the second waits for it.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0, asks=True, most_subtasks=2),
        fleet.TaskPlan("T2", "do it", depends_on=("T1",), max_retries=0),
    )
    plan = fleet.Plan(
        "governed", (fleet.AgentPlan("ann", limits),), tasks, approve_plan=True, approval_ms=3_600_000, watch=True
    )
    return tuple(fleet.opening(plan, 0))


def limited() -> Opening:
    """Return what opens a fleet of one agent, whose sessions are limited: of all, its own, and on its first task."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    plan = fleet.Plan(
        "limited",
        (fleet.AgentPlan("ann", limits, caps=fleet.Caps(sessions=3)),),
        (
            fleet.TaskPlan("T1", "do it", max_retries=1, caps=fleet.Caps(sessions=1)),
            fleet.TaskPlan("T2", "do it", max_retries=0),
        ),
        budget=fleet.Budget(fleet.Caps(sessions=2)),
    )
    return tuple(fleet.opening(plan, 0))


def trusted() -> Opening:
    """Return what opens a fleet of one agent who is untrusted: its work is seen before it is merged.

    The second task takes more trust than it has before the first is closed.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0),
        fleet.TaskPlan("T2", "do it", max_retries=0, trust=AccessLevel.PROBATIONARY),
    )
    gates = fleet.GatePlan(merge=AccessLevel.PROBATIONARY)
    plan = fleet.Plan("trusted", (fleet.AgentPlan("ann", limits),), tasks, gates=gates, approval_ms=3_600_000)
    return tuple(fleet.opening(plan, 0))


def stalling() -> Opening:
    """Return what opens a fleet of one agent that is watched, and may err once, with one task."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    agent_plan = fleet.AgentPlan("ann", limits, stall=LADDER)
    return tuple(
        fleet.opening(fleet.Plan("stalling", (agent_plan,), (fleet.TaskPlan("T1", "do it", max_retries=0),)), 0)
    )


def serving() -> Opening:
    """Return what opens a fleet of one agent with one task, and one service, which is restarted once by itself.

    Its process fails when two runs in a row do.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    life = process.Limits(restart_policy="on_failure", max_restarts=1, max_consecutive_failures=2)
    plan = fleet.Plan(
        "serving",
        (fleet.AgentPlan("ann", limits),),
        (fleet.TaskPlan("T1", "do it", max_retries=0),),
        services=(fleet.ServicePlan("web", life, triggers=(Every(1),), takes_messages=True),),
    )
    return tuple(fleet.opening(plan, 0))


def orphaning() -> Opening:
    """Return what opens a fleet of one agent that may err once, and is watched, with a task that may be an orphan.

    What its dead sessions leave of it is verified, and it may be tried again once.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    it = fleet.TaskPlan("T1", "do it", verify=(("true",),), max_retries=1, orphaned=OnDeath.VERIFY)
    plan = fleet.Plan("orphans", (fleet.AgentPlan("ann", limits, stall=LADDER),), (it,))
    return tuple(fleet.opening(plan, 0))


def restarted() -> Opening:
    """Return what opens a fleet of one agent who may not err, and is restarted once within its window.

    Its only task may be tried again once; so it comes back to it, and may be quarantined by it.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    plan = fleet.Plan(
        "restarted",
        (fleet.AgentPlan("ann", limits, restart=Restart(max_restarts=1)),),
        (fleet.TaskPlan("T1", "do it", max_retries=1),),
        restarts=Intensity(max_restarts=2),
    )
    return tuple(fleet.opening(plan, 0))


def aborting() -> Opening:
    """Return what opens a fleet of one agent, in which tools abort siblings, with one task that may be split.

    It may not err, and nothing is tried again.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    plan = fleet.Plan(
        "aborts",
        (fleet.AgentPlan("ann", limits),),
        (fleet.TaskPlan("T1", "do it", max_retries=0, most_subtasks=2),),
        aborts=AbortPolicy(tool_to_sibling=True),
    )
    return tuple(fleet.opening(plan, 0))


def preempting() -> Opening:
    """Return what opens a fleet of one agent that makes room, with two tasks.

    The first to be done may fail once; when it has rested, the agent is at the other one, which comes later.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0),
        fleet.TaskPlan("T2", "do it", max_retries=1, priority=1),
    )
    plan = fleet.Plan("preempting", (fleet.AgentPlan("ann", limits),), tasks, preemption=fleet.Preemption(1))
    return tuple(fleet.opening(plan, 0))


def changing() -> Opening:
    """Return what opens a fleet of one agent with two tasks whose plan may change at any time.

    By the change the first task is verified otherwise and tried again once, the second one is removed, a third one is
    added that waits for the first, and sessions may take no longer than a millisecond.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    old = fleet.Plan(
        "changing",
        (fleet.AgentPlan("ann", limits),),
        (fleet.TaskPlan("T1", "do it", max_retries=0), fleet.TaskPlan("T2", "do it", max_retries=0)),
    )
    new = fleet.Plan(
        "changing",
        (fleet.AgentPlan("ann", replace(limits, session_timeout_ms=1)),),
        (
            fleet.TaskPlan("T1", "do it", verify=(("true",),), max_retries=1),
            fleet.TaskPlan("T3", "do it", depends_on=("T1",), max_retries=0),
        ),
    )
    draft = plan_change.PlanChange(changes=plan_difference.difference(old, new), rules=plan_difference.rules_of(new))
    (name, first), *others = fleet.opening(old, 0)
    assert isinstance(first.event, Opened)  # noqa: S101 - that is what an opening is
    records = {**first.event.records, plan_change.ref_of(1): draft}
    return ((name, replace(first, event=Opened(records))), *others)
