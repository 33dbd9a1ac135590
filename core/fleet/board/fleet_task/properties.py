"""What people and workers can rely on of a task on a board, besides what the document's task promises."""

from typing import Any, Final

from lifefold.core.fleet.board.fleet_task.model import (
    MOST_SUBTASKS,
    Aborted,
    AbortWanted,
    DependencyBack,
    DependencyLost,
    Entrusted,
    FleetTask,
    Handed,
    NothingDone,
    Parked,
    Rested,
    RetryGranted,
    Returned,
    Split,
    ToolAborted,
)
from lifefold.core.fleet.board.fleet_task.rules import CANCELLABLE, NOT_NOW, is_over, rest
from lifefold.core.kernel import Pattern, Property, Transition, accepts, always, always_step, replace, sometimes
from lifefold.core.lifecycles import approval
from lifefold.core.lifecycles.property_forms import is_transient, keeps_time, leads_where
from lifefold.core.lifecycles.task import (
    Claimed,
    Failed,
    Rejected,
    Retried,
    Stage,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Unblocked,
    retries_left,
    settled,
)
from lifefold.core.policy.abort import AbortScope, escalated
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.ends import Trouble
from lifefold.core.policy.retry import retry_limit


def hopeless_is_not_retried(step: Transition) -> bool:
    """How often a task is tried again is decided by what its last attempt has failed at (E5)."""
    if not isinstance(step.event, Failed | Rejected) or step.before is None:
        return True
    t: FleetTask = step.after.record
    trouble = step.event.trouble if isinstance(step.event, Failed) else Trouble.OTHER
    return t.trouble is trouble and t.limit == retry_limit(t.max_retries, trouble, t.retry)


def grants_one_retry(step: Transition) -> bool:
    """A person's word lets a task that has failed be tried again, and moves it nowhere by itself."""
    if step.before is None or not isinstance(step.event, RetryGranted):
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    same: bool = now == replace(before, limit=now.limit, max_retries=now.max_retries, fate=now.fate)
    once = before.retries + 1
    no_more = now.limit <= max(before.limit, once) and now.max_retries <= max(before.max_retries, once)
    return same and retries_left(now, Retried()) and no_more


def is_tried_again_when_it_has_rested(step: Transition) -> bool:
    """What has failed and may be tried again rests first, and is open when it has rested (E6)."""
    if isinstance(step.event, Rested) and step.before is not None:
        return (step.after.state is State.OPEN) is retries_left(step.before.record, Retried())
    may_rest = step.entered is State.FAILED and retries_left(step.after.record, Retried())
    return not may_rest or step.after.find(Rested.__name__) is not None


def begins_anew_what_was_not_agreed_to(step: Transition) -> bool:
    """What a person has seen and not agreed to is not gone on from: the next attempt begins at the branch (D28)."""
    turned_down = isinstance(step.event, approval.ApprovalRefused | approval.ApprovalExpired)
    return not turned_down or not step.after.record.kept


def silence_is_not_retried(step: Transition) -> bool:
    """What nobody has agreed to in time is not done again until a person asks for it (E41)."""
    return not isinstance(step.event, approval.ApprovalExpired) or settled(step.after.record)


def parks_what_a_person_has_to_see(step: Transition) -> bool:
    """What waits for a person belongs to nobody, and is kept under the number of the claim that has done it (E2)."""
    if step.before is None or not isinstance(step.event, Parked):
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    return before.asks and (now.owner, now.stage, now.result) == ("", Stage.MERGE, before.epoch)


def hands_over_what_nobody_has(step: Transition) -> bool:
    """What is done and in nobody's hand is given to one worker, to be verified or merged as it is; or given back."""
    if step.before is None or not isinstance(step.event, Handed | Returned):
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    owner = step.event.owner if isinstance(step.event, Handed) else ""
    left = (now.state, now.stage, now.result) == (State.DONE, before.stage, before.result)
    return left and now.owner == owner and bool(before.owner) is isinstance(step.event, Returned)


def starts_anew(step: Transition) -> bool:
    """Whoever claims a task that is open has all of it to do; what has failed is not merged any more."""
    t: FleetTask = step.after.record
    anew = step.entered in {State.CLAIMED, State.FAILED} and step.before is not None
    return not anew or (t.stage, t.result) == (Stage.WORK, 0)


