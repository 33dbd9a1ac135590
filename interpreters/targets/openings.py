"""The openings of the small fleets that are checked by name."""

from typing import Final

from lifefold.core import fleet
from lifefold.core.fleet.system import plan_change, plan_difference
from lifefold.core.fleet.worker import mailbox, question, stall_detector
from lifefold.core.kernel import Opened, replace
from lifefold.core.lifecycles import process, session, task
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.standing import StandingAnswer
from lifefold.effects import Every, NotificationKind
from lifefold.interpreters.search.opening import Opening

LADDER: Final = stall_detector.Limits(warn_ms=2, nudge_ms=3, end_ms=4)
"""The ladder of a stall detector, with small and distinct silences."""


def small(agents: int, tasks: int, *, retries: int, errors: int = 2) -> Opening:
    """Return the opening of a fleet of agents that stop after ``errors`` errors, and tasks with ``retries`` retries."""
    limits = session.Limits(max_consecutive_errors=errors, max_total_errors=errors)
    plan = fleet.Plan(
        "small",
        tuple(fleet.AgentPlan(name, limits) for name in ("ann", "ben")[:agents]),
        tuple(fleet.TaskPlan(f"T{number}", "do it", max_retries=retries) for number in range(1, tasks + 1)),
    )
    return tuple(fleet.opening(plan, 0))


def governed() -> Opening:
    """Return the opening of a fleet of one agent whose plan and work need approval.

    The first task may be split in two, and the second depends on it.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0, needs_approval=True, most_subtasks=2),
        fleet.TaskPlan("T2", "do it", depends_on=("T1",), max_retries=0),
    )
    plan = fleet.Plan(
        "governed", (fleet.AgentPlan("ann", limits),), tasks, approve_plan=True, approval_ms=3_600_000, watch=True
    )
    return tuple(fleet.opening(plan, 0))


def limited() -> Opening:
    """Return the opening of a fleet of one agent with three budgets of sessions: fleet, agent and first task."""
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


def talking() -> Opening:
    """Return the opening of a fleet of one agent whose program names and resumes conversations, with one task.

    The task has one retry and a mailbox, and money is limited, so every session is charged.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=3)
    plan = fleet.Plan(
        "talking",
        (fleet.AgentPlan("ann", limits, talks=fleet.Talks(chooses=False, resumes=True)),),
        (fleet.TaskPlan("T1", "do it", max_retries=1),),
        budget=fleet.Budget(fleet.Caps(microusd=4), Amounts(microusd=2, sessions=1)),
    )
    return tuple(
        (name, replace(each, event=Opened({**each.event.records, "mailbox:T1": mailbox.Mailbox()})))
        if name == "board" and isinstance(each.event, Opened)
        else (name, each)
        for name, each in fleet.opening(plan, 0)
    )


def trusted() -> Opening:
    """Return the opening of a fleet of one untrusted agent, whose work needs approval before the merge.

    The second task needs more trust than the agent has before the first is closed.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0),
        fleet.TaskPlan("T2", "do it", max_retries=0, trust=AccessLevel.PROBATIONARY),
    )
    gates = fleet.GatePlan(merge=AccessLevel.PROBATIONARY)
    plan = fleet.Plan("trusted", (fleet.AgentPlan("ann", limits),), tasks, gates=gates, approval_ms=3_600_000)
    return tuple(fleet.opening(plan, 0))


def steering() -> Opening:
    """Return the opening of a fleet of one agent whose running session takes messages, with one task.

    The session may ask operators, and an urgent message interrupts one that does. The first claim reserves all of the
    money, so a session can use its budget up.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    agent_plan = fleet.AgentPlan("ann", limits, follows=True, steers=True)
    tasks = (fleet.TaskPlan("T1", "do it", max_retries=0),)
    budget = fleet.Budget(fleet.Caps(microusd=2), Amounts(microusd=2, sessions=1))
    plan = fleet.Plan("steering", (agent_plan,), tasks, budget=budget, questions=question.Terms())
    return tuple(fleet.opening(plan, 0))


def stalling() -> Opening:
    """Return the opening of a fleet of one agent with a stall detector, one allowed error, and one task."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    agent_plan = fleet.AgentPlan("ann", limits, stall=LADDER)
    return tuple(
        fleet.opening(fleet.Plan("stalling", (agent_plan,), (fleet.TaskPlan("T1", "do it", max_retries=0),)), 0)
    )


def turning() -> Opening:
    """Return the opening of a fleet of one agent with turns and a followed output, one allowed error, and one task.

    The work of dead sessions at the task is verified, and the task has one retry.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    it = fleet.TaskPlan("T1", "do it", verify=(("true",),), max_retries=1, orphaned=OnDeath.VERIFY)
    return tuple(fleet.opening(fleet.Plan("turns", (fleet.AgentPlan("ann", limits, follows=True),), (it,)), 0))


