"""The status of a fleet, for operators and programs: a projection of the aggregates alone.

A status is belief. Evidence about processes comes from outside, and has fields of its own. The desired state is what
operators asked for. The three are never mixed.

A status also has what waits for an operator, with the command that lets it go on. Without that, such a fleet would look
stuck.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import budget, fleet_task, intake, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import accounts, budgets, plan_approval
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.fleet.service import inbox, invocation, trigger
from lifefold.core.fleet.system import board, plan_change, worker
from lifefold.core.fleet.worker import (
    assignment,
    desired_state,
    mailbox,
    question,
    shutdown,
    stall_detector,
    supervisor,
)
from lifefold.core.fleet.worker.appearance import Appearance, appearance
from lifefold.core.kernel import Aggregate, Entity, Phase, replace
from lifefold.core.lifecycles import process, session, task
from lifefold.effects.service import Source
from lifefold.effects.session import RunSession
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.conversing import conversing
from lifefold.interpreters.explain.turn_status import TurnStatus, turn_status


class Timer(msgspec.Struct, frozen=True):
    """The next event of a timer, and its time (Unix time in milliseconds)."""

    event: str
    deadline_ms: int


class AgentStatus(msgspec.Struct, frozen=True):
    """The status of an agent, as the log has it; ``since_ms`` is Unix time.

    ``desired_state`` is what operators asked for. ``doing`` is the state of its assignment. ``messages`` counts the
    operator messages that no session has succeeded with yet, ``prompted`` those of them that the prompt of the running
    session has. ``undelivered`` counts those of an agent that has stopped for good. ``processes`` counts the sessions
    that run or are ending. ``level`` is its trust level, empty without trust gates; ``successes`` and ``violations``
    are its track record.

    ``stall_detector`` is the progress of its session, empty without a stall detector. ``silent_since_ms`` is the
    approximate time of the last progress of a session on the ladder, otherwise 0. ``supervisor`` is the state of its
    restarts, empty without restarts; ``reason`` is then the reason of a quarantine. ``preempted_for`` is the task that
    it is preempted for, until it is free; otherwise empty. ``lacks`` is the budget without a share left for another
    claim, ``its`` or ``the fleet's``; empty if there is none. ``conversation`` says which conversation its session
    resumes or begins.

    ``appearance`` has the words of documents 001 and 004 for it, and ``turn`` its present or last turn. Both are None
    for a service.

    For a service (``kind``), the state is that of its process, and ``reason`` says why it is down. ``doing`` is the
    prompt of its run, empty without one. ``messages`` counts its waiting messages, ``waiting`` all its waiting items.
    ``triggers`` has the last due time of each trigger. ``consecutive_errors`` are failed runs, and ``total_errors`` the
    restarts since the last successful run.
    """

    name: str
    desired_state: str
    state: str
    since_ms: int
    task: str
    doing: str
    session_seq: int
    attempt: int
    consecutive_errors: int
    total_errors: int
    messages: int
    processes: int
    timer: Timer | None
    reason: str
    level: str = ""
    successes: int = 0
    violations: int = 0
    stall_detector: str = ""
    silent_since_ms: int = 0
    supervisor: str = ""
    preempted_for: str = ""
    kind: str = worker.KIND
    waiting: int = 0
    triggers: tuple["TriggerStatus", ...] = ()
    undelivered: int = 0
    prompted: int = 0
    lacks: str = ""
    conversation: str = ""
    appearance: Appearance | None = None
    turn: TurnStatus | None = None


class TriggerStatus(msgspec.Struct, frozen=True):
    """A trigger of a service, and the last time it was due (Unix time in milliseconds); 0 for never."""

    source: Source
    last_ms: int


class TaskStatus(msgspec.Struct, frozen=True):
    """The status of a task. ``reason`` says why it failed, is blocked, or was given back; otherwise it is empty.

    ``timer`` is its next timer: a retry, or the end of the wait for an approval or for subtasks. It is a part of
    ``parent``, and blocked by ``blocked_by``. An agent needs the trust ``level`` to take it, and ``merges`` to merge it
    unseen; empty is any level. ``removed``: a plan change has removed it, so that it is not counted. A closed task is
    counted all the same, because its work is merged.
    """

    id: str
    state: str
    settled: bool
    owner: str
    priority: int
    depends_on: tuple[str, ...]
    retries: int
    max_retries: int
    claims: int
    reason: str
    commit: str
    since_ms: int
    timer: Timer | None
    parent: str
    blocked_by: str
    role: str
    files: tuple[str, ...]
    level: str
    merges: str
    needs_approval: bool
    removed: bool = False


def agent_status(of: Aggregate) -> AgentStatus:
    """Return the status of a worker's agent."""
    record: session.Session = of.record("session")
    assigned, wanted = of.record("assignment"), of.record("desired_state")
    entity = of.entities["session"]
    supervised = of.entities.get(supervisor.REF)
    box: mailbox.Mailbox = of.record("mailbox")
    undelivered = len(box.messages) if box.state is mailbox.State.CLOSED else 0
    return AgentStatus(
        name=of.key,
        desired_state=wanted.state,
        state=record.state,
        since_ms=entity.entered_ms,
        task=task_in_hand(assigned),
        doing=assigned.state,
        session_seq=record.session_seq,
        attempt=record.attempt,
        consecutive_errors=record.consecutive_errors,
        total_errors=record.total_errors,
        messages=len(box.messages) - undelivered,
        processes=_processes(entity),
        timer=_session_timer(entity, was_held=_was_held(of)) or (_timer(supervised) if supervised else None),
        reason=(supervised.record.why_quarantined if supervised else "") or wanted.reason,
        stall_detector=of.record(stall_detector.REF).state if stall_detector.REF in of.entities else "",
        silent_since_ms=_silent_since_ms(of.entities.get(stall_detector.REF)),
        supervisor=supervised.state if supervised else "",
        undelivered=undelivered,
        prompted=box.taken if record.state in session.SESSION_LIVES else 0,
        conversation=conversing(of) if task_in_hand(assigned) else "",
        appearance=appearance(of),
        turn=turn_status(of),
    )


