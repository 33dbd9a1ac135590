"""What the log says of a fleet, for people and programs: a projection, computed from the aggregates and nothing else.

It is belief. Whether a process is really there is evidence, which has to be fetched from outside and stands in fields
of its own; and what was asked for is intent. The three are never mixed.

What waits for a person is said here, too: a fleet in which nothing goes on before somebody says a word looks like one
that is stuck, unless it is plain which word, and of what.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import budget, fleet_task, intake, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import budgets, plan_approval
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.fleet.service import inbox, invocation, trigger
from lifefold.core.fleet.system import board, plan_change, worker
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, shutdown, stall_detector, supervisor
from lifefold.core.kernel import Aggregate, Entity, Phase, replace
from lifefold.core.lifecycles import process, session, task
from lifefold.effects.service import Source


class Timer(msgspec.Struct, frozen=True):
    """What happens next by itself, and when (Unix time in milliseconds)."""

    event: str
    deadline_ms: int


class AgentStatus(msgspec.Struct, frozen=True):
    """An agent. ``intent`` is what was asked of it, everything else what the log says; ``since_ms`` is Unix time.

    ``doing`` is what happens to its task (the assignment's state), ``messages`` counts those that no session has
    succeeded with yet, ``undelivered`` those that nobody will read: it has stopped for good. ``processes`` are sessions
    that run or are ending. ``level`` is how far it is trusted, with what it has come by that; empty in a fleet that
    gates nothing. ``pulse`` is whether its session moves, and ``silent_since_ms`` about when it last did, if it is on
    the ladder: empty and 0 if it is not watched. ``supervision`` says whether an agent that stops by its errors comes
    back, empty if that is never so; ``reason`` is then why it is quarantined. ``makes_room_for`` is the task for which
    it was asked to let its own go, and is not free yet; empty if it was not.

    Of a service (``kind``) the state is that of its process, and ``reason`` says why it is down. ``doing`` is what its
    run was told, empty if it runs nothing; ``messages`` counts the messages that wait, ``waiting`` everything that
    does. ``triggers`` says when each of them was due last, 0 if never. Errors in a row are failed runs, all errors the
    restarts since the last run that succeeded.
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
    makes_room_for: str = ""
    kind: str = worker.KIND
    waiting: int = 0
    triggers: tuple["TriggerStatus", ...] = ()
    undelivered: int = 0


class TriggerStatus(msgspec.Struct, frozen=True):
    """What triggers a service, and when it was due last (Unix time in milliseconds): 0 if it never was."""

    source: Source
    last_ms: int


class TaskStatus(msgspec.Struct, frozen=True):
    """A task, as the board has it. ``reason`` says why it failed, is blocked, or was given back; else it is empty.

    ``timer`` is what time brings next: a retry, or the end of patience with people or with subtasks. ``parent`` is the
    task that it is a part of, ``lacks`` the one because of which it is blocked. ``level`` is how far an agent must be
    trusted to take it, empty if not at all; ``merges`` the same, to have it merged unseen; ``asks``, that a person has
    to agree. ``removed``: a plan change has taken it out, so that it is not counted.
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
    lacks: str
    role: str
    files: tuple[str, ...]
    level: str
    merges: str
    asks: bool
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
        timer=_session_timer(entity) or (_timer(supervised) if supervised else None),
        reason=(supervised.record.why_quarantined if supervised else "") or wanted.reason,
        stall_detector=of.record(stall_detector.REF).state if stall_detector.REF in of.entities else "",
        silent_since_ms=_silent_since_ms(of.entities.get(stall_detector.REF)),
        supervisor=supervised.state if supervised else "",
        undelivered=undelivered,
    )


def task_in_hand(assigned: assignment.Assignment) -> str:
    """Return the task that a worker has in hand; empty if it has none."""
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
    """Return when a session fell silent that is on the ladder, as far as the log knows; otherwise 0."""
    if entity is None or entity.state not in stall_detector.ON_LADDER:
        return 0
    if entity.state is stall_detector.State.ANSWERED:
        return entity.entered_ms
    return entity.entered_ms - entity.record.limits.steps_ms[entity.record.steps_taken - 1]


def _session_timer(entity: Entity[session.Session]) -> Timer | None:
    """Return the next thing that time brings: a timer of the lifecycle, or a session's time-out."""
    record = entity.record
    if record.state is session.State.RUNNING and record.limits.session_timeout_ms is not None:
        return _timer(entity, Timer("SessionTimeout", entity.entered_ms + record.limits.session_timeout_ms))
    return _timer(entity)


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
        lacks=record.lacks,
        role=record.role,
        files=record.files,
        level=record.level.word if record.level else "",
        merges=record.merges.word if record.merges else "",
        asks=record.asks,
    )