def is_claimed_by_the_trusted(step: Transition) -> bool:
    """Nobody claims what takes more trust, and the work of one who is not trusted to merge has to be seen (E34)."""
    if step.before is None or not isinstance(step.event, Entrusted):
        return True
    before: FleetTask = step.before.record
    t: FleetTask = step.after.record
    unseen = step.event.level >= t.merges and not t.always_asks and not (before.kept and before.asks)
    return step.event.level >= t.level and t.asks is not unseen and t.author == step.event.owner


def is_split_within_limits(step: Transition) -> bool:
    """A task is split into at least one part and no more than it may have, and is nobody's until they are closed."""
    if step.before is None or not isinstance(step.event, Split):
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    made = now.parts - before.parts
    few = made == len(step.event.tasks) > 0 and now.parts <= min(now.most_subtasks, MOST_SUBTASKS)
    return few and now.waits and not now.owner


def shows_the_token_of_its_claim(step: Transition) -> bool:
    """A session that splits its task, or reports an aborted tool, shows the token of the task's claim (E47)."""
    if step.before is None or not isinstance(step.event, Split | ToolAborted):
        return True
    before: FleetTask = step.before.record
    return (step.event.epoch, step.event.token) == (before.epoch, before.token)


def gathers_its_parts(step: Transition) -> bool:
    """When its parts are closed, what they came to is verified as one, by whoever is given it."""
    t: FleetTask = step.after.record
    gathered = (t.owner, t.stage, t.waits) == ("", Stage.VERIFY, False)
    return step.before is None or not isinstance(step.event, SubtasksCompleted) or gathered


def is_freed_by_what_it_lacked(step: Transition) -> bool:
    """What is blocked by another task knows by which, and goes on, where it was, when that one may be done (E19)."""
    if step.before is None:
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    match step.event:
        case DependencyLost(by=by, reason=reason):
            return (now.owner, now.lacks, now.reason) == ("", by, reason)
        case DependencyBack(by=by):
            return before.lacks == by and _goes_on(now)
        case Unblocked():
            return _goes_on(now)
        case _:
            return True


def moves_nothing_by_a_word(step: Transition) -> bool:
    """Who says that something is aborted goes on; only how far that reached is kept (E37)."""
    if step.before is None or not isinstance(step.event, ToolAborted | AbortWanted):
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    if before.fate is None or now.fate is None:
        return False
    is_contained = escalated(step.event.scope, before.fate.policy) is AbortScope.TOOL
    said = before.fate.said if is_contained else step.event.scope
    return bool(now == replace(before, fate=replace(before.fate, said=said)))


def is_cancelled_by_an_abort(step: Transition) -> bool:
    """What is aborted is cancelled, or where it cannot be it is known why it will be (E16, E36)."""
    if step.before is None or not isinstance(step.event, Aborted):
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    known = now.fate is not None and (now.fate.doomed, now.fate.why) == (step.event.abort_reason, step.event.reason)
    if now.state is State.CANCELLED:
        return known and before.state in CANCELLABLE and (now.owner, now.reason) == ("", step.event.reason)
    stays = bool(now == replace(before, fate=now.fate))
    return known and before.state in NOT_NOW and stays and not is_over(before)


def is_wanted_after_all(step: Transition) -> bool:
    """A task that a person has tried again is not aborted any more; it is as long as nobody does."""
    was = step.before is not None and step.before.record.is_doomed
    t: FleetTask = step.after.record
    if not was or t.state is State.CLOSED:
        return True
    return t.is_doomed is not isinstance(step.event, RetryGranted)


def _goes_on(now: FleetTask) -> bool:
    """Tell whether nothing blocks it."""
    return (now.state, now.lacks, now.reason) == (State.OPEN, "", "")


