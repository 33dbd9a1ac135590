"""The guards and the actions that a fleet adds to the task of document 003."""

from typing import Final, Never

from lifefold.core.fleet.board.fleet_task.model import (
    MOST_SUBTASKS,
    Aborted,
    AbortWanted,
    ConversationKept,
    DependencyBack,
    DependencyLost,
    Entrusted,
    Fate,
    FleetTask,
    Handed,
    Parked,
    RetryGranted,
    Returned,
    Split,
    ToolAborted,
)
from lifefold.core.kernel import Step, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.approval import ApprovalExpired, ApprovalRefused
from lifefold.core.lifecycles.task import (
    Claimed,
    Failed,
    Orphaned,
    Rejected,
    Retried,
    Stage,
    State,
    SubtasksCompleted,
    Unblocked,
)
from lifefold.core.policy.abort import AbortScope, escalated
from lifefold.core.policy.retry import rest_ms, retry_limit

AT_WORK: Final = (State.CLAIMED, State.IN_PROGRESS)
"""In these states a worker has the task to work at it."""

CANCELLABLE: Final = (State.OPEN, *AT_WORK, State.BLOCKED, State.WAITING_FOR_SUBTASKS)
"""In these states a task can be cancelled; a done or failed task cannot (E16)."""

NOT_NOW: Final = (State.ORPHANED, State.DONE, State.PENDING_APPROVAL, State.FAILED)
"""In these states a task cannot be cancelled now, but may come to one of ``CANCELLABLE`` again."""

# Guards


def is_to_be_agreed(t: FleetTask, e: Parked) -> bool:
    """The current owner reports it, of work that needs approval and has none yet (E12)."""
    return task.is_owner(t, e) and t.needs_approval and t.stage is not Stage.MERGE


def is_trusted(t: FleetTask, e: Entrusted) -> bool:
    """The claiming agent has at least the trust level of the task (E34)."""
    return e.level >= t.level


def has_no_owner(t: FleetTask, _e: Handed) -> bool:
    """No worker owns the task."""
    return not t.owner


def is_handed(t: FleetTask, e: Returned) -> bool:
    """The current owner reports it, and was handed the task to verify or to merge it (E12)."""
    return task.is_owner(t, e) and bool(t.owner) and t.stage is not Stage.WORK


def may_split(t: FleetTask, e: Split) -> bool:
    """The current owner reports it with its token, and the number of parts is within the limits (E12, E47)."""
    most = min(t.most_subtasks, MOST_SUBTASKS)
    return shows_its_token(t, e) and 0 < len(e.tasks) <= most - t.parts


def is_by_the_owner(t: FleetTask, e: ToolAborted) -> bool:
    """The current owner reports it with its token, in a fleet that has aborts (E12, E47)."""
    return t.fate is not None and shows_its_token(t, e)


def shows_its_token(t: FleetTask, e: Split | ToolAborted) -> bool:
    """The current owner reports it with the token of its claim: an epoch alone is easily guessed (E47)."""
    return task.is_owner(t, e) and e.token == t.token


def has_aborts(t: FleetTask, _e: AbortWanted | Aborted) -> bool:
    """The fleet has aborts."""
    return t.fate is not None


def may_come_again(t: FleetTask, _e: Aborted) -> bool:
    """The fleet has aborts, and the task may be opened again without an operator."""
    return t.fate is not None and not is_over(t)


def is_over(t: FleetTask) -> bool:
    """The task is settled, and only an operator's retry changes that. A blocked task may still go on."""
    return task.settled(t) and t.state is not State.BLOCKED


def is_blocked_by_it(t: FleetTask, e: DependencyBack) -> bool:
    """The task is blocked by that one."""
    return t.blocked_by == e.by


def is_of_its_agent(t: FleetTask, e: ConversationKept) -> bool:
    """The agent of the current claim reports it, or the one whose conversation is kept: its session ended late."""
    return e.epoch == t.epoch or t.conversation_of(e.agent) is not None


# Quiescence


def rests(t: FleetTask) -> bool:
    """Nothing need happen: the task is settled, or waits for an operator or for a free worker."""
    return task.rests(t) or t.state is State.PLANNED or (t.state is State.DONE and not t.owner)


# Actions


def take(t: FleetTask, e: Claimed) -> Step[FleetTask, Never]:
    """Make the worker the owner under a new epoch, with the whole work to do."""
    return Step(replace(task.claim(t, e).record, stage=Stage.WORK, result=0, collected=""))


def entrust(t: FleetTask, e: Entrusted) -> Step[FleetTask, Never]:
    """Claim the task, and record its author; the work of an agent without trust for merges needs approval (E34).

    So does the work of a later agent that continues from it.
    """
    asks = t.always_needs_approval or e.level < t.merges or (t.needs_approval and t.kept > 0)
    return Step(replace(take(t, e).record, author=e.owner, needs_approval=asks))


