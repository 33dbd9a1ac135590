"""The guards and the actions that a task on a board has besides the document's."""

from typing import Final, Never

from lifefold.core.fleet.board.fleet_task.model import (
    MOST_SUBTASKS,
    Aborted,
    AbortWanted,
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
"""In these somebody is to work at a task."""

CANCELLABLE: Final = (State.OPEN, *AT_WORK, State.BLOCKED, State.WAITING_FOR_SUBTASKS)
"""In these a task can be cancelled; what is done, or has failed, cannot (E16)."""

NOT_NOW: Final = (State.ORPHANED, State.DONE, State.PENDING_APPROVAL, State.FAILED)
"""In these it cannot; it may be in one of the others again."""

# Guards


def is_to_be_agreed(t: FleetTask, e: Parked) -> bool:
    """The present owner says it, of work that a person has to agree to and has not (E12)."""
    return task.is_owner(t, e) and t.asks and t.stage is not Stage.MERGE


def is_trusted(t: FleetTask, e: Entrusted) -> bool:
    """Whoever claims it is trusted as far as it takes (E34)."""
    return e.level >= t.level


def is_in_no_hand(t: FleetTask, _e: Handed) -> bool:
    """Nobody has it."""
    return not t.owner


def is_handed(t: FleetTask, e: Returned) -> bool:
    """The present owner says it, who was given it to verify or to merge it (E12)."""
    return task.is_owner(t, e) and bool(t.owner) and t.stage is not Stage.WORK


def may_split(t: FleetTask, e: Split) -> bool:
    """The present owner says it, with its token, and the parts are at least one and not too many (E12, E47)."""
    most = min(t.most_subtasks, MOST_SUBTASKS)
    return shows_its_token(t, e) and 0 < len(e.tasks) <= most - t.parts


def says_its_owner(t: FleetTask, e: ToolAborted) -> bool:
    """The present owner says it, with its token, in a fleet that has aborts (E12, E47)."""
    return t.fate is not None and shows_its_token(t, e)


def shows_its_token(t: FleetTask, e: Split | ToolAborted) -> bool:
    """The present owner says it, and shows the token of its claim: a number alone is easily guessed (E47)."""
    return task.is_owner(t, e) and e.token == t.token


def has_aborts(t: FleetTask, _e: AbortWanted | Aborted) -> bool:
    """Its fleet has aborts."""
    return t.fate is not None


def may_come_again(t: FleetTask, _e: Aborted) -> bool:
    """Its fleet has aborts, and it may be opened again by itself."""
    return t.fate is not None and not is_over(t)


def is_over(t: FleetTask) -> bool:
    """Nothing will be done about it any more, unless a person has it tried again: what is blocked may go on."""
    return task.settled(t) and t.state is not State.BLOCKED


def lacks_it(t: FleetTask, e: DependencyBack) -> bool:
    """It is blocked because of that one."""
    return t.lacks == e.by


# When nothing more need happen


def rests(t: FleetTask) -> bool:
    """Nothing more need happen: it is settled, or waits for a person's word or for somebody who has time."""
    return task.rests(t) or t.state is State.PLANNED or (t.state is State.DONE and not t.owner)


# Actions


def take(t: FleetTask, e: Claimed) -> Step[FleetTask, Never]:
    """Make the worker the owner under a new number, of all the work that there is to do."""
    return Step(replace(task.claim(t, e).record, stage=Stage.WORK, result=0, collected=""))


def entrust(t: FleetTask, e: Entrusted) -> Step[FleetTask, Never]:
    """Do the same, and remember who; a person has to see the work of one who is not trusted to merge (E34).

    And what another one makes of it who goes on from there.
    """
    asks = t.always_asks or e.level < t.merges or (t.asks and t.kept > 0)
    return Step(replace(take(t, e).record, author=e.owner, asks=asks))


def take_over(t: FleetTask, e: Handed) -> Step[FleetTask, Never]:
    """Make the worker the owner under a new number, of what is left to do."""
    return Step(task.claim(t, e).record)


def fail(t: FleetTask, e: Failed | Rejected) -> Step[FleetTask, Never]:
    """Keep the reason, and how often a task may be tried again that fails so (E5)."""
    return Step(_failed(task.fail(t, e).record))


def orphan(t: FleetTask, e: Orphaned) -> Step[FleetTask, Never]:
    """Keep what its session has died of, for people and for the next attempt; who is gone leaves no word."""
    return Step(replace(t, reason=e.reason, failure=e.reason or t.failure))


def refuse(t: FleetTask, e: ApprovalRefused) -> Step[FleetTask, Never]:
    """Keep what the person says, for the next attempt."""
    return Step(_failed(task.failed(t, e.reason, kept=0)))


def lapse(t: FleetTask, _e: ApprovalExpired) -> Step[FleetTask, Never]:
    """Keep that nobody answered: the same again would be asked for in vain, so only a person lets it be tried (E41)."""
    reason = f"nobody approved within {t.approval_ms // 1_000} s"
    return Step(replace(_failed(task.failed(t, reason, kept=0)), limit=0))


def _failed(t: FleetTask) -> FleetTask:
    return replace(t, stage=Stage.WORK, result=0, collected="", limit=retry_limit(t.max_retries, t.trouble, t.retry))


def grant(t: FleetTask, _e: RetryGranted) -> Step[FleetTask, Never]:
    """Let it be tried once more; a person wants it after all, whatever was aborted."""
    once_more = t.retries + 1
    spared = t.fate and replace(t.fate, doomed=None, why="", wanted=True)
    return Step(replace(t, limit=max(t.limit, once_more), max_retries=max(t.max_retries, once_more), fate=spared))


def note(t: FleetTask, e: ToolAborted | AbortWanted) -> Step[FleetTask, Never]:
    """Keep which scope was said here, if it comes to more than a tool (E37)."""
    fate = t.fate or Fate()
    is_contained = escalated(e.scope, fate.policy) is AbortScope.TOOL
    return Step(t if is_contained else replace(t, fate=replace(fate, said=e.scope)))


def condemn(t: FleetTask, e: Aborted) -> Step[FleetTask, Never]:
    """Keep the reason, also for when it is opened again."""
    return Step(replace(t, fate=replace(t.fate or Fate(), doomed=e.abort_reason, why=e.reason, wanted=False)))


def abort(t: FleetTask, e: Aborted) -> Step[FleetTask, Never]:
    """Do the same, and leave it without an owner."""
    return Step(replace(condemn(t, e).record, owner="", reason=e.reason))


def park(t: FleetTask, e: Parked) -> Step[FleetTask, Never]:
    """Leave it without an owner; what is verified is kept under the number of the claim."""
    return Step(replace(t, owner="", stage=Stage.MERGE, result=t.epoch, collected=e.commit))


def put_back(t: FleetTask, e: Returned) -> Step[FleetTask, Never]:
    """Leave it without an owner."""
    return Step(replace(t, owner="", reason=e.reason))


def lose(t: FleetTask, e: DependencyLost) -> Step[FleetTask, Never]:
    """Keep what it lacks, and why."""
    return Step(replace(t, owner="", lacks=e.by, reason=e.reason))


def find_again(t: FleetTask, _e: DependencyBack | Unblocked) -> Step[FleetTask, Never]:
    """Forget what it lacked."""
    return Step(replace(t, lacks="", reason=""))


def split(t: FleetTask, e: Split) -> Step[FleetTask, Never]:
    """Count the parts, and wait for them; its owner is done with it."""
    return Step(replace(t, owner="", parts=t.parts + len(e.tasks), waits=True))


def gather(t: FleetTask, _e: SubtasksCompleted) -> Step[FleetTask, Never]:
    """Have what the parts came to verified as one."""
    return Step(replace(t, owner="", stage=Stage.VERIFY, waits=False))


# Timers


def rest(t: FleetTask) -> int | None:
    """Return how long it rests before it is tried again (E6), in milliseconds; None if it is not."""
    return rest_ms(t.retries, t.retry) if task.retries_left(t, Retried()) else None


def approval(t: FleetTask) -> int | None:
    """Return for how long a person is waited for (E41), in milliseconds; None for as long as it takes."""
    return t.approval_ms or None


def subtasks(t: FleetTask) -> int:
    """Return for how long its subtasks are waited for (E9), in milliseconds."""
    return t.subtasks_ms
