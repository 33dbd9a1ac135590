"""What an assignment asks before a transition, what it does with one, and what goes on in its states."""

from typing import Never

from lifefold.core.fleet.worker.assignment.model import (
    ORPHANED,
    Assigned,
    Assignment,
    BranchAccepted,
    CheckedOut,
    Collected,
    Displaced,
    Inspected,
    Prompted,
    Rebriefed,
    Recalled,
    SessionDied,
    State,
    Verified,
    VerifyTimeoutChanged,
    WorkFinished,
)
from lifefold.core.kernel import Step, replace
from lifefold.core.lifecycles.task import OnDeath, OnNothing, Stage
from lifefold.effects import CheckOutWork, InspectWork, MergeWork, ParkWork, VerifyWork, WatchBranch


def in_hand(a: Assignment, e: Recalled) -> bool:
    """The claim is the one in hand (E12)."""
    return (e.task, e.epoch) == (a.brief.task, a.brief.epoch)


def is_to_be_proven(a: Assignment, e: Rebriefed) -> bool:
    """The claim is the one in hand; what a dead session has left is not to be without any commands (E40)."""
    return (e.task, e.epoch) == (a.brief.task, a.brief.epoch) and (bool(e.verify) or not a.is_orphan)


def only_merges(_a: Assignment, e: Assigned) -> bool:
    """The work is done, and a person has agreed to it."""
    return e.brief.stage is Stage.MERGE


def only_verifies(a: Assignment, _e: CheckedOut) -> bool:
    """The work was done as parts of it."""
    return a.brief.stage is Stage.VERIFY


def has_to_ask(a: Assignment, _e: Verified) -> bool:
    """A person has to agree before it is merged."""
    return a.brief.asks


def is_orphan(a: Assignment) -> bool:
    """The session of the task in hand has died, and it is not known yet whether what it has left is the work."""
    return a.is_orphan and a.state in {*ORPHANED, State.VERIFYING}


def is_to_be_verified(a: Assignment, _e: SessionDied) -> bool:
    """What a dead session leaves of the task may be the work, and there are commands that can tell (E40)."""
    return a.brief.orphaned is OnDeath.VERIFY and bool(a.brief.verify)


def is_to_be_requeued(a: Assignment, _e: SessionDied) -> bool:
    """The task is given back as it was."""
    return a.brief.orphaned is OnDeath.REQUEUE


def is_guarded(a: Assignment, _e: Collected | Displaced) -> bool:
    """The work is merged into a branch of a repository."""
    return a.guarded


def was_found(a: Assignment, e: BranchAccepted) -> bool:
    """The operator means the commit at which the branch was found, and not one of which he does not know yet."""
    return e.found == a.found


def is_to_have_changed(a: Assignment, _e: WorkFinished) -> bool:
    """No command tells whether the work is done, and nothing is no work unless the task says so."""
    return a.guarded and not a.brief.verify and a.brief.on_nothing is OnNothing.FAIL


def differs(a: Assignment, e: Inspected) -> bool:
    """There is something to be verified: an empty difference is never done (E40), unless commands tell that it is."""
    return e.differs or (bool(a.brief.verify) and not a.is_orphan)


def orphan(a: Assignment, e: SessionDied) -> Step[Assignment, Never]:
    """Remember what the session has died of."""
    return Step(replace(a, is_orphan=True, death=e.reason, diagnosis=e.diagnosis))


def adopt(a: Assignment, _e: Verified) -> Step[Assignment, Never]:
    """Take what is verified for the work, whoever has done it."""
    return Step(replace(a, is_orphan=False, death="", diagnosis=None))


def take(a: Assignment, e: Assigned) -> Step[Assignment, Never]:
    """Take the task in hand."""
    anew = replace(a, brief=e.brief, sessions=0, is_orphan=False, death="", diagnosis=None)
    return Step(replace(anew, collected=e.brief.collected, found="", accepted=""))


def collect(a: Assignment, e: Collected) -> Step[Assignment, Never]:
    """Remember the commit that is merged."""
    return Step(replace(a, collected=e.commit))


def dispute(a: Assignment, e: Displaced) -> Step[Assignment, Never]:
    """Remember where the branch was found; what was accepted before does not count there."""
    return Step(replace(a, found=e.found, accepted=""))


def accept(a: Assignment, e: BranchAccepted) -> Step[Assignment, Never]:
    """Remember what the operator accepts."""
    return Step(replace(a, accepted=e.found))


def count(a: Assignment, _e: Prompted) -> Step[Assignment, Never]:
    """Count the session, as far as it matters: the first one is different."""
    return Step(replace(a, sessions=min(a.sessions + 1, 2)))


def check_out(a: Assignment) -> CheckOutWork:
    """Return what goes on in Preparing."""
    return CheckOutWork(a.brief.task, a.brief.epoch)


def inspect(a: Assignment) -> InspectWork:
    """Return what goes on in Inspecting."""
    return InspectWork(a.brief.task, a.brief.epoch)


def verify(a: Assignment) -> VerifyWork:
    """Return what goes on in Verifying."""
    return VerifyWork(a.brief.task, a.brief.epoch, a.brief.verify, a.verify_timeout_ms)


def merge(a: Assignment) -> MergeWork:
    """Return what goes on in Merging."""
    return MergeWork(a.brief.task, a.brief.epoch, _title(a), a.brief.result, a.collected, a.accepted)


def watch(a: Assignment) -> WatchBranch:
    """Return what goes on in Disputed."""
    return WatchBranch(a.brief.task, a.found)


def park(a: Assignment) -> ParkWork:
    """Return what goes on in Parking."""
    return ParkWork(a.brief.task, a.brief.epoch, _title(a))


def _title(a: Assignment) -> str:
    return a.brief.prompt.partition("\n")[0][:72]


def rests(a: Assignment) -> bool:
    """Nothing is in hand."""
    return a.state is State.IDLE


def rebrief(a: Assignment, e: Rebriefed) -> Step[Assignment, Never]:
    """Keep the new commands for the next verification; one that runs already goes on as it was begun."""
    return Step(replace(a, brief=replace(a.brief, verify=e.verify)))


def limit_verification(a: Assignment, e: VerifyTimeoutChanged) -> Step[Assignment, Never]:
    """Keep how long one command may take."""
    return Step(replace(a, verify_timeout_ms=e.timeout_ms))
