"""What the log says of a fleet, for people and programs: a projection, computed from the aggregates and nothing else.

It is belief. Whether a process is really there is evidence, which has to be fetched from outside and stands in fields
of its own; and what was asked for is intent. The three are never mixed.
"""

from collections.abc import Mapping

import msgspec

from lifefold.core import session, task
from lifefold.core.fleet import board, worker
from lifefold.core.kernel import Aggregate, Entity, Phase


class Timer(msgspec.Struct, frozen=True):
    """What happens next by itself, and when (Unix time in milliseconds)."""

    event: str
    deadline_ms: int


class AgentStatus(msgspec.Struct, frozen=True):
    """An agent. ``intent`` is what was asked of it, everything else what the log says; ``since_ms`` is Unix time.

    ``doing`` is what happens to its task (the assignment's state), ``letters`` counts those that no session has
    succeeded with yet, ``processes`` sessions that run or are ending.
    """

    name: str
    intent: str
    state: str
    since_ms: int
    task: str
    doing: str
    session_seq: int
    attempt: int
    consecutive_errors: int
    total_errors: int
    letters: int
    processes: int
    timer: Timer | None
    reason: str


class TaskStatus(msgspec.Struct, frozen=True):
    """A task, as the board has it. ``reason`` says why it failed, is blocked, or was given back."""

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


def agent_status(of: Aggregate) -> AgentStatus:
    """Return the status of a worker's agent."""
    record: session.Session = of.record("session")
    assigned, intent = of.record("assignment"), of.record("intent")
    entity = of.entities["session"]
    in_hand = assigned.state not in {"Idle", "Wanting"}
    return AgentStatus(
        name=of.key,
        intent=intent.state,
        state=record.state,
        since_ms=entity.entered_ms,
        task=assigned.brief.task if in_hand else "",
        doing=assigned.state,
        session_seq=record.session_seq,
        attempt=record.attempt,
        consecutive_errors=record.consecutive_errors,
        total_errors=record.total_errors,
        letters=len(of.record("mailbox").letters),
        processes=sum(1 for part in entity.running if part.slot == "RunSession" and part.phase is not Phase.WAITING),
        timer=_timer(entity),
        reason=intent.reason,
    )


def _timer(entity: Entity[session.Session]) -> Timer | None:
    """Return the next thing that time brings: a timer of the lifecycle, or a session's time-out."""
    timers = [Timer(part.slot, part.deadline_ms) for part in entity.running if part.deadline_ms]
    record = entity.record
    if record.state is session.State.RUNNING and record.limits.session_timeout_ms is not None:
        timers.append(Timer("SessionTimeout", entity.entered_ms + record.limits.session_timeout_ms))
    return min(timers, key=lambda timer: timer.deadline_ms, default=None)


def task_status(entity: Entity[task.Task]) -> TaskStatus:
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
        reason=record.reason,
        commit=record.commit,
        since_ms=entity.entered_ms,
    )


def agents(aggregates: Mapping[str, Aggregate]) -> tuple[AgentStatus, ...]:
    """Return the status of every agent, by name."""
    return tuple(agent_status(aggregates[name]) for name in sorted(aggregates) if aggregates[name].kind == worker.KIND)


def tasks(aggregates: Mapping[str, Aggregate]) -> tuple[TaskStatus, ...]:
    """Return the status of every task, in the order of the plan."""
    entities = [each for ref, each in aggregates[board.NAME].entities.items() if ref.startswith("task:")]
    return tuple(task_status(each) for each in sorted(entities, key=lambda each: each.record.ordinal))