_TRUSTED: Final = Pattern(Entrusted, "Elevated", lambda e: e.level is AccessLevel.ELEVATED)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    *keeps_time(
        {
            Rested: ((State.FAILED,), rest),
            SubtasksOverdue: ((State.WAITING_FOR_SUBTASKS,), lambda t: t.subtasks_ms),
            approval.ApprovalExpired: ((State.PENDING_APPROVAL,), lambda t: t.approval_ms or None),
        }
    ),
    *approval.PROPERTIES,
    always_step("how often a task is tried again is decided by what it has failed at", hopeless_is_not_retried),
    always_step("a person lets a task be tried once more, and it is as it was", grants_one_retry),
    always_step("what has failed and may be tried again is, when it has rested", is_tried_again_when_it_has_rested),
    always_step("what nobody has agreed to is not done again by itself", silence_is_not_retried),
    always_step("what a person has not agreed to is restarted", begins_anew_what_was_not_agreed_to),
    always_step("what waits for a person is nobody's, and is kept", parks_what_a_person_has_to_see),
    always_step("what is done and in no hand is given to one", hands_over_what_nobody_has),
    always_step("whoever claims a task has all of it to do", starts_anew),
    always_step("nobody claims, or merges unseen, what takes more trust", is_claimed_by_the_trusted),
    always_step("a task is split within its limits", is_split_within_limits),
    always_step("a session speaks of its own task only", shows_the_token_of_its_claim),
    always_step("what the parts came to is verified as one", gathers_its_parts),
    always_step("what is blocked goes on when it has what it lacked", is_freed_by_what_it_lacked),
    leads_where(
        "what lacks another task is blocked, and what was split waits for its parts",
        {DependencyLost: (State.BLOCKED,), Split: (State.WAITING_FOR_SUBTASKS,)},
    ),
    leads_where("what is claimed is claimed, however far its owner is trusted", {Entrusted: (State.CLAIMED,)}),
    accepts("what is open can be claimed", {State.OPEN: (Claimed,)}),
    accepts(
        "what is open can be claimed by whoever is trusted so far",
        {State.OPEN: (_TRUSTED,)},
        when=lambda e: bool(Entrusted.examples_for(e.record)),
    ),
    accepts(
        "a task that waits for another one can lose it",
        {(State.OPEN, State.WAITING_FOR_SUBTASKS): (DependencyLost,)},
    ),
    accepts(
        "a task that lacks another one can have it back",
        {State.BLOCKED: (DependencyBack,)},
        when=lambda e: e.record.lacks == "T0",
    ),
    accepts("a person can let a task be tried again that has failed", {State.FAILED: (RetryGranted,)}),
    accepts(
        "what is done and in no hand can be given to somebody",
        {State.DONE: (Handed,)},
        when=lambda e: not e.record.owner,
    ),
    leads_where("a task for which nothing was done has failed", {NothingDone: (State.FAILED,)}),
    accepts(
        "that nothing was done for a task is heard",
        {State.DONE: (NothingDone,)},
        when=lambda e: bool(e.record.owner),
    ),
    accepts(
        "who was given something can give it back",
        {State.DONE: (Returned,)},
        when=lambda e: bool(e.record.owner) and e.record.stage is not Stage.WORK,
    ),
    accepts(
        "an owner can ask a person",
        {State.DONE: (Parked,)},
        when=lambda e: bool(e.record.owner) and e.record.asks and e.record.stage is not Stage.MERGE,
    ),
    accepts(
        "an owner can split a task that may be",
        {(State.CLAIMED, State.IN_PROGRESS): (Split,)},
        when=lambda e: e.record.most_subtasks >= e.record.parts + 2,
    ),
    always_step("who says that something is aborted goes on", moves_nothing_by_a_word),
    always_step("what is aborted is cancelled, or where it cannot be is known to be", is_cancelled_by_an_abort),
    always_step("what is aborted stays so until a person has it tried again", is_wanted_after_all),
    accepts(
        "a person can abort whatever is not closed or cancelled, and it can be aborted",
        {(*CANCELLABLE, *NOT_NOW): (AbortWanted,), CANCELLABLE: (Aborted,)},
        when=lambda e: e.record.fate is not None,
    ),
    accepts(
        "what may be opened again can be aborted",
        {NOT_NOW: (Aborted,)},
        when=lambda e: e.record.fate is not None and not is_over(e.record),
    ),
    accepts(
        "an owner can say that a tool was aborted",
        {(State.CLAIMED, State.IN_PROGRESS): (ToolAborted,)},
        when=lambda e: e.record.fate is not None,
    ),
    leads_where(
        "what a person does not agree to has failed, and what he agrees to is done",
        {approval.ApprovalGranted: (State.DONE,), approval.ApprovalRefused: (State.FAILED,)},
    ),
    is_transient(State.WAITING_FOR_SUBTASKS),
    always("no task is tried again more often than it says", lambda e: e.record.limit <= e.record.max_retries),
    always("nobody waits for parts that there are not", lambda e: not e.record.waits or e.record.parts > 0),
    sometimes("a task is split", lambda e: e.record.parts > 0),
)