def _reason_of(of: FleetTask) -> str:
    """Return why a task is in its state. What an earlier attempt failed by is no reason of verified work."""
    is_given_back = of.state is task.State.DONE and not of.owner
    reason = of.reason if is_given_back or of.state in _REASONED else ""
    is_to_be_added = of.removed and reason != fleet_task.NOT_IN_THE_PLAN
    return "; ".join(filter(None, (reason, fleet_task.NOT_IN_THE_PLAN))) if is_to_be_added else reason


_REASONED = frozenset(
    {task.State.OPEN, task.State.FAILED, task.State.BLOCKED, task.State.CANCELLED, task.State.ORPHANED}
)
"""The states that a task's reason is a reason of."""


def agents(aggregates: Mapping[str, Aggregate]) -> tuple[AgentStatus, ...]:
    """Return the status of every agent, by name; services come after those who take tasks."""
    every = [aggregates[name] for name in sorted(aggregates)]
    workers = (_on_board(agent_status(each), aggregates[board.NAME]) for each in every if each.kind == worker.KIND)
    return (*workers, *(service_status(each) for each in every if each.kind == service.KIND))


def _on_board(agent: AgentStatus, desk: Aggregate) -> AgentStatus:
    """Return it with what the board knows of the agent."""
    sits: worker_slot.WorkerSlot = desk.record(f"worker_slot:{agent.name}")
    if sits.state is worker_slot.State.WORKING:
        agent = replace(agent, makes_room_for=work_of(desk).makes_room.get(agent.name, ""))
    trust = sits.trust
    if trust is None:
        return agent
    return replace(agent, level=trust.level.word, successes=trust.successes, violations=trust.violations)


def tasks(aggregates: Mapping[str, Aggregate]) -> tuple[TaskStatus, ...]:
    """Return the status of every task, in the order of the plan; parts stand with what they are parts of."""
    desk = aggregates[board.NAME]
    gone = plan_change.removed(desk)
    entities = [each for ref, each in desk.entities.items() if ref.startswith("task:")]
    found = (task_status(each) for each in sorted(entities, key=lambda each: (each.record.ordinal, each.record.id)))
    return tuple(replace(each, removed=True) if each.id in gone else each for each in found)


def counted(every: Sequence[TaskStatus]) -> tuple[TaskStatus, ...]:
    """Return the tasks that are counted: those that the plan has. What a change has taken out of it is not."""
    return tuple(each for each in every if not each.removed)


def without_change(every: Sequence[TaskStatus]) -> tuple[str, ...]:
    """Return the closed tasks for which nothing was merged, in a fleet that merges; none that was split."""
    whole = {each.parent for each in every}
    return tuple(
        each.id for each in every if each.state == task.State.CLOSED and not each.commit and each.id not in whole
    )


class Awaited(StrEnum):
    """About what a person is waited for."""

    PLAN = "plan"
    TASK = "task"
    AGENT = "agent"
    BUDGET = "budget"
    TRUST = "trust"
    TASKS = "tasks"