TERMS: Final = question.Terms(1, (StandingAnswer("Read", "a", allows=True),))
"""The terms of questions: silence is a refusal after a millisecond, and one tool has a standing answer."""


def asking() -> Opening:
    """Return the opening of a fleet of one agent that may ask, with a stall detector, and one task without retries."""
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    agent_plan = fleet.AgentPlan("ann", limits, stall=LADDER)
    tasks = (fleet.TaskPlan("T1", "do it", max_retries=0),)
    return tuple(fleet.opening(fleet.Plan("asking", (agent_plan,), tasks, questions=TERMS), 0))


def telling() -> Opening:
    """Return the opening of a fleet of one agent that may ask, with one task without retries, and two notifiers.

    The first notifier hears of everything and tries once, the second hears of closed tasks and tries twice. The work
    needs an approval, and the task has a budget of one session.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    everything, closed = tuple(NotificationKind), (NotificationKind.CLOSED,)
    plan = fleet.Plan(
        "telling",
        (fleet.AgentPlan("ann", limits),),
        (fleet.TaskPlan("T1", "do it", max_retries=0, needs_approval=True, caps=fleet.Caps(sessions=1)),),
        approval_ms=3_600_000,
        questions=TERMS,
        notify=(fleet.NotifierPlan("all", everything, retries=0), fleet.NotifierPlan("closed", closed, retries=1)),
    )
    return tuple(fleet.opening(plan, 0))


def resting() -> Opening:
    """Return the opening of a fleet of one agent with an account and one task, and one notifier that tries once.

    The notifier hears of limits and of the end of the fleet. A limit lets the task be claimed again and again, so a
    budget of one session bounds the claims.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    plan = fleet.Plan(
        "resting",
        (fleet.AgentPlan("ann", limits, account="left"),),
        (fleet.TaskPlan("T1", "do it", max_retries=0),),
        budget=fleet.Budget(fleet.Caps(sessions=1)),
        notify=(fleet.NotifierPlan("all", (NotificationKind.LIMIT, NotificationKind.OVER), retries=0),),
    )
    return tuple(fleet.opening(plan, 0))


def resuming() -> Opening:
    """Return the opening of a fleet of one agent with an account, which may ask and resumes its conversation.

    The agent stops at its first error, and its only task has no retry. A limit lets the task be claimed again and
    again, so a budget of two sessions bounds the claims. The second session resumes the conversation of the first.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    plan = fleet.Plan(
        "resuming",
        (fleet.AgentPlan("ann", limits, account="left", talks=fleet.Talks(chooses=False, resumes=True), follows=True),),
        (fleet.TaskPlan("T1", "do it", max_retries=0),),
        budget=fleet.Budget(fleet.Caps(sessions=2)),
        questions=TERMS,
    )
    return tuple(fleet.opening(plan, 0))


def outages() -> Opening:
    """Return the opening of a fleet of one agent with one task, one service, and one notifier that tries once.

    The notifier hears of services that are down, and of the end of the fleet. The process of the service fails after
    one failed run.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    life = process.Limits(restart_policy="on_failure", max_restarts=1, max_consecutive_failures=1)
    plan = fleet.Plan(
        "outages",
        (fleet.AgentPlan("ann", limits),),
        (fleet.TaskPlan("T1", "do it", max_retries=0),),
        services=(fleet.ServicePlan("web", life, triggers=(Every(1),), takes_messages=True),),
        notify=(fleet.NotifierPlan("all", (NotificationKind.SERVICE, NotificationKind.OVER), retries=0),),
    )
    return tuple(fleet.opening(plan, 0))


def serving() -> Opening:
    """Return the opening of a fleet of one agent with one task, and one service that is restarted once.

    The process of the service fails after two failed runs in a row.
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
    """Return the opening of a fleet of one agent with a stall detector, one allowed error, and one task.

    The work of dead sessions at the task is verified, and the task has one retry.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    it = fleet.TaskPlan("T1", "do it", verify=(("true",),), max_retries=1, orphaned=OnDeath.VERIFY)
    plan = fleet.Plan("orphans", (fleet.AgentPlan("ann", limits, stall=LADDER),), (it,))
    return tuple(fleet.opening(plan, 0))


