"""A fleet before it runs: its agents, tasks, services and limits, and the inputs that open its log."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import (
    account,
    budget,
    fleet_task,
    intake,
    notifier,
    preemption_request,
    restart_permit,
    service_slot,
    worker_slot,
)
from lifefold.core.fleet.dispatch import accounts, budgets, plan_approval, preemption, restarts
from lifefold.core.fleet.service import inbox, invocation, trigger
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import (
    announcer,
    assignment,
    conversation,
    desired_state,
    mailbox,
    output,
    question,
    quota,
    stall_detector,
    steering,
    supervisor,
    turns,
    usage_meter,
)
from lifefold.core.kernel import Envelope, Opened, Record
from lifefold.core.lifecycles import process, session, task
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps, Resource
from lifefold.core.lifecycles.session_profiles import SupervisedSession
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel, Trust
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.retry import RetryPolicy
from lifefold.effects import NotificationKind
from lifefold.effects.service import Source

_BOARD: Final = "board"
"""The name of the board. The board imports plans, so that this module cannot import the board."""

MOST_RETRIES: Final = 1_000
"""How often a task may say at most that it is to be tried again."""

RETRIED_AS_OFTEN_AS_THE_TASK_SAYS: Final = RetryPolicy(
    max_retries=MOST_RETRIES, transient_retries=MOST_RETRIES, other_retries=MOST_RETRIES
)
"""The default retries: a failure is retried unless it is permanent (E5)."""


class Budget(msgspec.Struct, frozen=True):
    """What a fleet may spend: ``caps`` for all together, and what each claim is given of whatever is limited anywhere.

    After ``period_ms`` all budgets are filled anew; 0 is never. ``charges_the_silent``: a session that does not say
    what it has cost is taken to have cost the money and the tokens of its share.
    """

    caps: Caps = Caps()
    share: Amounts = Amounts(sessions=1)
    period_ms: int = 0
    charges_the_silent: bool = False


class Talks(msgspec.Struct, frozen=True):
    """What an agent program can do with conversations: it accepts a chosen identifier, and it resumes one."""

    chooses: bool
    resumes: bool


class AgentPlan(msgspec.Struct, frozen=True):
    """One agent: its name, the limits of its sessions, its roles.

    ``stall``: how long its sessions may be silent; without it they are not watched. ``trust`` is its level in the
    beginning, ``caps`` what it may spend, ``restart`` how often it is restarted. ``adaptive``: the time limit of its
    sessions comes from earlier sessions, with ``limits`` as the maximum. ``talks``: its program keeps conversations;
    with None it keeps none. ``account`` is the account of its model service; empty for none. Agents of one account rest
    together at its limits. ``follows``: the output of its sessions is read, and each of its claims is a turn.
    ``steers``: its program takes messages while a session runs.
    """

    name: str
    limits: session.Limits = session.Limits()
    verify_timeout_ms: int = 600_000
    roles: tuple[str, ...] = ()
    trust: AccessLevel = AccessLevel.UNTRUSTED
    caps: Caps = Caps()
    stall: stall_detector.Limits | None = None
    restart: Restart = Restart()
    adaptive: bool = False
    talks: Talks | None = None
    account: str = ""
    follows: bool = False
    steers: bool = False


class GatePlan(msgspec.Struct, frozen=True):
    """The trust levels that are required to claim a task, and to merge work without a review (E34)."""

    claim: AccessLevel = AccessLevel.UNTRUSTED
    merge: AccessLevel = AccessLevel.UNTRUSTED


class Preemption(msgspec.Struct, frozen=True):
    """Preemption. A preempted session may take ``within_ms`` to end; 0: its grace."""

    within_ms: int = 0


class TaskPlan(msgspec.Struct, frozen=True):
    """One task. ``verify`` holds the commands that must succeed before it counts as done.

    - ``role`` is required of its agent. ``trust`` is the required level, in a fleet with trust.
    - ``files`` are the paths that it will change, each a file or a folder with its content.
    - ``needs_approval``: an operator has to approve the work before it is merged.
    - It may be split into ``most_subtasks`` parts, and waits for them no longer than ``subtasks_ms``.
    - ``caps`` are what may be spent on it and its parts.
    - ``orphaned`` decides about it when its session dies; with None the plan does. ``on_nothing`` decides when a
      session reports success, has changed nothing, and no command of ``verify`` tells. ``anew``: a retry begins a new
      conversation; with None the plan decides.
    """

    id: str
    prompt: str
    verify: tuple[tuple[str, ...], ...] = ()
    depends_on: tuple[str, ...] = ()
    priority: int = 2
    max_retries: int = 3
    role: str = ""
    files: tuple[str, ...] = ()
    needs_approval: bool = False
    most_subtasks: int = 0
    subtasks_ms: int = fleet_task.SUBTASKS_MS
    trust: AccessLevel = AccessLevel.UNTRUSTED
    caps: Caps = Caps()
    orphaned: task.OnDeath | None = None
    on_nothing: task.OnNothing = task.OnNothing.FAIL
    anew: bool | None = None


class ServicePlan(msgspec.Struct, frozen=True):
    """One service: its name, the limits of its life, the grace and the time-out of its runs, and what triggers it."""

    name: str
    limits: process.Limits = process.Limits()
    runs: session.Limits = session.Limits()
    triggers: tuple[Source, ...] = ()
    takes_messages: bool = False


class NotifierPlan(msgspec.Struct, frozen=True):
    """One notifier: its name, the kinds of notifications that it listens to, and the retries of each delivery."""

    name: str
    kinds: tuple[NotificationKind, ...]
    retries: int = notifier.DEFAULT_RETRIES


class Plan(msgspec.Struct, frozen=True):
    """The agents, tasks and services of a fleet, in order.

    - ``approve_plan``: nothing begins before an operator has approved the plan.
    - ``approval_ms`` is how long finished work waits for an approval; 0 is without limit.
    - ``watch``: more tasks may come until an operator closes the intake.
    - ``retry`` decides when failed tasks are retried. ``gates`` say what requires trust; without them trust does not
      count (E34).
    - ``budget`` is what may be spent. ``restarts`` limits the restarts of all agents together; with None there are
      none.
    - ``preemption``: without it no task is preempted. ``aborts`` is the policy of aborts (E37); with None there are
      none.
    - ``orphaned`` decides about tasks whose sessions die.
    - ``key`` is the source of the tokens of claims: random, and of this log only.
    - ``guarded``: work is merged into a branch of a repository.
    - ``to_branch``: it becomes a ready branch of its own instead (see ``ready_branches``).
    - ``anew``: a retry begins a new conversation. Without it, the agent of the last attempt resumes the one it had.
    - ``questions`` are the terms of questions to operators; with None no agent can ask.
    - ``notify`` are the notifiers that tell people what waits and what has happened.
    """

    name: str
    agents: tuple[AgentPlan, ...]
    tasks: tuple[TaskPlan, ...]
    approve_plan: bool = False
    approval_ms: int = 0
    watch: bool = False
    retry: RetryPolicy = RETRIED_AS_OFTEN_AS_THE_TASK_SAYS
    gates: GatePlan | None = None
    budget: Budget = Budget()
    restarts: Intensity | None = None
    preemption: Preemption | None = None
    services: tuple[ServicePlan, ...] = ()
    orphaned: task.OnDeath = task.OnDeath.FAIL
    aborts: AbortPolicy | None = None
    key: str = ""
    guarded: bool = False
    anew: bool = False
    questions: question.Terms | None = None
    notify: tuple[NotifierPlan, ...] = ()
    to_branch: bool = False


def opening(plan: Plan, at_ms: int) -> Iterator[tuple[str, Envelope]]:
    """Yield the inputs that create the fleet, each with its aggregate: the board first, workers, services."""
    tasks = {f"task:{each.id}": fleet_task_of(each, ordinal, plan) for ordinal, each in enumerate(plan.tasks)}
    worker_slots = {f"worker_slot:{each.name}": worker_slot_of(each, plan) for each in plan.agents}
    proposed = {plan_approval.REF: plan_approval.Proposal()} if plan.approve_plan else {}
    watched = {intake.REF: intake.Intake()} if plan.watch else {}
    all_budgets = dict(_budgets(plan))
    service_slots = {f"{service_slot.REF}:{each.name}": service_slot.ServiceSlot() for each in plan.services}
    limits = {**all_budgets, **_permits(plan), **_accounts(plan)}
    others = {**proposed, **watched, **limits, **_preemption_requests(plan), **service_slots, **_notifiers(plan)}
    yield _opened(_BOARD, {**tasks, **worker_slots, **others}, at_ms)
    keeps_time = any(line.resource is Resource.TIME for each in all_budgets.values() for line in each.lines)
    metered = {usage_meter.REF: usage_meter.UsageMeter(keeps_time=keeps_time)} if all_budgets else {}
    for agent in plan.agents:
        yield _opened(f"{worker.KIND}/{agent.name}", {**working(agent, plan), **metered}, at_ms)
    for each in plan.services:
        yield _opened(f"{service.KIND}/{each.name}", dict(serving(each)), at_ms)


def working(agent: AgentPlan, plan: Plan) -> dict[str, Record]:
    """Return the entities that a worker begins with, except the meter of a fleet with budgets."""
    records: dict[str, Record] = {
        "desired_state": desired_state.DesiredState(),
        "mailbox": mailbox.Mailbox(),
        "assignment": assignment.Assignment(
            verify_timeout_ms=agent.verify_timeout_ms, guarded=plan.guarded, to_branch=plan.to_branch
        ),
        "session": SupervisedSession(
            name=agent.name,
            limits=agent.limits,
            account=agent.account,
            supervised=_is_supervised(plan, agent),
            talks=agent.talks is not None,
            steers=agent.steers,
        ),
    }
    if agent.talks is not None:
        talks = agent.talks
        records[conversation.REF] = conversation.Conversation(chooses=talks.chooses, resumes=talks.resumes)
    if agent.account:
        records[quota.REF] = quota.Quota()
    if agent.stall is not None:
        records[stall_detector.REF] = stall_detector.StallDetector(limits=agent.stall)
    if agent.follows:
        records[output.REF] = output.Output(steers=agent.steers)
        records[turns.REF] = turns.FleetTurn(agent=agent.name)
    if agent.steers:
        records[steering.REF] = steering.Steering()
    if plan.questions is not None:
        records[question.REF] = question.Questions(terms=plan.questions)
    if _is_supervised(plan, agent):
        records[supervisor.REF] = supervisor.Supervisor(name=agent.name, pause=agent.restart.pause)
    listeners = tuple(_listeners(plan, agent))
    if listeners:
        records[announcer.REF] = announcer.Announcer(listeners=listeners)
    return records


def serving(plan: ServicePlan) -> Iterator[tuple[str, Record]]:
    """Yield what a service begins with."""
    yield "desired_state", desired_state.DesiredState()
    yield inbox.REF, inbox.Inbox(takes_messages=plan.takes_messages)
    yield invocation.REF, invocation.Invocation(name=plan.name, limits=plan.runs)
    for number, source in enumerate(plan.triggers, 1):
        yield f"{trigger.REF}:{number}", trigger.Trigger(source=source)
    yield service.PROCESS, process.Process(name=plan.name, limits=plan.limits)


def _budgets(plan: Plan) -> Iterator[tuple[str, budget.Budget]]:
    """Yield the budgets that there are to be."""
    yield from budget_of(budgets.FLEET, plan.budget.caps, plan.budget)
    for agent in plan.agents:
        yield from budget_of(budgets.of_agent(agent.name), agent.caps, plan.budget)
    for each in plan.tasks:
        yield from budget_of(budgets.of_task(each.id), each.caps, plan.budget)


def budget_of(ref: str, caps: Caps, rules: Budget) -> Iterator[tuple[str, budget.Budget]]:
    """Yield a budget with these caps; none if there is none. Raises ``ValueError`` if a claim is given none of it."""
    limited = ((resource, cap) for resource in Resource if (cap := caps.of(resource)) is not None)
    lines = tuple(budget.Line(resource, rules.share.of(resource), Account(cap=cap)) for resource, cap in limited)
    unshared = [each.resource for each in lines if each.share < 1]
    if unshared:
        raise ValueError(f"{ref}: limits {', '.join(unshared)}, of which the share of a claim has to be 1 or more")
    if lines:
        yield ref, budget.Budget(lines=lines, period_ms=rules.period_ms, charges_the_silent=rules.charges_the_silent)


def _accounts(plan: Plan) -> dict[str, account.Account]:
    """Return the accounts that the board begins with; none without agents that have one."""
    return {accounts.ref_of(each.account): account.Account() for each in plan.agents if each.account}


def _notifiers(plan: Plan) -> dict[str, notifier.Notifier]:
    """Return the notifiers that the board begins with; none without a table of one."""
    return {
        f"{notifier.REF}:{number}": notifier.Notifier(name=each.name, kinds=each.kinds, retries=each.retries)
        for number, each in enumerate(plan.notify, 1)
    }


def _listeners(plan: Plan, agent: AgentPlan) -> Iterator[tuple[NotificationKind, str]]:
    """Yield the kinds that the agent's worker announces, each with a notifier that listens to it."""
    asks: set[NotificationKind] = set()
    if plan.questions is not None:
        asks |= {NotificationKind.QUESTION, NotificationKind.PERMISSION}
    if agent.stall is not None:
        asks.add(NotificationKind.STALLED)
    for number, each in enumerate(plan.notify, 1):
        yield from ((kind, f"{notifier.REF}:{number}") for kind in each.kinds if kind in asks)


