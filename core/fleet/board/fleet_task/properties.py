"""The properties of a task on a board, beside those of the task in document 003."""

from typing import Any, Final

from lifefold.core.fleet.board.fleet_task.model import (
    MOST_SUBTASKS,
    Aborted,
    AbortWanted,
    ConversationKept,
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
from lifefold.core.kernel import Event, Pattern, Property, Transition, accepts, always, always_step, replace, sometimes
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


def permanent_failures_are_not_retried(step: Transition) -> bool:
    """The cause of the last failure decides how often a task is retried (E5)."""
    if not isinstance(step.event, Failed | Rejected):
        return True
    t: FleetTask = step.after.record
    trouble = step.event.trouble if isinstance(step.event, Failed) else Trouble.OTHER
    return t.trouble is trouble and t.limit == retry_limit(t.max_retries, trouble, t.retry)


def grants_one_retry(step: Transition) -> bool:
    """A granted retry gives a failed task one retry, and moves nothing by itself."""
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    same: bool = now == replace(before, limit=now.limit, max_retries=now.max_retries, fate=now.fate)
    once = before.retries + 1
    no_more = now.limit <= max(before.limit, once) and now.max_retries <= max(before.max_retries, once)
    return same and retries_left(now, Retried()) and no_more


def is_tried_again_when_it_has_rested(step: Transition) -> bool:
    """A failed task with a retry left rests first, and is opened after its rest (E6)."""
    if isinstance(step.event, Rested) and step.before is not None:
        return (step.after.state is State.OPEN) is retries_left(step.before.record, Retried())
    may_rest = step.entered is State.FAILED and retries_left(step.after.record, Retried())
    return not may_rest or step.after.find(Rested.__name__) is not None


def refused_work_is_restarted(step: Transition) -> bool:
    """No attempt continues from refused work: the next one begins at the target branch (D28)."""
    is_refusal = isinstance(step.event, approval.ApprovalRefused | approval.ApprovalExpired)
    return not is_refusal or not step.after.record.kept


def silence_is_not_retried(step: Transition) -> bool:
    """A task whose approval expired is retried only by an operator (E41)."""
    return settled(step.after.record)


def merged_by_grant(step: Transition) -> bool:
    """Work that waits for a person is done by that person's grant only (E2), unless it is to be verified again."""
    return step.after.record.stage is Stage.REVERIFY or approval.agreed_by_a_person(step)


def parks_for_approval(step: Transition) -> bool:
    """Parked work has no owner, and is kept under the epoch of the claim that has done it (E2)."""
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    return before.needs_approval and (now.owner, now.stage, now.result) == ("", Stage.MERGE, before.epoch)


def hands_over_done_work(step: Transition) -> bool:
    """A done task without an owner is handed to one worker with its stage, and can be returned unchanged."""
    if not isinstance(step.event, Handed | Returned):
        return True
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    owner = step.event.owner if isinstance(step.event, Handed) else ""
    left = (now.state, now.stage, now.result) == (State.DONE, before.stage, before.result)
    return left and now.owner == owner and bool(before.owner) is isinstance(step.event, Returned)


def claims_the_whole_task(step: Transition) -> bool:
    """A claim of an open task has the whole work to do, and the result of a failed task is dropped."""
    t: FleetTask = step.after.record
    begins = step.entered in {State.CLAIMED, State.FAILED} and step.before is not None
    return not begins or (t.stage, t.result) == (Stage.WORK, 0)


def is_claimed_by_the_trusted(step: Transition) -> bool:
    """An agent claims no task above its level, and work of an agent without trust for merges needs approval (E34)."""
    if not isinstance(step.event, Entrusted):
        return True
    before: FleetTask = step.was
    t: FleetTask = step.after.record
    unseen = (
        step.event.level >= t.merges and not t.always_needs_approval and not (before.kept and before.needs_approval)
    )
    return step.event.level >= t.level and t.needs_approval is not unseen and t.author == step.event.owner


def is_split_within_limits(step: Transition) -> bool:
    """A split makes at least one part and no more than the limit, and clears the owner."""
    if not isinstance(step.event, Split):
        return True
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    made = now.parts - before.parts
    few = made == len(step.event.tasks) > 0 and now.parts <= min(now.most_subtasks, MOST_SUBTASKS)
    return few and now.waits_for_parts and not now.owner


def shows_the_token_of_its_claim(step: Transition) -> bool:
    """A session that splits its task, or reports an aborted tool, shows the token of the task's claim (E47)."""
    if not isinstance(step.event, Split | ToolAborted):
        return True
    before: FleetTask = step.was
    return (step.event.epoch, step.event.token) == (before.epoch, before.token)


def gathers_its_parts(step: Transition) -> bool:
    """When all parts are closed, the task has no owner, and its verification as a whole is left to do."""
    t: FleetTask = step.after.record
    gathered = (t.owner, t.stage, t.waits_for_parts) == ("", Stage.VERIFY, False)
    return step.before is None or not isinstance(step.event, SubtasksCompleted) or gathered


def is_opened_by_its_blocker(step: Transition) -> bool:
    """A blocked task records its blocker, and is open again when that one may be done (E19)."""
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    match step.event:
        case DependencyLost(by=by, reason=reason):
            return (now.owner, now.blocked_by, now.reason) == ("", by, reason)
        case DependencyBack(by=by):
            return before.blocked_by == by and _goes_on(now)
        case Unblocked():
            return _goes_on(now)
        case _:
            return True


def reports_of_aborts_move_nothing(step: Transition) -> bool:
    """A report of an abort does not move its task; only the scope is recorded (E37)."""
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
    """An aborted task is cancelled, or keeps the reason for which it will be (E16, E36)."""
    if not isinstance(step.event, Aborted):
        return True
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    known = now.fate is not None and (now.fate.aborted, now.fate.why) == (step.event.abort_reason, step.event.reason)
    if now.state is State.CANCELLED:
        return known and before.state in CANCELLABLE and (now.owner, now.reason) == ("", step.event.reason)
    stays = bool(now == replace(before, fate=now.fate))
    return known and before.state in NOT_NOW and stays and not is_over(before)


def stays_aborted(step: Transition) -> bool:
    """Only a granted retry lifts the abort of a task."""
    was = step.before is not None and step.before.record.is_aborted
    t: FleetTask = step.after.record
    if not was or t.state is State.CLOSED:
        return True
    return t.is_aborted is not isinstance(step.event, RetryGranted)


def keeps_its_conversation(step: Transition) -> bool:
    """The conversation of a task changes by its agent's report only, or ends by a failure if retries begin anew."""
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    if isinstance(step.event, ConversationKept):
        is_its = step.event.epoch == before.epoch or before.conversation_of(step.event.agent) is not None
        return is_its and bool(now == replace(before, conversation=step.event.conversation))
    is_over = now.anew and step.entered is State.FAILED
    return now.conversation == (None if is_over else before.conversation)


def _goes_on(now: FleetTask) -> bool:
    """Tell whether the task is open and has no blocker."""
    return (now.state, now.blocked_by, now.reason) == (State.OPEN, "", "")


_TRUSTED: Final = Pattern(Entrusted, "Elevated", lambda e: e.level is AccessLevel.ELEVATED)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    *keeps_time(
        {
            Rested: ((State.FAILED,), rest),
            SubtasksOverdue: ((State.WAITING_FOR_SUBTASKS,), lambda t: t.subtasks_ms),
            approval.ApprovalExpired: ((State.PENDING_APPROVAL,), lambda t: t.approval_ms or None),
        }
    ),
    *(each for each in approval.PROPERTIES if each is not approval.BY_GRANT),
    always_step("work that waits for a person is merged by that person's grant only", merged_by_grant),
    always_step(
        "the cause of a failure decides how often a task is retried", permanent_failures_are_not_retried, on=Event
    ),
    always_step("a granted retry allows one more attempt and changes nothing else", grants_one_retry, on=RetryGranted),
    always_step("a failed task with retries left is opened again after its rest", is_tried_again_when_it_has_rested),
    always_step(
        "work without an answer in time is not retried by itself", silence_is_not_retried, on=approval.ApprovalExpired
    ),
    always_step("refused work is restarted from the target branch", refused_work_is_restarted),
    always_step("work that waits for approval has no owner, and is kept", parks_for_approval, on=Parked),
    always_step("done work without an owner is handed to one worker", hands_over_done_work, on=Event),
    always_step("a new claim has the whole task to do", claims_the_whole_task),
    always_step("no agent claims, or merges unseen, work above its trust level", is_claimed_by_the_trusted, on=Event),
    always_step("a task is split within its limits", is_split_within_limits, on=Event),
    always_step("a session reports on its own task only", shows_the_token_of_its_claim, on=Event),
    always_step("the result of all parts is verified as one", gathers_its_parts),
    always_step("a blocked task is opened when its blocker is resolved", is_opened_by_its_blocker, on=Event),
    leads_where(
        "a lost dependency blocks a task, and a split task waits for its parts",
        {DependencyLost: (State.BLOCKED,), Split: (State.WAITING_FOR_SUBTASKS,)},
    ),
    leads_where("a claim at any trust level moves the task to CLAIMED", {Entrusted: (State.CLAIMED,)}),
    accepts("an open task can be claimed", {State.OPEN: (Claimed,)}),
    accepts(
        "an open task can be claimed by an agent with enough trust",
        {State.OPEN: (_TRUSTED,)},
        when=lambda e: bool(Entrusted.examples_for(e.record)),
    ),
    accepts(
        "an open or split task can lose a dependency", {(State.OPEN, State.WAITING_FOR_SUBTASKS): (DependencyLost,)}
    ),
    accepts(
        "a blocked task can get its dependency back",
        {State.BLOCKED: (DependencyBack,)},
        when=lambda e: e.record.blocked_by == "T0",
    ),
    accepts("an operator can grant a failed task a retry", {State.FAILED: (RetryGranted,)}),
    accepts(
        "done work without an owner can be handed to a worker",
        {State.DONE: (Handed,)},
        when=lambda e: not e.record.owner,
    ),
    leads_where("a task without any work done fails", {NothingDone: (State.FAILED,)}),
    accepts(
        "an owner can report that nothing was done", {State.DONE: (NothingDone,)}, when=lambda e: bool(e.record.owner)
    ),
    accepts(
        "a worker can return work that was handed to it",
        {State.DONE: (Returned,)},
        when=lambda e: bool(e.record.owner) and e.record.stage is not Stage.WORK,
    ),
    accepts(
        "an owner can park work for approval",
        {State.DONE: (Parked,)},
        when=lambda e: bool(e.record.owner) and e.record.needs_approval and e.record.stage is not Stage.MERGE,
    ),
    accepts(
        "an owner can split a task within its limits",
        {(State.CLAIMED, State.IN_PROGRESS): (Split,)},
        when=lambda e: e.record.most_subtasks >= e.record.parts + 2,
    ),
    always_step("reporting an abort does not move the task", reports_of_aborts_move_nothing),
    always_step("an aborted task is cancelled, or marked until it can be", is_cancelled_by_an_abort, on=Event),
    always_step("an aborted task stays aborted until an operator retries it", stays_aborted),
    accepts(
        "an operator can abort any task that is not closed or cancelled",
        {(*CANCELLABLE, *NOT_NOW): (AbortWanted,), CANCELLABLE: (Aborted,)},
        when=lambda e: e.record.fate is not None,
    ),
    accepts(
        "a task that may be opened again can be aborted",
        {NOT_NOW: (Aborted,)},
        when=lambda e: e.record.fate is not None and not is_over(e.record),
    ),
    accepts(
        "an owner can report an aborted tool",
        {(State.CLAIMED, State.IN_PROGRESS): (ToolAborted,)},
        when=lambda e: e.record.fate is not None,
    ),
    always_step(
        "a task keeps the last conversation about it until a retry begins anew", keeps_its_conversation, on=Event
    ),
    accepts(
        "an agent can report its conversation until the task is over",
        {(*CANCELLABLE, *NOT_NOW): (ConversationKept,)},
        when=lambda e: bool(ConversationKept.examples_for(e.record)),
    ),
    leads_where(
        "refused work is FAILED, and approved work is DONE",
        {approval.ApprovalGranted: (State.DONE,), approval.ApprovalRefused: (State.FAILED,)},
    ),
    is_transient(State.WAITING_FOR_SUBTASKS),
    always("no task is retried more often than its limit", lambda e: e.record.limit <= e.record.max_retries),
    always("a task waits for parts only if it has parts", lambda e: not e.record.waits_for_parts or e.record.parts > 0),
    sometimes("a task is split", lambda e: e.record.parts > 0),
)
