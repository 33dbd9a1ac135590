"""What a worker does with the one task in its hands: a clean place, the work itself, the proof, the way home.

The work itself is done by the session; this machine says what surrounds it. Five things can come between:

- A place that cannot be made is trouble of the agent, not of the task: the task is given back as it was.
- An agent that stops gives back what it has not done. Work that is done is brought home all the same: its verification
  and its merge are finished, and what comes of them counts.
- Work that a person has to agree to before it is merged is *parked*: it is put where whoever merges it finds it, and is
  out of this worker's hands. Somebody, perhaps the same worker, is then given it to be merged only. Likewise a task may
  be given to be verified only, when its parts are closed.
- A session that has died has said nothing of its work. If the task wants that (``orphaned``), what it has left is
  *inspected* as soon as nothing of it is alive any more, and verified if there is anything; only if it agrees, it is as
  if the session had said that it is done (E40).
- A task that is taken from its owner (``Recalled``, E20) is dropped at once, and what was done for it is never merged.
  Only a merge that has begun is finished: git cannot say of half of one whether it is in the branch.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    always_step,
    does,
    replace,
    row,
    sometimes,
    takes,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.promises import asks_once, goes_on, is_over_with, leads_where
from lifefold.core.task import Brief, OnDeath, Stage
from lifefold.effects import CheckOutWork, InspectWork, MergeWork, ParkWork, VerifyWork


class State(AnyLifecycleState):
    """The nine states of an assignment."""

    IDLE = "Idle"
    WANTING = "Wanting"
    PREPARING = "Preparing"
    WORKING = "Working"
    ORPHANED = "Orphaned"
    INSPECTING = "Inspecting"
    VERIFYING = "Verifying"
    PARKING = "Parking"
    MERGING = "Merging"


ORPHANED: Final = frozenset({State.ORPHANED, State.INSPECTING})
"""In these a session has died, and nobody knows yet whether it has left anything."""

ON_ITS_WAY: Final = frozenset({*ORPHANED, State.VERIFYING, State.PARKING, State.MERGING})
"""In these the work is done, and on its way home; or it may turn out to be."""


class Asked(Event, frozen=True):
    """The board was asked for work."""


class Assigned(Event, frozen=True):
    """The board gives the worker a task."""

    brief: Brief = Brief()

    @classmethod
    def examples(cls) -> tuple["Assigned", ...]:
        """Return a task to be worked at, others that differ in what follows, and some of which only a part is left."""
        return tuple(cls(brief) for brief in (Brief(), Brief(asks=True), *_WITH_ORPHANS, *_LATER))


_WITH_ORPHANS: Final = (
    Brief(orphaned=OnDeath.REQUEUE),
    Brief(orphaned=OnDeath.VERIFY),
    Brief(verify=(("true",),), orphaned=OnDeath.VERIFY),
)
_LATER: Final = (Brief(stage=Stage.VERIFY), Brief(stage=Stage.MERGE, asks=True, result=1))


class CheckedOut(Event, frozen=True):
    """The task's place is ready."""


class CheckoutFailed(Event, frozen=True):
    """The task's place could not be made."""

    reason: str = ""


class Prompted(Event, frozen=True):
    """A session was given a prompt for the task."""


class WorkFinished(Event, frozen=True):
    """The session says that the work is done. It took so long, where that is asked for."""

    took_ms: int = 0


class WorkFailed(Event, frozen=True):
    """The session failed."""

    reason: str = ""


class SessionDied(Event, frozen=True):
    """The session has died, and what becomes of its task is not that it has failed."""

    reason: str = ""


class Buried(Event, frozen=True):
    """Nothing of the session is alive any more: what it has left will not change."""


class Inspected(Event, frozen=True):
    """What is in the task's place ``differs`` from where the claim began, or does not (E40)."""

    differs: bool = False

    @classmethod
    def examples(cls) -> tuple["Inspected", ...]:
        """Return one of a session that has left something, and one of a session that has not."""
        return cls(differs=True), cls()


class Verified(Event, frozen=True):
    """Every verification command agreed."""


class Rejected(Event, frozen=True):
    """A verification command did not agree."""

    reason: str = ""


class Parked(Event, frozen=True):
    """The work is kept where whoever merges it finds it."""


class ParkingFailed(Event, frozen=True):
    """The work cannot be kept as it is."""

    reason: str = ""


class Merged(Event, frozen=True):
    """The work is in the fleet's branch, as ``commit``; empty where there is no repository or nothing was changed."""

    commit: str = ""


class Conflicted(Event, frozen=True):
    """The work does not fit what others have merged meanwhile."""

    reason: str = ""


