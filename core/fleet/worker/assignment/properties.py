"""What the board and the session can rely on of an assignment."""

from typing import Any, Final

from lifefold.core.fleet.worker.assignment.model import (
    Assigned,
    Assignment,
    BranchAccepted,
    BranchBack,
    Buried,
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
    State,
    Verified,
    WorkFailed,
    WorkFinished,
    WorkRequested,
)
from lifefold.core.fleet.worker.assignment.rules import is_orphan, is_to_be_requeued, is_to_be_verified
from lifefold.core.kernel import Pattern, Property, Transition, accepts, always_step, replace, sometimes
from lifefold.core.lifecycles.property_forms import asks_once, exits_on, goes_on, leads_where
from lifefold.core.lifecycles.task import Brief, OnDeath, OnNothing, Stage


def merges_what_is_verified(step: Transition) -> bool:
    """Only what was verified is merged, or parked: now, or by whoever had it before it was agreed to."""
    verified = step.before is not None and step.before.state is State.VERIFYING and isinstance(step.event, Verified)
    agreed = isinstance(step.event, Assigned) and step.event.brief.stage is Stage.MERGE
    decided = step.before is not None and step.before.state is State.DISPUTED
    if step.entered is State.PARKING:
        return verified
    return step.entered is not State.MERGING or verified or agreed or decided


def accepts_what_was_found(step: Transition) -> bool:
    """The operator accepts the branch only where it was found, and that counts until it is found elsewhere."""
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
    """The commit that is merged is the one that was made of the work last, or the one that was parked."""
    a: Assignment = step.after.record
    match step.event:
        case Collected(commit=commit):
            return a.collected == commit
        case Assigned(brief=brief):
            return a.collected == brief.collected
        case _:
            return step.before is None or bool(a.collected == step.before.record.collected)


def asks_before_it_merges(step: Transition) -> bool:
    """What a person has to agree to is parked when it is verified, and what nobody has to is not (E2)."""
    a: Assignment = step.after.record
    if step.before is None or step.before.state is not State.VERIFYING or not isinstance(step.event, Verified):
        return True
    return a.state is (State.PARKING if a.brief.asks else State.MERGING)


def begins_where_it_is_to(step: Transition) -> bool:
    """Whoever is given a task begins with what is left of it."""
    a: Assignment = step.after.record
    match step.event:
        case Assigned():
            return (a.state is State.MERGING) is (a.brief.stage is Stage.MERGE)
        case CheckedOut():
            return (a.state is State.VERIFYING) is (a.brief.stage is Stage.VERIFY)
        case _:
            return True


def proves_what_orphans_left(step: Transition) -> bool:
    """What a dead session has left is verified if it differs, counts if commands agree, and is given up otherwise."""
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


def takes_nothing_for_no_work(step: Transition) -> bool:
    """Of a repository's task that nothing proves it is looked whether there is any work; without any it is put away."""
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


def is_orphaned_as_it_is_to(step: Transition) -> bool:
    """A task is an orphan only if its session has died, and the task wants what it has left to be verified."""
    a: Assignment = step.after.record
    if step.before is None or not isinstance(step.event, SessionDied):
        return step.before is None or not a.is_orphan or step.before.record.is_orphan
    wants = a.brief.orphaned is OnDeath.VERIFY and bool(a.brief.verify)
    given_back = step.entered is State.IDLE and not a.is_orphan and a.brief.orphaned is OnDeath.REQUEUE
    return (step.entered, a.is_orphan, a.death) == (State.ORPHANED, wants, step.event.reason) or given_back


def gives_back_what_is_to_be(step: Transition) -> bool:
    """A task that is to be given back when its session dies is no orphan, and not in hand any more."""
    if step.before is None or not isinstance(step.event, SessionDied):
        return True
    return step.after.record.brief.orphaned is not OnDeath.REQUEUE or step.entered is State.IDLE


def drops_what_is_recalled(step: Transition) -> bool:
    """What is taken from its owner is not in hand any more; another task that is, stays (E20)."""
    return step.before is None or not isinstance(step.event, Recalled) or step.entered is State.IDLE


