"""The guards, actions and activities of an assignment."""

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
    WorkContinued,
    WorkFinished,
)
from lifefold.core.kernel import Step, replace
from lifefold.core.lifecycles.task import OnDeath, OnNothing, Stage
from lifefold.effects import CheckOutWork, InspectWork, MergeWork, ParkWork, VerifyWork, WatchBranch


def is_current_claim(a: Assignment, e: Recalled) -> bool:
    """The recall is of the current claim (E12)."""
    return (e.task, e.epoch) == (a.brief.task, a.brief.epoch)


def is_to_be_proven(a: Assignment, e: Rebriefed) -> bool:
    """The new commands are for the current claim, and an orphan keeps at least one command (E40)."""
    return (e.task, e.epoch) == (a.brief.task, a.brief.epoch) and (bool(e.verify) or not a.is_orphan)


def only_merges(_a: Assignment, e: Assigned) -> bool:
    """The work is done and approved: only its merge is left."""
    return e.brief.stage is Stage.MERGE


def only_verifies(a: Assignment, _e: CheckedOut) -> bool:
    """The work was done in parts, or by an earlier claim: only its verification is left."""
    return a.brief.stage in {Stage.VERIFY, Stage.REVERIFY}


def needs_approval(a: Assignment, _e: Verified) -> bool:
    """The work needs approval before its merge."""
    return a.brief.needs_approval


def is_orphan(a: Assignment) -> bool:
    """The session of the current task has died, and its work is not verified yet."""
    return a.is_orphan and a.state in {*ORPHANED, State.VERIFYING}


def is_to_be_verified(a: Assignment, _e: SessionDied) -> bool:
    """The task asks to verify the work of a dead session, and has commands for that (E40)."""
    return a.brief.orphaned is OnDeath.VERIFY and bool(a.brief.verify)


def is_to_be_requeued(a: Assignment, _e: SessionDied) -> bool:
    """The task asks to be given back when its session dies."""
    return a.brief.orphaned is OnDeath.REQUEUE


def is_guarded(a: Assignment, _e: Collected | Displaced) -> bool:
    """The fleet has a target branch."""
    return a.guarded


def was_found(a: Assignment, e: BranchAccepted) -> bool:
    """The operator accepts the commit that was found last, and no earlier one."""
    return e.found == a.found


def is_to_have_changed(a: Assignment, _e: WorkFinished) -> bool:
    """The task has no verification command, and must change something."""
    return a.guarded and not a.brief.verify and a.brief.on_nothing is OnNothing.FAIL


def differs(a: Assignment, e: Inspected) -> bool:
    """There is a difference to verify. Without one, only a reported task with commands is verified (E40)."""
    return e.differs or (bool(a.brief.verify) and not a.is_orphan)


def orphan(a: Assignment, e: SessionDied) -> Step[Assignment, Never]:
    """Record the death of the session."""
    return Step(replace(a, is_orphan=True, death=e.reason, diagnosis=e.diagnosis))


def adopt(a: Assignment, _e: Verified) -> Step[Assignment, Never]:
    """Accept verified work, also that of a dead session."""
    return Step(replace(a, is_orphan=False, death="", diagnosis=None))


def take(a: Assignment, e: Assigned) -> Step[Assignment, Never]:
    """Begin with the task."""
    fresh = replace(a, brief=e.brief, sessions=0, continues=False, is_orphan=False, death="", diagnosis=None)
    resumes = "" if e.conversation is None else e.conversation.id
    return Step(replace(fresh, collected=e.brief.collected, found="", accepted="", resumes=resumes))


def collect(a: Assignment, e: Collected) -> Step[Assignment, Never]:
    """Record the commit to merge."""
    return Step(replace(a, collected=e.commit))


def dispute(a: Assignment, e: Displaced) -> Step[Assignment, Never]:
    """Record the commit that the branch was found at; an earlier acceptance no longer counts."""
    return Step(replace(a, found=e.found, accepted=""))


def accept(a: Assignment, e: BranchAccepted) -> Step[Assignment, Never]:
    """Record the commit that the operator accepts."""
    return Step(replace(a, accepted=e.found))


def count(a: Assignment, _e: Prompted) -> Step[Assignment, Never]:
    """Count the session; only the first one differs from the others."""
    return Step(replace(a, sessions=min(a.sessions + 1, 2), continues=False))


def go_on(a: Assignment, _e: WorkContinued) -> Step[Assignment, Never]:
    """Record that a session has completed, and that another one goes on with the claim."""
    return Step(replace(a, continues=True))


def check_out(a: Assignment) -> CheckOutWork:
    """Return the activity of Preparing; kept work is checked out as it is, to be verified again.

    An agent that resumes its conversation finds its changes again: it knows them, and would not make them anew.
    """
    if a.brief.stage is Stage.REVERIFY:
        return CheckOutWork(a.brief.task, a.brief.epoch, a.brief.result, a.brief.collected)
    return CheckOutWork(a.brief.task, a.brief.epoch, resumes=a.resumes)


def inspect(a: Assignment) -> InspectWork:
    """Return the activity of Inspecting."""
    return InspectWork(a.brief.task, a.brief.epoch)


def verify(a: Assignment) -> VerifyWork:
    """Return the activity of Verifying."""
    return VerifyWork(a.brief.task, a.brief.epoch, a.brief.verify, a.verify_timeout_ms)


def merge(a: Assignment) -> MergeWork:
    """Return the activity of Merging."""
    return MergeWork(a.brief.task, a.brief.epoch, _title(a), a.brief.result, a.collected, a.accepted, a.to_branch)


def watch(a: Assignment) -> WatchBranch:
    """Return the activity of Disputed."""
    return WatchBranch(a.brief.task, a.found)


def park(a: Assignment) -> ParkWork:
    """Return the activity of Parking."""
    return ParkWork(a.brief.task, a.brief.epoch, _title(a))


def _title(a: Assignment) -> str:
    return a.brief.prompt.partition("\n")[0][:72]


def rests(a: Assignment) -> bool:
    """The worker has no task."""
    return a.state is State.IDLE


def rebrief(a: Assignment, e: Rebriefed) -> Step[Assignment, Never]:
    """Keep the new commands for the next verification; a running one goes on unchanged."""
    return Step(replace(a, brief=replace(a.brief, verify=e.verify)))


def limit_verification(a: Assignment, e: VerifyTimeoutChanged) -> Step[Assignment, Never]:
    """Keep the new time limit of one command."""
    return Step(replace(a, verify_timeout_ms=e.timeout_ms))