def _permits(plan: Plan) -> dict[str, restart_permit.RestartPermit]:
    """Return the restart permits that the board begins with; none without restarts."""
    if plan.restarts is None:
        return {}
    own = [own_permits(each, plan) for each in plan.agents]
    return {
        ref: each
        for found in (*own, restarts.restart_permits(restarts.OF_ALL, plan.restarts))
        for ref, each in found.items()
    }


def own_permits(agent: AgentPlan, plan: Plan) -> dict[str, restart_permit.RestartPermit]:
    """Return an agent's own permits for restarts."""
    return restarts.restart_permits(agent.name, agent.restart) if _is_supervised(plan, agent) else {}


def _preemption_requests(plan: Plan) -> dict[str, preemption_request.PreemptionRequest]:
    """Return the preemption requests that the board begins with; none without preemption."""
    if plan.preemption is None:
        return {}
    return preemption.preemption_requests(tuple(each.name for each in plan.agents), plan.preemption.within_ms)


def _is_supervised(plan: Plan, agent: AgentPlan) -> bool:
    return plan.restarts is not None and agent.restart.max_restarts > 0


def fleet_task_of(each: TaskPlan, ordinal: int, plan: Plan) -> fleet_task.FleetTask:
    """Return a task of the plan as the board begins with it; ``ordinal`` is its place."""
    gates = plan.gates or GatePlan()
    return fleet_task.FleetTask(
        state=task.State.PLANNED if plan.approve_plan else task.State.OPEN,
        id=each.id,
        prompt=each.prompt,
        verify=each.verify,
        depends_on=each.depends_on,
        priority=each.priority,
        ordinal=ordinal,
        max_retries=each.max_retries,
        limit=each.max_retries,
        role=each.role,
        files=each.files,
        needs_approval=each.needs_approval,
        most_subtasks=each.most_subtasks,
        subtasks_ms=each.subtasks_ms,
        approval_ms=plan.approval_ms,
        retry=plan.retry,
        level=max(gates.claim, each.trust),
        merges=gates.merge,
        always_needs_approval=each.needs_approval,
        orphaned=each.orphaned or plan.orphaned,
        on_nothing=each.on_nothing,
        anew=plan.anew if each.anew is None else each.anew,
        fate=fleet_task.Fate(plan.aborts) if plan.aborts is not None else None,
        key=plan.key,
    )


def worker_slot_of(agent: AgentPlan, plan: Plan) -> worker_slot.WorkerSlot:
    """Return an agent of the plan as the board begins with it."""
    trust = _trust(agent, plan)
    return worker_slot.WorkerSlot(roles=agent.roles, trust=trust, adaptive=agent.adaptive, account=agent.account)


def _trust(agent: AgentPlan, plan: Plan) -> Trust | None:
    return None if plan.gates is None else Trust(agent.trust)


def _opened(aggregate: str, records: Mapping[str, Record], at_ms: int) -> tuple[str, Envelope]:
    return aggregate, Envelope("", Opened(dict(records)), at_ms, "plan", key="opened")