def task_in_hand(assigned: assignment.Assignment) -> str:
    """Return the task of a worker; empty if it has none."""
    return "" if assigned.state in {assignment.State.IDLE, assignment.State.WANTING} else assigned.brief.task


def service_status(of: Aggregate) -> AgentStatus:
    """Return the status of a service."""
    runs, life = of.entities[invocation.REF], of.entities[service.PROCESS]
    of_process: process.Process = life.record
    waits: inbox.Inbox = of.record(inbox.REF)
    wanted: desired_state.DesiredState = of.record("desired_state")
    down = service.reason_of(of_process) if service.is_down(of) and service.has_failed(of_process) else ""
    watched = [each.record for each in trigger.of_service(of.entities)]
    return AgentStatus(
        name=of.key,
        desired_state=wanted.state,
        state=life.state,
        since_ms=life.entered_ms,
        task="",
        doing="" if waits.in_hand is None else waits.in_hand.text,
        session_seq=runs.record.session_seq,
        attempt=runs.record.attempt,
        consecutive_errors=of_process.consecutive_failures,
        total_errors=of_process.restart_count,
        messages=len(waits.messages),
        processes=_processes(runs),
        timer=_timer(life),
        reason=down or wanted.reason or of_process.failure,
        kind=service.KIND,
        waiting=len(waits.items),
        triggers=tuple(TriggerStatus(each.source, each.last_ms) for each in watched),
    )


def _processes(entity: Entity[Any]) -> int:
    """Return how many sessions run or are ending."""
    return sum(part.slot == "RunSession" and part.phase is not Phase.WAITING for part in entity.running)