class Dropped(Event, frozen=True):
    """The worker stops before the work is done."""

    reason: str = ""


class Recalled(Event, frozen=True):
    """The board has taken the task from its owner: claim number ``epoch`` of it is over (E20).

    Its session may take ``within_ms`` to end; with 0 it has its agent's grace.
    """

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    task: str = ""
    epoch: int = 0
    reason: str = ""
    within_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["Recalled", ...]:
        """Return the recall of a claim, and that of another one."""
        return cls(epoch=0), cls(epoch=1)


class Assignment(Record, frozen=True):
    """The task in hand: its brief. ``sessions`` counts the prompts written for it: none, one, or 2 for more.

    ``is_orphan``: its session has died, by ``death``, and what it has left is not known to be the work.
    """

    state: State = State.IDLE
    brief: Brief = Brief()
    sessions: int = 0
    verify_timeout_ms: int = 600_000
    is_orphan: bool = False
    death: str = ""

    def normal_form(self) -> "Assignment":
        """Return it without the task that is not in hand any more, and without what only sessions need to know."""
        if self.state in {State.IDLE, State.WANTING}:
            return replace(self, brief=Brief(), sessions=0, is_orphan=False, death="")
        if self.state in ON_ITS_WAY:
            return replace(self, brief=replace(self.brief, failure="", kept=0), sessions=0)
        return self


def in_hand(a: Assignment, e: Recalled) -> bool:
    """The claim is the one in hand (E12)."""
    return (e.task, e.epoch) == (a.brief.task, a.brief.epoch)


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


def differs(_a: Assignment, e: Inspected) -> bool:
    """There is something to be verified: an empty difference is never done (E40)."""
    return e.differs


def orphan(a: Assignment, e: SessionDied) -> Step[Assignment, Never]:
    """Remember what the session has died of."""
    return Step(replace(a, is_orphan=True, death=e.reason))


def adopt(a: Assignment, _e: Verified) -> Step[Assignment, Never]:
    """Take what is verified for the work, whoever has done it."""
    return Step(replace(a, is_orphan=False, death=""))


def take(a: Assignment, e: Assigned) -> Step[Assignment, Never]:
    """Take the task in hand."""
    return Step(replace(a, brief=e.brief, sessions=0, is_orphan=False, death=""))


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
    return MergeWork(a.brief.task, a.brief.epoch, _title(a), a.brief.result)


def park(a: Assignment) -> ParkWork:
    """Return what goes on in Parking."""
    return ParkWork(a.brief.task, a.brief.epoch, _title(a))


def _title(a: Assignment) -> str:
    return a.brief.prompt.partition("\n")[0][:72]


def rests(a: Assignment) -> bool:
    """Nothing is in hand."""
    return a.state is State.IDLE


def merges_what_is_verified(step: Transition) -> bool:
    """Only what was verified is merged, or parked: now, or by whoever had it before it was agreed to."""
    verified = step.before is not None and step.before.state is State.VERIFYING and isinstance(step.event, Verified)
    agreed = isinstance(step.event, Assigned) and step.event.brief.stage is Stage.MERGE
    if step.entered is State.PARKING:
        return verified
    return step.entered is not State.MERGING or verified or agreed


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


def is_orphaned_as_it_is_to(step: Transition) -> bool:
    """A task is an orphan only if its session has died, and the task wants what it has left to be verified."""
    a: Assignment = step.after.record
    if step.before is None or not isinstance(step.event, SessionDied):
        return step.before is None or not a.is_orphan or step.before.record.is_orphan
    wants = a.brief.orphaned is OnDeath.VERIFY and bool(a.brief.verify)
    given_back = step.entered is State.IDLE and not a.is_orphan and a.brief.orphaned is OnDeath.REQUEUE
    return (step.entered, a.is_orphan, a.death) == (State.ORPHANED, wants, step.event.reason) or given_back


def drops_what_is_recalled(step: Transition) -> bool:
    """What is taken from its owner is not in hand any more; another task that is, stays (E20)."""
    return step.before is None or not isinstance(step.event, Recalled) or step.entered is State.IDLE


def ends_one_task_before_another(step: Transition) -> bool:
    """The task in hand is exchanged for another one only when it is not in hand any more."""
    if step.before is None:
        return True
    same: bool = step.before.record.brief == step.after.record.brief
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


PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("only what is verified is merged", merges_what_is_verified),
    always_step("what a person has to agree to is parked, and nothing else", asks_before_it_merges),
    always_step("whoever is given a task begins with what is left of it", begins_where_it_is_to),
    always_step("what a dead session has left counts only if it differs and is verified", proves_what_orphans_left),
    always_step("only a task that wants it is an orphan when its session dies", is_orphaned_as_it_is_to),
    always_step("what is recalled is dropped, and so never merged", drops_what_is_recalled),
    always_step("there is one task in hand at a time", ends_one_task_before_another),
    always_step("a task is recalled by the claim in hand only", is_recalled_by_its_claim),
    always_step("the first session of a task is told from the others", counts_its_sessions),
    leads_where(
        "a task goes from hand to hand in its order: prepared, worked at, verified, merged",
        {
            Asked: (State.WANTING,),
            Assigned: (State.PREPARING, State.MERGING),
            CheckedOut: (State.WORKING, State.VERIFYING),
            Prompted: (State.WORKING,),
            SessionDied: (State.ORPHANED, State.IDLE),
            Buried: (State.INSPECTING,),
            Inspected: (State.VERIFYING, State.IDLE),
            WorkFinished: (State.VERIFYING,),
            Verified: (State.MERGING, State.PARKING),
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
    asks_once(),
    *is_over_with(State.PREPARING, CheckedOut, CheckoutFailed, Dropped, Recalled),
    *is_over_with(State.WANTING, Dropped),
    *is_over_with(State.WORKING, WorkFinished, WorkFailed, Dropped, Recalled),
    *is_over_with(State.ORPHANED, Buried, Recalled),
    *is_over_with(State.INSPECTING, Inspected, Recalled),
    *is_over_with(State.VERIFYING, Verified, Rejected, Recalled),
    *is_over_with(State.PARKING, Parked, ParkingFailed, Recalled),
    *is_over_with(State.MERGING, Merged, Conflicted),
    takes("every session of a task is counted", {State.WORKING: (Prompted,)}),
    takes(
        "that its session has died is heard of a task that wants it",
        {State.WORKING: (SessionDied,)},
        when=lambda e: is_to_be_verified(e.record, SessionDied()) or is_to_be_requeued(e.record, SessionDied()),
    ),
    sometimes("work is merged", lambda e: e.state is State.MERGING),
)

RECALLABLE: Final = (
    State.PREPARING,
    State.WORKING,
    State.ORPHANED,
    State.INSPECTING,
    State.VERIFYING,
    State.PARKING,
)
"""In these what is taken from its owner is dropped; only a merge that has begun is finished."""

machine: Machine[Any] = Machine(
    "assignment",
    Assignment(),
    about="what a worker does with the task in its hands: prepare, work, verify, park or merge",
    rows=(
        row(State.IDLE, Asked, State.WANTING),
        row(State.WANTING, Assigned, State.MERGING, take, when=only_merges),
        row(State.WANTING, Assigned, State.PREPARING, take),
        row(State.PREPARING, CheckedOut, State.VERIFYING, when=only_verifies),
        row(State.PREPARING, CheckedOut, State.WORKING),
        row(State.PREPARING, CheckoutFailed, State.IDLE),
        row(State.WORKING, Prompted, State.WORKING, count),
        row(State.WORKING, WorkFinished, State.VERIFYING),
        row(State.WORKING, WorkFailed, State.IDLE),
        row(State.WORKING, SessionDied, State.ORPHANED, orphan, when=is_to_be_verified),
        row(State.WORKING, SessionDied, State.IDLE, when=is_to_be_requeued),
        row(State.ORPHANED, Buried, State.INSPECTING),
        row(State.INSPECTING, Inspected, State.VERIFYING, when=differs),
        row(State.INSPECTING, Inspected, State.IDLE),
        row(State.VERIFYING, Verified, State.PARKING, adopt, when=has_to_ask),
        row(State.VERIFYING, Verified, State.MERGING, adopt),
        row(State.VERIFYING, Rejected, State.IDLE),
        row(State.PARKING, Parked, State.IDLE),
        row(State.PARKING, ParkingFailed, State.IDLE),
        row(State.MERGING, Merged, State.IDLE),
        row(State.MERGING, Conflicted, State.IDLE),
        row((State.WANTING, State.PREPARING, State.WORKING), Dropped, State.IDLE),
        row(RECALLABLE, Recalled, State.IDLE, when=in_hand),
    ),
    during={
        State.PREPARING: does(check_out, last=(CheckedOut, CheckoutFailed)),
        State.INSPECTING: does(inspect, last=Inspected),
        State.VERIFYING: does(verify, last=(Verified, Rejected)),
        State.PARKING: does(park, last=(Parked, ParkingFailed)),
        State.MERGING: does(merge, last=(Merged, Conflicted)),
    },
    properties=PROMISES,
    rests=rests,
)
