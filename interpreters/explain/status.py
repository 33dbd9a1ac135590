"""The status of the agents and services of a fleet, for operators and programs: a projection of the aggregates alone.

A status is belief. Evidence about processes comes from outside, and has fields of its own. The desired state is what
operators asked for. The three are never mixed.

``task_status`` has the tasks, and ``pending`` what waits for an operator.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import budget, worker_slot
from lifefold.core.fleet.dispatch import accounts, budgets
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.service import inbox, invocation, trigger
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, question, stall_detector, supervisor
from lifefold.core.kernel import Aggregate, Entity, Phase, replace
from lifefold.core.lifecycles import process, session
from lifefold.effects.service import Source
from lifefold.effects.session import RunSession
from lifefold.interpreters.explain.appearance import Appearance, appearance
from lifefold.interpreters.explain.conversing import conversing
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.explain.timers import Timer, next_timer
from lifefold.interpreters.explain.turn_status import TurnStatus, turn_status


class AgentStatus(msgspec.Struct, frozen=True):
    """The status of an agent, as the log has it; ``since_ms`` is Unix time.

    ``desired_state`` is what operators asked for. ``doing`` is the state of its assignment. ``messages`` counts the
    operator messages that no session has succeeded with yet, ``prompted`` those of them that the prompt of the running
    session has. ``undelivered`` counts those of an agent that has stopped for good. ``processes`` counts the sessions
    that run or are ending. ``sessions`` counts those that it has begun; the last one has this number. ``attempt``
    counts the attempts at its task, this one included; ``at_attempts`` fills it, and it is 0 without a task.
    ``level`` is its trust level, empty without trust gates; ``successes`` and ``violations`` are its track record.

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
    sessions: int
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
    attempt: int = 0


class TriggerStatus(msgspec.Struct, frozen=True):
    """A trigger of a service, and the last time it was due (Unix time in milliseconds); 0 for never."""

    source: Source
    last_ms: int


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
        task=assigned_task(assigned),
        doing=assigned.state,
        session_seq=record.session_seq,
        sessions=record.attempt,
        consecutive_errors=record.consecutive_errors,
        total_errors=record.total_errors,
        messages=len(box.messages) - undelivered,
        processes=_processes(entity),
        timer=_session_timer(of, entity) or (next_timer(supervised) if supervised else None),
        reason=in_plain_words((supervised.record.why_quarantined if supervised else "") or wanted.reason),
        stall_detector=of.record(stall_detector.REF).state if stall_detector.REF in of.entities else "",
        silent_since_ms=_silent_since_ms(of.entities.get(stall_detector.REF)),
        supervisor=supervised.state if supervised else "",
        undelivered=undelivered,
        prompted=box.taken if record.state in session.SESSION_LIVES else 0,
        conversation=conversing(of) if assigned_task(assigned) else "",
        appearance=appearance(of),
        turn=turn_status(of),
    )


def assigned_task(assigned: assignment.Assignment) -> str:
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
        sessions=runs.record.attempt,
        consecutive_errors=of_process.consecutive_failures,
        total_errors=of_process.restart_count,
        messages=len(waits.messages),
        processes=_processes(runs),
        timer=next_timer(life),
        reason=in_plain_words(down or wanted.reason or of_process.failure),
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


def _session_timer(of: Aggregate, entity: Entity[session.Session]) -> Timer | None:
    """Return the next timer of a session: of its lifecycle, its time limit unless that stood still, or of a silence."""
    running = running_session(entity)
    if running is None or entity.state is not session.State.RUNNING:
        return next_timer(entity)
    is_limited = running.timeout_ms is not None and not _was_held(of)
    limit = (Timer("SessionTimeout", entity.entered_ms + (running.timeout_ms or 0)),) if is_limited else ()
    return next_timer(entity, *limit, *_next_of_silence(of.entities.get(stall_detector.REF)))


def _next_of_silence(entity: Entity[stall_detector.StallDetector] | None) -> Iterator[Timer]:
    """Yield what happens to a session on the ladder if its silence lasts: the name of the next state, and its time."""
    since_ms = _silent_since_ms(entity)
    if entity is None or not since_ms:
        return
    limits = entity.record.limits
    if entity.state is stall_detector.State.WARNED and limits.nudge_ms is not None:
        yield Timer(stall_detector.State.NUDGED, since_ms + limits.nudge_ms)
    else:
        is_answered = entity.state is stall_detector.State.ANSWERED
        yield Timer(stall_detector.State.STALLED, since_ms + (limits.answer_ms if is_answered else limits.end_ms))


def running_session(entity: Entity[session.Session]) -> RunSession | None:
    """Return the session that runs, with the limits that it began with."""
    part = entity.find("RunSession")
    return part.activity if part is not None and isinstance(part.activity, RunSession) else None


def agents(aggregates: Mapping[str, Aggregate]) -> tuple[AgentStatus, ...]:
    """Return the status of every agent by name, followed by the services."""
    every = [aggregates[name] for name in sorted(aggregates)]
    workers = (_on_board(agent_status(each), aggregates[board.NAME]) for each in every if each.kind == worker.KIND)
    return (*workers, *(service_status(each) for each in every if each.kind == service.KIND))


def at_attempts(agents: Iterable[AgentStatus], tasks: Iterable[TaskStatus]) -> tuple[AgentStatus, ...]:
    """Return the agents with the numbers of their attempts, which the tasks have."""
    attempts = {each.id: each.attempts for each in tasks}
    return tuple(replace(each, attempt=attempts.get(each.task, 0)) for each in agents)


def _on_board(agent: AgentStatus, aggregate: Aggregate) -> AgentStatus:
    """Return the status with what the board knows of the agent."""
    slot: worker_slot.WorkerSlot = aggregate.record(f"worker_slot:{agent.name}")
    if slot.state is worker_slot.State.WORKING:
        agent = replace(agent, preempted_for=work_of(aggregate).preempted.get(agent.name, ""))
    agent = replace(agent, lacks=_lacks(agent.name, aggregate))
    account = accounts.account_of(aggregate, agent.name)
    if account is not None and agent.timer is None and agent.doing == assignment.State.WANTING:
        agent = replace(agent, timer=next_timer(account))
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