def _silent_since_ms(entity: Entity[stall_detector.StallDetector] | None) -> int:
    """Return the time when a session on the ladder fell silent, as far as the log knows; otherwise 0."""
    if entity is None or entity.state not in stall_detector.ON_LADDER:
        return 0
    if entity.state is stall_detector.State.ANSWERED:
        return entity.entered_ms
    return entity.entered_ms - entity.record.limits.steps_ms[entity.record.steps_taken - 1]


def _was_held(of: Aggregate) -> bool:
    """Tell whether a question of the running session waits or has waited. The log does not have how long."""
    asked = of.entities.get(question.REF)
    return question.waits(of) or (asked is not None and asked.entered_ms > of.entities["session"].entered_ms)


def _session_timer(entity: Entity[session.Session], *, was_held: bool) -> Timer | None:
    """Return the next timer of a session: one of the lifecycle, or its time limit, unless that stood still."""
    running = running_session(entity)
    if running is None or running.timeout_ms is None or was_held or entity.state is not session.State.RUNNING:
        return _timer(entity)
    return _timer(entity, Timer("SessionTimeout", entity.entered_ms + running.timeout_ms))


def running_session(entity: Entity[session.Session]) -> RunSession | None:
    """Return the session that runs, with the limits that it began with."""
    part = entity.find("RunSession")
    return part.activity if part is not None and isinstance(part.activity, RunSession) else None


def _timer(entity: Entity[Any], *more: Timer) -> Timer | None:
    """Return the first of an entity's timers, and of more."""
    timers = [Timer(part.slot, part.deadline_ms) for part in entity.running if part.deadline_ms]
    return min((*timers, *more), key=lambda timer: timer.deadline_ms, default=None)


def task_status(entity: Entity[FleetTask]) -> TaskStatus:
    """Return the status of a task."""
    record = entity.record
    return TaskStatus(
        id=record.id,
        state=record.state,
        settled=task.settled(record),
        owner=record.owner,
        priority=record.priority,
        depends_on=record.depends_on,
        retries=record.retries,
        max_retries=record.max_retries,
        claims=record.epoch,
        reason=_reason_of(record),
        commit=record.commit,
        since_ms=entity.entered_ms,
        timer=_timer(entity),
        parent=record.parent,
        blocked_by=record.blocked_by,
        role=record.role,
        files=record.files,
        level=record.level.word if record.level else "",
        merges=record.merges.word if record.merges else "",
        needs_approval=record.needs_approval,
    )


def _reason_of(of: FleetTask) -> str:
    """Return why a task is in its state. Verified work does not have the reason of an earlier failure."""
    is_given_back = of.state is task.State.DONE and not of.owner
    reason = of.reason if is_given_back or of.state in _REASONED else ""
    return _joined(reason, fleet_task.NOT_IN_THE_PLAN if of.removed else "")


def _joined(*reasons: str) -> str:
    """Return the reasons that are not empty, each once."""
    return "; ".join(dict.fromkeys(filter(None, reasons)))


_REASONED = frozenset(
    {task.State.OPEN, task.State.FAILED, task.State.BLOCKED, task.State.CANCELLED, task.State.ORPHANED}
)
"""The states that the reason of a task explains."""


def agents(aggregates: Mapping[str, Aggregate]) -> tuple[AgentStatus, ...]:
    """Return the status of every agent by name, followed by the services."""
    every = [aggregates[name] for name in sorted(aggregates)]
    workers = (_on_board(agent_status(each), aggregates[board.NAME]) for each in every if each.kind == worker.KIND)
    return (*workers, *(service_status(each) for each in every if each.kind == service.KIND))