class Waiting(msgspec.Struct, frozen=True):
    """What does not go on before a person says so; ``command`` is what lets it go on.

    ``names`` are the tasks of a plan that nobody has decided about, the task that is to be approved, or the agent that
    is paused, and why it is stands in ``reason``; those that are blocked because a budget is spent; or a task that
    takes more trust than anybody has. None are named
    where everything is done and more tasks may come. At ``until_ms`` silence becomes a refusal; with 0 it never does.
    Times are Unix time in milliseconds.
    """

    about: Awaited
    names: tuple[str, ...]
    command: str
    since_ms: int
    until_ms: int = 0
    reason: str = ""


def waiting(aggregates: Mapping[str, Aggregate]) -> tuple[Waiting, ...]:
    """Return what waits for a person: the plan, then tasks in its order, agents by name, and at last more tasks.

    Where everybody has gone home nobody is waited for: no word changes anything any more.
    """
    if board.NAME not in aggregates or board.finished(aggregates[board.NAME]):
        return ()
    desk = aggregates[board.NAME]
    return (*_to_be_approved(desk, tasks(aggregates)), *_out_of_money(desk), *_paused(aggregates), *_more_tasks(desk))


def _to_be_approved(desk: Aggregate, every: tuple[TaskStatus, ...]) -> Iterator[Waiting]:
    planned = [each for each in every if each.state == task.State.PLANNED]
    plan = desk.entities.get(plan_approval.REF)
    if planned and plan is not None and plan.state is plan_approval.State.PROPOSED:
        yield Waiting(Awaited.PLAN, tuple(each.id for each in planned), "approve", plan.entered_ms)
    for each in every:
        if each.state == task.State.PENDING_APPROVAL:
            until_ms = each.timer.deadline_ms if each.timer else 0
            yield Waiting(Awaited.TASK, (each.id,), "approve", each.since_ms, until_ms)
        if each.id in work_of(desk).distrusted:
            yield Waiting(Awaited.TRUST, (each.id,), "trust", each.since_ms, reason=each.reason)


def _out_of_money(desk: Aggregate) -> Iterator[Waiting]:
    every = sorted(tasks_of(desk), key=lambda each: (each.ordinal, each.id))
    blocked = [each for each in every if each.state is task.State.BLOCKED]
    for ref in sorted(dict.fromkeys(each.lacks for each in blocked if each.lacks.startswith(fleet_task.PURSE))):
        names = tuple(each.id for each in blocked if each.lacks == ref)
        entity: Entity[budget.Budget] = desk.entities[ref]
        yield Waiting(
            Awaited.BUDGET, names, budgets.raising(entity), entity.entered_ms, reason=budgets.reason_of(entity)
        )
    for ref in sorted(each for each in desk.entities if each.startswith(f"{fleet_task.PURSE}agent/")):
        entity, name = desk.entities[ref], ref.partition("/")[2]
        if (
            budget.is_spent_for_good(entity.record)
            and desk.entities[f"worker_slot:{name}"].state is not worker_slot.State.GONE
        ):
            yield Waiting(
                Awaited.BUDGET, (name,), budgets.raising(entity), entity.entered_ms, reason=budgets.reason_of(entity)
            )


def _paused(aggregates: Mapping[str, Aggregate]) -> Iterator[Waiting]:
    for name in sorted(aggregates):
        of = aggregates[name]
        entity = of.entities.get("desired_state")
        if entity is not None and entity.state is desired_state.State.PAUSE and not _is_gone(of):
            yield Waiting(Awaited.AGENT, (of.key,), "resume", entity.entered_ms, reason=entity.record.reason)


def _is_gone(of: Aggregate) -> bool:
    """Tell whether no word brings an agent back: it has stopped, or is down, for good."""
    return service.is_down(of) if of.kind == service.KIND else shutdown.is_gone(of)


def _more_tasks(desk: Aggregate) -> Iterator[Waiting]:
    if intake.are_open(desk) and not work_of(desk).unsettled:
        since_ms = max(each.entered_ms for ref, each in desk.entities.items() if not ref.startswith(_OF_WORKERS))
        yield Waiting(Awaited.TASKS, (), "task add", since_ms)


_OF_WORKERS = ("worker_slot:", "restart_permit:")
"""What of a board is about workers, and not about tasks."""