def ends_one_task_before_another(step: Transition) -> bool:
    """The task in hand is exchanged for another one only when it is not in hand any more.

    The plan may change how it is verified, and nothing else of it.
    """
    if step.before is None:
        return True
    was, now = step.before.record.brief, step.after.record.brief
    if isinstance(step.event, Rebriefed):
        return bool(now == replace(was, verify=step.event.verify)) and step.entered is None
    same: bool = was == now
    return same or step.before.state is State.WANTING


def is_recalled_by_its_claim(step: Transition) -> bool:
    """Only the claim in hand is recalled, and no other one of the same task (E12)."""
    if step.before is None or not isinstance(step.event, Recalled):
        return True
    brief: Brief = step.before.record.brief
    return (step.event.task, step.event.epoch) == (brief.task, brief.epoch)


def counts_its_sessions(step: Transition) -> bool:
    """The first session of a task is told from all later ones."""
    if step.before is None or not isinstance(step.event, Prompted):
        return True
    return bool(step.after.record.sessions == min(step.before.record.sessions + 1, 2))


_ACCEPTED: Final = Pattern(BranchAccepted, "as found", lambda e: e.found == "bad")
_LEFT_SOMETHING: Final = Pattern(Inspected, "something", lambda e: e.differs)
_LEFT_NOTHING: Final = Pattern(Inspected, "nothing", lambda e: not e.differs)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("only what is verified is merged", merges_what_is_verified),
    always_step("the commit that is merged is known before it is", merges_what_was_collected),
    always_step("the operator accepts a branch where it was found, and nowhere else", accepts_what_was_found),
    always_step("what a person has to agree to is parked, and nothing else", asks_before_it_merges),
    always_step("whoever is given a task begins with what is left of it", begins_where_it_is_to),
    always_step("what a dead session has left counts only if it differs and is verified", proves_what_orphans_left),
    always_step("nothing is work only if a command agrees or the task says so", takes_nothing_for_no_work),
    always_step("only a task that wants it is an orphan when its session dies", is_orphaned_as_it_is_to),
    always_step("what is to be given back when its session dies is", gives_back_what_is_to_be),
    always_step("what is recalled is dropped, and so never merged", drops_what_is_recalled),
    always_step("there is one task in hand at a time", ends_one_task_before_another),
    always_step("a task is recalled by the claim in hand only", is_recalled_by_its_claim),
    always_step("the first session of a task is told from the others", counts_its_sessions),
    leads_where(
        "a task goes from hand to hand in its order: prepared, worked at, verified, merged",
        {
            WorkRequested: (State.WANTING,),
            Assigned: (State.PREPARING, State.MERGING),
            CheckedOut: (State.WORKING, State.VERIFYING),
            Prompted: (State.WORKING,),
            SessionDied: (State.ORPHANED, State.IDLE),
            Buried: (State.INSPECTING,),
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
        "what has failed, was given up, is parked or is merged is not in hand any more",
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
    *exits_on(State.ORPHANED, Buried, Recalled),
    *exits_on(State.INSPECTING, Inspected, Recalled),
    *exits_on(State.VERIFYING, Verified, Rejected, Recalled),
    *exits_on(State.PARKING, Parked, ParkingFailed, Recalled),
    *exits_on(State.MERGING, Merged, Conflicted),
    *exits_on(State.DISPUTED, BranchBack, Recalled),
    accepts(
        "that the branch was moved, and what is merged, is heard",
        {State.MERGING: (Collected, Displaced)},
        when=lambda e: e.record.guarded,
    ),
    accepts(
        "the operator's word on the branch is heard", {State.DISPUTED: (_ACCEPTED,)}, when=lambda e: e.record.guarded
    ),
    accepts("every session of a task is counted", {State.WORKING: (Prompted,)}),
    accepts(
        "that its session has died is heard of a task that wants it",
        {State.WORKING: (SessionDied,)},
        when=lambda e: is_to_be_verified(e.record, SessionDied()) or is_to_be_requeued(e.record, SessionDied()),
    ),
    accepts(
        "whether or not a dead session has left something is heard",
        {State.INSPECTING: (_LEFT_SOMETHING, _LEFT_NOTHING)},
    ),
    sometimes("work is merged", lambda e: e.state is State.MERGING),
)