def restarted() -> Opening:
    """Return the opening of a fleet of one agent that stops at its first error, with one restart within its window.

    The only task has one retry, so the restarted agent works at it again, and may be quarantined.
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
    """Return the opening of a fleet of one agent with a task that may be split; aborted tools abort siblings.

    The agent stops at its first error, and no task has a retry.
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
    """Return the opening of a fleet of one agent with preemption and two tasks.

    The task of higher priority has one retry. After its rest, the agent works at the other task and is preempted.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (fleet.TaskPlan("T1", "do it", max_retries=0), fleet.TaskPlan("T2", "do it", max_retries=1, priority=1))
    plan = fleet.Plan("preempting", (fleet.AgentPlan("ann", limits),), tasks, preemption=fleet.Preemption(1))
    return tuple(fleet.opening(plan, 0))


def quota() -> Opening:
    """Return the opening of a fleet of two agents with an account each, and two tasks, of which one is more urgent.

    A limit gives the urgent task back, and the other agent is preempted for it. The agents stop at their first error,
    and no task has a retry. A limit lets a task be claimed again and again, so a budget of sessions bounds the claims.
    A message waits for the first agent from the beginning, since no operator gives a command.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    agents = tuple(fleet.AgentPlan(name, limits, account=each) for name, each in (("ann", "left"), ("ben", "right")))
    tasks = (fleet.TaskPlan("T1", "do it", max_retries=0), fleet.TaskPlan("T2", "do it", max_retries=0, priority=1))
    budget = fleet.Budget(fleet.Caps(sessions=2))
    plan = fleet.Plan("quota", agents, tasks, budget=budget, preemption=fleet.Preemption())
    waits = mailbox.Mailbox(mailbox.State.HOLDING, ("look",))
    return tuple(
        (name, replace(each, event=Opened({**each.event.records, "mailbox": waits})))
        if name == "worker/ann" and isinstance(each.event, Opened)
        else (name, each)
        for name, each in fleet.opening(plan, 0)
    )


def sharing() -> Opening:
    """Return the opening of a fleet of two agents of one account, and two tasks, of which one is more urgent.

    The urgent task has failed and waits for its retry. Its role is that of the first agent, which is preempted for it.
    The agents stop at their first error. A budget of sessions bounds the claims, and a message waits for the first
    agent from the beginning, since no operator gives a command.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    agents = (
        fleet.AgentPlan("ann", limits, account="left", roles=("lead",)),
        fleet.AgentPlan("ben", limits, account="left"),
    )
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0),
        fleet.TaskPlan("T2", "do it", max_retries=1, priority=1, role="lead"),
    )
    budget = fleet.Budget(fleet.Caps(sessions=2))
    plan = fleet.Plan("sharing", agents, tasks, budget=budget, preemption=fleet.Preemption())
    waits = mailbox.Mailbox(mailbox.State.HOLDING, ("look",))
    (name, of_board), (first, ann), *others = fleet.opening(plan, 0)
    assert isinstance(of_board.event, Opened)  # noqa: S101 - that is what an opening is
    assert isinstance(ann.event, Opened)  # noqa: S101 - the same
    failed = replace(of_board.event.records["task:T2"], state=task.State.FAILED, failure="no")
    return (
        (name, replace(of_board, event=Opened({**of_board.event.records, "task:T2": failed}))),
        (first, replace(ann, event=Opened({**ann.event.records, "mailbox": waits}))),
        *others,
    )


def _change(old: fleet.Plan, new: fleet.Plan, after: int = 0) -> plan_change.PlanChange:
    """Return the change from one plan to another, which no operator has accepted yet, made ``after`` another change."""
    return plan_change.PlanChange(
        changes=plan_difference.difference(old, new), rules=plan_difference.rules_of(new), after=after
    )


def changing() -> Opening:
    """Return the opening of a fleet of one agent with two tasks, whose plan may change at any time.

    The change gives the first task a verification and one retry, and removes the second task. It adds a third task that
    depends on the first, and limits sessions to one millisecond. The work of the first task needs approval. A second
    change gives the third task another prompt, and leaves all else as the first one has made it.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    old = fleet.Plan(
        "changing",
        (fleet.AgentPlan("ann", limits),),
        (
            fleet.TaskPlan("T1", "do it", max_retries=0, needs_approval=True),
            fleet.TaskPlan("T2", "do it", max_retries=0),
        ),
        approval_ms=1,
    )
    new = fleet.Plan(
        "changing",
        (fleet.AgentPlan("ann", replace(limits, session_timeout_ms=1)),),
        (
            fleet.TaskPlan("T1", "do it", verify=(("true",),), max_retries=1, needs_approval=True),
            fleet.TaskPlan("T3", "do it", depends_on=("T1",), max_retries=0),
        ),
        approval_ms=1,
    )
    later = replace(new, tasks=(new.tasks[0], replace(new.tasks[1], prompt="do it well")))
    (name, first), *others = fleet.opening(old, 0)
    assert isinstance(first.event, Opened)  # noqa: S101 - that is what an opening is
    drafts = {plan_change.ref_of(1): _change(old, new), plan_change.ref_of(2): _change(new, later, after=1)}
    records = {**first.event.records, **drafts}
    return ((name, replace(first, event=Opened(records))), *others)