def _on_board(agent: AgentStatus, aggregate: Aggregate) -> AgentStatus:
    """Return the status with what the board knows of the agent."""
    slot: worker_slot.WorkerSlot = aggregate.record(f"worker_slot:{agent.name}")
    if slot.state is worker_slot.State.WORKING:
        agent = replace(agent, preempted_for=work_of(aggregate).preempted.get(agent.name, ""))
    agent = replace(agent, lacks=_lacks(agent.name, aggregate))
    account = accounts.account_of(aggregate, agent.name)
    if account is not None and agent.timer is None and agent.doing == assignment.State.WANTING:
        agent = replace(agent, timer=_timer(account))
    trust = slot.trust
    if trust is None:
        return agent
    return replace(agent, level=trust.level.word, successes=trust.successes, violations=trust.violations)


def _lacks(agent: str, of: Aggregate) -> str:
    """Return the budget that admits no further claim of an agent; empty if there is none."""
    for ref, whose in ((budgets.of_agent(agent), "its"), (budgets.FLEET, "the fleet's")):
        found = of.entities.get(ref)
        if found is not None and found.state not in budget.ADMITS:
            return whose
    return ""


def tasks(aggregates: Mapping[str, Aggregate]) -> tuple[TaskStatus, ...]:
    """Return the status of every task in the order of the plan, parts next to their parents."""
    aggregate = aggregates[board.NAME]
    gone = plan_change.removed(aggregate)
    entities = [each for ref, each in aggregate.entities.items() if ref.startswith("task:")]
    found = [task_status(each) for each in sorted(entities, key=lambda each: (each.record.ordinal, each.record.id))]
    return tuple(_removed(each) if each.id in gone else each for each in found)


def _removed(of: TaskStatus) -> TaskStatus:
    """Return the status of a task that is no longer in the plan, whatever its state."""
    reason = of.reason if fleet_task.NOT_IN_THE_PLAN in of.reason else _joined(of.reason, fleet_task.NOT_IN_THE_PLAN)
    return replace(of, removed=of.state != task.State.CLOSED, reason=reason)


def counted(every: Sequence[TaskStatus]) -> tuple[TaskStatus, ...]:
    """Return the tasks of the plan, without those that a plan change has removed."""
    return tuple(each for each in every if not each.removed)


def without_change(every: Sequence[TaskStatus]) -> tuple[str, ...]:
    """Return the closed tasks without a merged commit, in a fleet that merges; split tasks are left out."""
    whole = {each.parent for each in every}
    return tuple(
        each.id for each in every if each.state == task.State.CLOSED and not each.commit and each.id not in whole
    )


class Awaited(StrEnum):
    """What waits for an operator."""

    QUESTION = "question"
    PLAN = "plan"
    TASK = "task"
    AGENT = "agent"
    BUDGET = "budget"
    ACCOUNT = "account"
    TRUST = "trust"
    TASKS = "tasks"


class Waiting(msgspec.Struct, frozen=True):
    """Something that waits for an operator; ``command`` lets it go on.

    ``names`` has a question, the tasks of an undecided plan, a task that needs approval, or a paused agent. For a spent
    budget, it has the blocked tasks or the agent; for trust, a task above every agent's level. For a limit, it has the
    account that rests until ``until_ms`` at the latest, also without an operator. It is empty for a finished fleet with
    an open intake. ``reason`` says why it waits. Else silence becomes a refusal at ``until_ms``; 0 is never. Times are
    Unix time in milliseconds.
    """

    about: Awaited
    names: tuple[str, ...]
    command: str
    since_ms: int
    until_ms: int = 0
    reason: str = ""


def waiting(aggregates: Mapping[str, Aggregate]) -> tuple[Waiting, ...]:
    """Return what waits for an operator: questions, the plan, tasks in its order, agents by name, and the intake.

    A finished fleet waits for nothing: no command changes it any more.
    """
    if board.NAME not in aggregates or board.finished(aggregates[board.NAME]):
        return ()
    aggregate = aggregates[board.NAME]
    return (
        *_questions(aggregates),
        *_to_be_approved(aggregate, tasks(aggregates)),
        *_out_of_money(aggregate),
        *_limited(aggregate),
        *_paused(aggregates),
        *_more_tasks(aggregate),
    )