def take_over(t: FleetTask, e: Handed) -> Step[FleetTask, Never]:
    """Make the worker the owner under a new epoch, with the stage that is left."""
    return Step(task.claim(t, e).record)


def fail(t: FleetTask, e: Failed | Rejected) -> Step[FleetTask, Never]:
    """Record the reason, and how many retries such a failure allows (E5)."""
    return Step(_failed(task.fail(t, e).record))


def orphan(t: FleetTask, e: Orphaned) -> Step[FleetTask, Never]:
    """Record the death of the session, for operators and the next attempt; a worker that is gone reports none."""
    return Step(replace(t, reason=e.reason, failure=e.reason or t.failure))


def refuse(t: FleetTask, e: ApprovalRefused) -> Step[FleetTask, Never]:
    """Record the operator's reason, for the next attempt."""
    return Step(_failed(task.failed(t, e.reason, kept=0)))


def approval_expired(t: FleetTask, _e: ApprovalExpired) -> Step[FleetTask, Never]:
    """Record that no operator answered. A retry would wait in vain again, so only an operator grants one (E41)."""
    reason = f"not approved within {t.approval_ms // 1_000} s"
    return Step(replace(_failed(task.failed(t, reason, kept=0)), limit=0))


def _failed(t: FleetTask) -> FleetTask:
    limit = retry_limit(t.max_retries, t.trouble, t.retry)
    kept = None if t.anew else t.conversation
    return replace(t, stage=Stage.WORK, result=0, collected="", limit=limit, conversation=kept)


def converse(t: FleetTask, e: ConversationKept) -> Step[FleetTask, Never]:
    """Keep the conversation, or forget it."""
    return Step(replace(t, conversation=e.conversation))


def grant(t: FleetTask, _e: RetryGranted) -> Step[FleetTask, Never]:
    """Allow one more retry, and lift an abort."""
    once_more = t.retries + 1
    spared = t.fate and replace(t.fate, aborted=None, why="", wanted=True)
    return Step(replace(t, limit=max(t.limit, once_more), max_retries=max(t.max_retries, once_more), fate=spared))


def note(t: FleetTask, e: ToolAborted | AbortWanted) -> Step[FleetTask, Never]:
    """Record the scope of the abort, if it reaches further than a tool (E37)."""
    fate = t.fate or Fate()
    is_contained = escalated(e.scope, fate.policy) is AbortScope.TOOL
    return Step(t if is_contained else replace(t, fate=replace(fate, said=e.scope)))


def mark_aborted(t: FleetTask, e: Aborted) -> Step[FleetTask, Never]:
    """Record the abort; the task is cancelled when it is opened again."""
    return Step(replace(t, fate=replace(t.fate or Fate(), aborted=e.abort_reason, why=e.reason, wanted=False)))


def abort(t: FleetTask, e: Aborted) -> Step[FleetTask, Never]:
    """Record the abort, and clear the owner."""
    return Step(replace(mark_aborted(t, e).record, owner="", reason=e.reason))


def park(t: FleetTask, e: Parked) -> Step[FleetTask, Never]:
    """Clear the owner; the verified work is kept under the epoch of the claim."""
    return Step(replace(t, owner="", stage=Stage.MERGE, result=t.epoch, collected=e.commit))


def put_back(t: FleetTask, e: Returned) -> Step[FleetTask, Never]:
    """Clear the owner, and record the reason."""
    return Step(replace(t, owner="", reason=e.reason))


def lose(t: FleetTask, e: DependencyLost) -> Step[FleetTask, Never]:
    """Record the blocker, with its reason."""
    return Step(replace(t, owner="", blocked_by=e.by, reason=e.reason))


def find_again(t: FleetTask, _e: DependencyBack | Unblocked) -> Step[FleetTask, Never]:
    """Clear the blocker."""
    return Step(replace(t, blocked_by="", reason=""))


def split(t: FleetTask, e: Split) -> Step[FleetTask, Never]:
    """Count the parts, wait for them, and clear the owner."""
    return Step(replace(t, owner="", parts=t.parts + len(e.tasks), waits_for_parts=True))


def gather(t: FleetTask, _e: SubtasksCompleted) -> Step[FleetTask, Never]:
    """Leave the verification of the whole to do."""
    return Step(replace(t, owner="", stage=Stage.VERIFY, waits_for_parts=False))


# Timers


def rest(t: FleetTask) -> int | None:
    """Return the rest before the next retry, in milliseconds (E6); None without a retry."""
    return rest_ms(t.retries, t.retry) if task.retries_left(t, Retried()) else None


def approval(t: FleetTask) -> int | None:
    """Return how long the task waits for an approval, in milliseconds (E41); None for ever."""
    return t.approval_ms or None


def subtasks(t: FleetTask) -> int:
    """Return how long the task waits for its subtasks, in milliseconds (E9)."""
    return t.subtasks_ms
