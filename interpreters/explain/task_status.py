"""The status of the tasks of a fleet: a projection of the board."""

from collections.abc import Mapping, Sequence

import msgspec

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import CLAIMED
from lifefold.core.fleet.system import board, plan_change
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Entity, replace
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.explain import questions, words
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.timers import Timer, next_timer


class TaskStatus(msgspec.Struct, frozen=True):
    """The status of a task. ``reason`` says why it failed, is blocked, or was given back; otherwise it is empty.

    ``attempts`` counts the attempts at it. ``held_up`` says which tasks it waits for or is blocked by, and why.

    ``timer`` is its next timer: a retry, or the end of the wait for an approval or for subtasks. It is a part of
    ``parent``, and blocked by ``blocked_by``. An agent needs the trust ``level`` to take it, and ``merges`` to merge it
    unseen; empty is any level. ``removed``: a plan change has removed it, so that it is not counted. A closed task is
    counted all the same, because its work is done. ``branch`` is its ready branch, if it has one. ``asks`` are the
    names of the questions of its agent that wait for an operator. ``interrupted``: its agent is held or paused, and
    no session works at it meanwhile.
    """

    id: str
    state: str
    settled: bool
    owner: str
    priority: int
    depends_on: tuple[str, ...]
    retries: int
    max_retries: int
    attempts: int
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
    held_up: str = ""
    branch: str = ""
    asks: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def is_retried(self) -> bool:
        """Whether it has failed, and the fleet itself will try it again."""
        return self.state == task.State.FAILED and not self.settled and self.timer is not None

    @property
    def in_words(self) -> str:
        """Its state in the words of the screens."""
        if self.asks:
            return words.ASKING
        if self.interrupted:
            return words.INTERRUPTED
        return words.of_task(self.state, retried=self.is_retried, attempts=self.attempts)


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
        attempts=record.epoch,
        reason=_reason_of(record),
        commit=record.commit,
        since_ms=entity.entered_ms,
        timer=next_timer(entity),
        parent=record.parent,
        blocked_by=record.blocked_by,
        role=record.role,
        files=record.files,
        level=record.level.word if record.level else "",
        merges=record.merges.word if record.merges else "",
        needs_approval=record.needs_approval,
        branch=record.branch,
    )


def _reason_of(of: FleetTask) -> str:
    """Return why a task is in its state. Verified work does not have the reason of an earlier failure."""
    is_given_back = of.state is task.State.DONE and not of.owner
    reason = of.reason if is_given_back or of.state in _REASONED else ""
    return _joined(in_plain_words(reason), fleet_task.NOT_IN_THE_PLAN if of.removed else "")


def _joined(*reasons: str) -> str:
    """Return the reasons that are not empty, each once."""
    return "; ".join(dict.fromkeys(filter(None, reasons)))


_REASONED = frozenset(
    {task.State.OPEN, task.State.FAILED, task.State.BLOCKED, task.State.CANCELLED, task.State.ORPHANED}
)
"""The states that the reason of a task explains."""


def tasks(aggregates: Mapping[str, Aggregate]) -> tuple[TaskStatus, ...]:
    """Return the status of every task in the order of the plan, parts next to their parents."""
    aggregate = aggregates[board.NAME]
    gone = plan_change.removed(aggregate)
    entities = [each for ref, each in aggregate.entities.items() if ref.startswith("task:")]
    found = [task_status(each) for each in sorted(entities, key=lambda each: (each.record.ordinal, each.record.id))]
    found = [_removed(each) if each.id in gone else each for each in found]
    found = [_at_work(each, aggregates) if each.state in CLAIMED else each for each in found]
    every = {each.id: each for each in found}
    asks = _asks(aggregates)
    return tuple(
        each
        if each.state == task.State.CLOSED and each.owner not in asks
        else replace(each, held_up=_held_up(each, every), asks=asks.get(each.owner, ()))
        for each in found
    )


def _at_work(of: TaskStatus, aggregates: Mapping[str, Aggregate]) -> TaskStatus:
    return replace(of, interrupted=_is_interrupted(aggregates, of.owner))


def _is_interrupted(aggregates: Mapping[str, Aggregate], owner: str) -> bool:
    """Tell whether the agent of a task is held or paused, and has no session."""
    worker = aggregates.get(f"worker/{owner}")
    if worker is None or worker.record("desired_state").state not in desired_state.RESTS:
        return False
    return worker.record(session.machine.name).state is session.State.BUILDING_PROMPT


def _asks(aggregates: Mapping[str, Aggregate]) -> Mapping[str, tuple[str, ...]]:
    """Return the questions that wait, by agent: an agent has one task at a time."""
    found: dict[str, tuple[str, ...]] = {}
    for each in questions.waiting(aggregates):
        found[each.agent] = (*found.get(each.agent, ()), each.name)
    return found


def _held_up(of: TaskStatus, every: Mapping[str, TaskStatus]) -> str:
    """Return the tasks that a task waits for, or the failed task that blocks it in the end, with the reason."""
    if of.state == task.State.BLOCKED and of.blocked_by in every:
        cause, passed = every[of.blocked_by], {of.id}
        while cause.blocked_by in every and cause.id not in passed:
            passed.add(cause.id)
            cause = every[cause.blocked_by]
        through = "" if cause.id == of.blocked_by else f"{of.blocked_by}, and that by "
        why = f": {words.unwrapped(cause.reason)}" if cause.reason else ""
        return f"blocked by {through}{_standing(cause)}{why}"
    waits = of.state in {task.State.OPEN, task.State.PLANNED}
    missing = [each for each in of.depends_on if each in every and every[each].state != task.State.CLOSED]
    return f"waits for {', '.join(_standing(every[each]) for each in missing)}" if waits and missing else ""


def _standing(of: TaskStatus) -> str:
    return f"{of.id} ({of.in_words})"


def _removed(of: TaskStatus) -> TaskStatus:
    """Return the status of a task that is no longer in the plan, whatever its state."""
    reason = of.reason if fleet_task.NOT_IN_THE_PLAN in of.reason else _joined(of.reason, fleet_task.NOT_IN_THE_PLAN)
    return replace(of, removed=of.state != task.State.CLOSED, reason=reason)


def at_rest(every: Sequence[TaskStatus]) -> tuple[TaskStatus, ...]:
    """Return the tasks of a fleet that does not go on: their timers bring nothing any more."""
    return tuple(replace(each, timer=None) for each in every)


def counted(every: Sequence[TaskStatus]) -> tuple[TaskStatus, ...]:
    """Return the tasks of the plan, without those that a plan change has removed."""
    return tuple(each for each in every if not each.removed)


def without_change(every: Sequence[TaskStatus]) -> tuple[str, ...]:
    """Return the closed tasks without a merged commit, in a fleet that merges; split tasks are left out."""
    whole = {each.parent for each in every}
    return tuple(
        each.id for each in every if each.state == task.State.CLOSED and not each.commit and each.id not in whole
    )
