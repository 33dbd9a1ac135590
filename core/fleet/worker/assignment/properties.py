"""The properties of an assignment."""

from typing import Any, Final

from lifefold.core.fleet.worker.assignment.model import (
    Assigned,
    Assignment,
    BranchAccepted,
    BranchBack,
    CheckedOut,
    CheckoutFailed,
    Collected,
    Conflicted,
    Displaced,
    Dropped,
    Inspected,
    Merged,
    Parked,
    ParkingFailed,
    Prompted,
    Rebriefed,
    Recalled,
    Rejected,
    SessionDied,
    SessionGone,
    State,
    Verified,
    WorkContinued,
    WorkFailed,
    WorkFinished,
    WorkRequested,
)
from lifefold.core.fleet.worker.assignment.rules import is_orphan, is_to_be_requeued, is_to_be_verified
from lifefold.core.kernel import Event, Pattern, Property, Transition, accepts, always_step, replace, sometimes
from lifefold.core.lifecycles.property_forms import asks_once, exits_on, goes_on, leads_where
from lifefold.core.lifecycles.task import Brief, OnDeath, OnNothing, Stage


def merges_what_is_verified(step: Transition) -> bool:
    """Only verified work is merged or parked: verified by this claim, or before its approval."""
    verified = step.before is not None and step.before.state is State.VERIFYING and isinstance(step.event, Verified)
    agreed = isinstance(step.event, Assigned) and step.event.brief.stage is Stage.MERGE
    decided = step.before is not None and step.before.state is State.DISPUTED
    if step.entered is State.PARKING:
        return verified
    return step.entered is not State.MERGING or verified or agreed or decided


def accepts_what_was_found(step: Transition) -> bool:
    """The operator accepts the branch only at the commit that was found, until another one is found."""
    a: Assignment = step.after.record
    match step.event:
        case BranchAccepted(found=found):
            return a.accepted == found == a.found
        case Displaced(found=found):
            return (a.found, a.accepted) == (found, "")
        case Assigned():
            return (a.found, a.accepted) == ("", "")
        case _ if step.before is not None:
            before: Assignment = step.before.record
            return (a.found, a.accepted) == (before.found, before.accepted)
        case _:
            return True


def merges_what_was_collected(step: Transition) -> bool:
    """The commit to merge is the last one that was collected, or the one that was parked."""
    a: Assignment = step.after.record
    match step.event:
        case Collected(commit=commit):
            return a.collected == commit
        case Assigned(brief=brief):
            return a.collected == brief.collected
        case _:
            return step.before is None or bool(a.collected == step.before.record.collected)


def asks_before_it_merges(step: Transition) -> bool:
    """Verified work is parked if it needs approval, and merged otherwise (E2)."""
    a: Assignment = step.after.record
    if step.before is None or step.before.state is not State.VERIFYING or not isinstance(step.event, Verified):
        return True
    return a.state is (State.PARKING if a.brief.needs_approval else State.MERGING)


def begins_at_its_stage(step: Transition) -> bool:
    """An assignment begins at the stage that is left of its task."""
    a: Assignment = step.after.record
    match step.event:
        case Assigned():
            return (a.state is State.MERGING) is (a.brief.stage is Stage.MERGE)
        case CheckedOut():
            return (a.state is State.VERIFYING) is (a.brief.stage in {Stage.VERIFY, Stage.REVERIFY})
        case _:
            return True


def verifies_orphaned_work(step: Transition) -> bool:
    """Work of a dead session is verified if it differs, counts if its commands succeed, and is dropped otherwise."""
    a: Assignment = step.after.record
    if step.before is None or step.entered is None or not is_orphan(step.before.record):
        return True
    match step.entered:
        case State.VERIFYING:
            return isinstance(step.event, Inspected) and step.event.differs and bool(a.brief.verify)
        case State.PARKING | State.MERGING:
            return isinstance(step.event, Verified) and not a.is_orphan
        case State.IDLE:
            return isinstance(step.event, Recalled | Rejected) or step.event == Inspected(differs=False)
        case _:
            return a.is_orphan


def returns_unchanged_work(step: Transition) -> bool:
    """Without verification commands, the worktree is inspected; a task without any change leaves the worker."""
    a: Assignment = step.after.record
    if step.before is None or a.is_orphan or step.before.record.is_orphan:
        return True
    match step.event:
        case WorkFinished():
            wants = a.guarded and not a.brief.verify and a.brief.on_nothing is OnNothing.FAIL
            return step.entered is (State.INSPECTING if wants else State.VERIFYING)
        case Inspected(differs=found):
            return step.entered is (State.VERIFYING if found or a.brief.verify else State.IDLE)
        case _:
            return True


def is_orphaned_on_request(step: Transition) -> bool:
    """A task is an orphan only if its session has died, and the task asks for a verification."""
    a: Assignment = step.after.record
    if step.before is None or not isinstance(step.event, SessionDied):
        return step.before is None or not a.is_orphan or step.before.record.is_orphan
    wants = a.brief.orphaned is OnDeath.VERIFY and bool(a.brief.verify)
    given_back = step.entered is State.IDLE and not a.is_orphan and a.brief.orphaned is OnDeath.REQUEUE
    return (step.entered, a.is_orphan, a.death) == (State.ORPHANED, wants, step.event.reason) or given_back


def drops_what_is_recalled(step: Transition) -> bool:
    """A recalled task leaves the worker (E20)."""
    return step.entered is State.IDLE