def _questions(aggregates: Mapping[str, Aggregate]) -> Iterator[Waiting]:
    for each in questions.waiting(aggregates):
        command = "approve" if each.is_permission else "answer"
        said = each.sentence()
        yield Waiting(Awaited.QUESTION, (each.name,), command, each.question.asked_ms, each.until_ms, said)


def _to_be_approved(aggregate: Aggregate, every: tuple[TaskStatus, ...]) -> Iterator[Waiting]:
    planned = [each for each in every if each.state == task.State.PLANNED]
    plan = aggregate.entities.get(plan_approval.REF)
    if planned and plan is not None and plan.state is plan_approval.State.PROPOSED:
        yield Waiting(Awaited.PLAN, tuple(each.id for each in planned), "approve", plan.entered_ms)
    for each in every:
        if each.state == task.State.PENDING_APPROVAL:
            until_ms = each.timer.deadline_ms if each.timer else 0
            yield Waiting(Awaited.TASK, (each.id,), "approve", each.since_ms, until_ms)
        if each.id in work_of(aggregate).distrusted:
            yield Waiting(Awaited.TRUST, (each.id,), "trust", each.since_ms, reason=each.reason)


def _out_of_money(aggregate: Aggregate) -> Iterator[Waiting]:
    every = sorted(tasks_of(aggregate), key=lambda each: (each.ordinal, each.id))
    blocked = [each for each in every if each.state is task.State.BLOCKED]
    for ref in sorted(
        dict.fromkeys(each.blocked_by for each in blocked if each.blocked_by.startswith(fleet_task.BUDGET))
    ):
        names = tuple(each.id for each in blocked if each.blocked_by == ref)
        entity: Entity[budget.Budget] = aggregate.entities[ref]
        yield Waiting(
            Awaited.BUDGET, names, budgets.raising(entity), entity.entered_ms, reason=budgets.reason_of(entity)
        )
    for ref in sorted(each for each in aggregate.entities if each.startswith(f"{fleet_task.BUDGET}agent/")):
        entity, name = aggregate.entities[ref], ref.partition("/")[2]
        slot = aggregate.entities[f"worker_slot:{name}"]
        if budget.is_spent_for_good(entity.record) and slot.state is not worker_slot.State.GONE:
            yield Waiting(
                Awaited.BUDGET, (name,), budgets.raising(entity), entity.entered_ms, reason=budgets.reason_of(entity)
            )


def _limited(aggregate: Aggregate) -> Iterator[Waiting]:
    for entity in accounts.accounts_of(aggregate):
        timer = _timer(entity)
        if timer is not None:
            name = entity.ref.partition(":")[2]
            command = f"resume --account {name}"
            reason = accounts.reason_of(entity.record)
            yield Waiting(Awaited.ACCOUNT, (name,), command, entity.entered_ms, timer.deadline_ms, reason)


def _paused(aggregates: Mapping[str, Aggregate]) -> Iterator[Waiting]:
    for name in sorted(aggregates):
        of = aggregates[name]
        entity = of.entities.get("desired_state")
        if entity is not None and entity.state is desired_state.State.PAUSE and not _is_gone(of):
            yield Waiting(Awaited.AGENT, (of.key,), "resume", entity.entered_ms, reason=entity.record.reason)


def _is_gone(of: Aggregate) -> bool:
    """Tell whether an agent has stopped, or a service is down, for good."""
    return service.is_down(of) if of.kind == service.KIND else shutdown.is_gone(of)


def _more_tasks(aggregate: Aggregate) -> Iterator[Waiting]:
    if intake.are_open(aggregate) and not work_of(aggregate).unsettled:
        since_ms = max(each.entered_ms for ref, each in aggregate.entities.items() if not ref.startswith(_OF_WORKERS))
        yield Waiting(Awaited.TASKS, (), "task add", since_ms)


_OF_WORKERS = ("worker_slot:", "restart_permit:")
"""The prefixes of a board's entities that are about workers, and not about tasks."""