def ends_one_task_before_another(step: Transition) -> bool:
    """A worker gets a new task only after it has asked for one.

    A plan change may replace the verification commands of the current task, and nothing else of it.
    """
    was, now = step.was.brief, step.after.record.brief
    if isinstance(step.event, Rebriefed):
        return bool(now == replace(was, verify=step.event.verify)) and step.entered is None
    same: bool = was == now
    return same or step.was.state is State.WANTING


def is_recalled_by_its_claim(step: Transition) -> bool:
    """Only the current claim is recalled, and no other claim of the same task (E12)."""
    if not isinstance(step.event, Recalled):
        return True
    brief: Brief = step.was.brief
    return (step.event.task, step.event.epoch) == (brief.task, brief.epoch)


def continues_until_its_next_session(step: Transition) -> bool:
    """A claim continues from the end of a completed session until the next session has its prompt."""
    was, now = step.was.continues, step.after.record.continues
    match step.event:
        case WorkContinued():
            return bool(now)
        case Prompted() | Assigned():
            return not now
        case _:
            return bool(was == now)


_ACCEPTED: Final = Pattern(BranchAccepted, "as found", lambda e: e.found == "bad")
_LEFT_SOMETHING: Final = Pattern(Inspected, "something", lambda e: e.differs)
_LEFT_NOTHING: Final = Pattern(Inspected, "nothing", lambda e: not e.differs)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("only verified work is merged", merges_what_is_verified),
    always_step("the commit to merge is recorded before the merge", merges_what_was_collected),
    always_step("the operator accepts a moved branch only at the commit that was found", accepts_what_was_found),
    always_step("exactly the work that needs approval is parked", asks_before_it_merges),
    always_step("an assignment begins at the stage that is left of its task", begins_at_its_stage),
    always_step("work of a dead session counts only if it differs and is verified", verifies_orphaned_work),
    always_step("an empty difference is accepted only if a command or the task allows it", returns_unchanged_work),
    always_step("a task whose session dies is an orphan only if the task asks for it", is_orphaned_on_request),
    always_step(
        "a task to be requeued is given back when its session dies",
        lambda step: step.after.record.brief.orphaned is not OnDeath.REQUEUE or step.entered is State.IDLE,
        on=SessionDied,
    ),
    always_step("a recalled task is dropped, and never merged", drops_what_is_recalled, on=Recalled),
    always_step("a worker has one task at a time", ends_one_task_before_another, on=Event),
    always_step("only the current claim of a task is recalled", is_recalled_by_its_claim, on=Event),
    always_step("a claim continues until its next session", continues_until_its_next_session, on=Event),
    always_step(
        "the first session of a task is distinguished from later ones",
        lambda step: bool(step.after.record.sessions == min(step.was.sessions + 1, 2)),
        on=Prompted,
    ),
    leads_where(
        "an assignment takes its steps in order: prepare, work, verify, merge",
        {
            WorkRequested: (State.WANTING,),
            Assigned: (State.PREPARING, State.MERGING),
            CheckedOut: (State.WORKING, State.VERIFYING),
            Prompted: (State.WORKING,),
            SessionDied: (State.ORPHANED, State.IDLE),
            SessionGone: (State.INSPECTING,),
            Inspected: (State.VERIFYING, State.IDLE),
            WorkFinished: (State.VERIFYING, State.INSPECTING),
            Verified: (State.MERGING, State.PARKING),
            Collected: (State.MERGING,),
            Displaced: (State.DISPUTED,),
            BranchBack: (State.MERGING,),
            BranchAccepted: (State.MERGING,),
        },
    ),
    leads_where(
        "a failed, dropped, parked or merged task leaves the worker",
        dict.fromkeys(
            (CheckoutFailed, WorkFailed, Rejected, Parked, ParkingFailed, Conflicted, Dropped, Recalled, Merged),
            (State.IDLE,),
        ),
    ),
    goes_on("CheckOutWork", State.PREPARING),
    goes_on("InspectWork", State.INSPECTING),
    goes_on("VerifyWork", State.VERIFYING),
    goes_on("ParkWork", State.PARKING),
    goes_on("MergeWork", State.MERGING),
    goes_on("WatchBranch", State.DISPUTED),
    asks_once(),
    *exits_on(State.PREPARING, CheckedOut, CheckoutFailed, Dropped, Recalled),
    *exits_on(State.WANTING, Dropped),
    *exits_on(State.WORKING, WorkFinished, WorkFailed, Dropped, Recalled),
    *exits_on(State.ORPHANED, SessionGone, Recalled),
    *exits_on(State.INSPECTING, Inspected, Recalled),
    *exits_on(State.VERIFYING, Verified, Rejected, Recalled),
    *exits_on(State.PARKING, Parked, ParkingFailed, Recalled),
    *exits_on(State.MERGING, Merged, Conflicted),
    *exits_on(State.DISPUTED, BranchBack, Recalled),
    accepts(
        "a merge can report its commit and a moved branch",
        {State.MERGING: (Collected, Displaced)},
        when=lambda e: e.record.guarded,
    ),
    accepts("the operator can accept a moved branch", {State.DISPUTED: (_ACCEPTED,)}, when=lambda e: e.record.guarded),
    accepts("every session of a task is counted", {State.WORKING: (Prompted,)}),
    accepts("a claim can continue after a completed session", {State.WORKING: (WorkContinued,)}),
    accepts(
        "the death of a session is accepted where its task handles it",
        {State.WORKING: (SessionDied,)},
        when=lambda e: is_to_be_verified(e.record, SessionDied()) or is_to_be_requeued(e.record, SessionDied()),
    ),
    accepts("an inspection can report work, or none", {State.INSPECTING: (_LEFT_SOMETHING, _LEFT_NOTHING)}),
    sometimes("work is merged", lambda e: e.state is State.MERGING),
)
