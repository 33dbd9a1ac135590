"""What the board knows of a worker: whether it wants work, has work, or is gone. One worker slot per worker, on the board.

In a fleet that gates what its agents may do (E34), a worker slot has the track record of its agent, too: a success for
every task of its that was closed, and what people say of it. The formula stands in ``core.policy.access``.
"""

from typing import Any, ClassVar, Final, Never, Self

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always_step,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.property_forms import exits_on, leads_where
from lifefold.core.policy.access import SUCCESSES, AccessLevel, Trust, demoted, promoted, succeeded, violated


class State(AnyLifecycleState):
    """The four states of a worker slot."""

    AWAY = "Away"
    WAITING = "Waiting"
    WORKING = "Working"
    GONE = "Gone"


class WorkWanted(Event, frozen=True):
    """The worker has nothing to do. Its sessions have ``spent`` so much since it has said so last.

    That is what is known of; ``silent``: one of them has not said what it has cost.
    """

    spent: Amounts = Amounts()
    silent: bool = False


class WorkLeft(Event, frozen=True):
    """The worker has nothing in hand, and wants nothing for now. Its sessions have ``spent`` so much, as above."""

    spent: Amounts = Amounts()
    silent: bool = False


class Seated(Event, frozen=True):
    """The worker was given a task."""

    task: str = "T1"


class WorkerGone(Event, frozen=True):
    """The worker has stopped for good. Its sessions have ``spent`` so much since it has said so last, or more."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    spent: Amounts = Amounts()
    silent: bool = False


class Succeeded(Event, frozen=True):
    """A task that the agent has done was closed."""


class Judged(Event, frozen=True):
    """Base of what a person says of an agent's trust, and why."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """Return one where trust counts."""
        return () if record.trust is None else (cls(),)


class Promoted(Judged, frozen=True):
    """A person promotes the agent by one level, and forgives its violations (E35)."""


class Demoted(Judged, frozen=True):
    """A person demotes the agent by one level."""


class Violated(Judged, frozen=True):
    """A person has found that the agent did what it must not: that demotes it, and stays on record (E35)."""


class RestartWanted(Event, frozen=True):
    """The worker's agent has stopped by its errors, and would be restarted."""


class RestartDone(Event, frozen=True):
    """It was restarted."""


class Reassigned(Event, frozen=True):
    """The plan gives the agent other roles, or says otherwise how long its sessions may take."""

    roles: tuple[str, ...] = ()
    adaptive: bool = False

    @classmethod
    def examples(cls) -> tuple["Reassigned", ...]:
        """Return a role and none, so that neither part of it says what the other one is."""
        return cls(("coder",), adaptive=True), cls(adaptive=True), cls(("coder",)), cls()


class Dismissed(Event, frozen=True):
    """The plan has the agent no more: it finishes what it has in hand, and is given nothing more."""


class WorkerSlot(Record, frozen=True):
    """A worker, as the board sees it. ``task`` is the one it was given last; ``roles`` are what tasks may ask for.

    ``trust`` is its track record; None in a fleet that gates nothing, where everybody may do everything. ``adaptive``:
    how long its sessions may take is said by how long others took (E33). ``leaves``: a plan change has removed it.
    """

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.AWAY
    task: str = ""
    reason: str = ""
    roles: tuple[str, ...] = ()
    trust: Trust | None = None
    adaptive: bool = False
    leaves: bool = False

    @property
    def level(self) -> AccessLevel:
        """How far it is trusted; as far as can be where that does not count."""
        return AccessLevel.ELEVATED if self.trust is None else self.trust.level

    def may_take(self, role: str, level: AccessLevel = AccessLevel.UNTRUSTED) -> bool:
        """Tell whether the worker may take a task that asks for this role, or for none, and for this level."""
        return (not role or role in self.roles) and self.level >= level


def has_trust(s: WorkerSlot, _e: Succeeded | Judged) -> bool:
    """The fleet gates what its agents may do."""
    return s.trust is not None


def give(s: WorkerSlot, e: Seated) -> Step[WorkerSlot, Never]:
    """Remember the task."""
    return Step(replace(s, task=e.task))


def empty(s: WorkerSlot, _e: WorkWanted | WorkLeft) -> Step[WorkerSlot, Never]:
    """Forget the task: the worker is done with it."""
    return Step(replace(s, task=""))


def leave(s: WorkerSlot, e: WorkerGone) -> Step[WorkerSlot, Never]:
    """Remember why."""
    return Step(replace(s, task="", reason=e.reason))


def reassign(s: WorkerSlot, e: Reassigned) -> Step[WorkerSlot, Never]:
    """Take the roles that the plan gives it now."""
    return Step(replace(s, roles=e.roles, adaptive=e.adaptive))


def dismiss(s: WorkerSlot, _e: Dismissed) -> Step[WorkerSlot, Never]:
    """Remember that it leaves."""
    return Step(replace(s, leaves=True))


def earn(s: WorkerSlot, _e: Succeeded) -> Step[WorkerSlot, Never]:
    """Record a success."""
    return Step(replace(s, trust=succeeded(s.trust or Trust())))


def promote(s: WorkerSlot, _e: Promoted) -> Step[WorkerSlot, Never]:
    """Trust it by one level more."""
    return Step(replace(s, trust=promoted(s.trust or Trust())))


def demote(s: WorkerSlot, _e: Demoted) -> Step[WorkerSlot, Never]:
    """Trust it by one level less."""
    return Step(replace(s, trust=demoted(s.trust or Trust())))


def blame(s: WorkerSlot, _e: Violated) -> Step[WorkerSlot, Never]:
    """Record a violation."""
    return Step(replace(s, trust=violated(s.trust or Trust())))


def knows_the_task(step: Transition) -> bool:
    """A worker slot has the task that was given to its worker as long as the worker is at it, and why the worker has gone."""
    s: WorkerSlot = step.after.record
    match step.event:
        case Seated(task=task):
            return s.task == task
        case WorkerGone(reason=reason):
            return (s.task, s.reason) == ("", reason)
        case Succeeded() | Judged() | Reassigned() | Dismissed():
            return step.before is not None and s.task == step.before.record.task
        case RestartWanted() | RestartDone():
            return step.before is None or s == step.before.record
        case _:
            return not s.task


def has_the_roles_of_the_plan(step: Transition) -> bool:
    """An agent has the roles that the plan gave it last, and nothing else gives it any."""
    s: WorkerSlot = step.after.record
    if isinstance(step.event, Reassigned):
        return (s.roles, s.adaptive) == (step.event.roles, step.event.adaptive)
    return step.before is None or (s.roles, s.adaptive) == (step.before.record.roles, step.before.record.adaptive)


def leaves_for_good(step: Transition) -> bool:
    """An agent leaves when the plan has it no more, and is not taken back."""
    left = step.before is not None and step.before.record.leaves
    return step.before is None or step.after.record.leaves is (left or isinstance(step.event, Dismissed))


def moves_by_the_formula(step: Transition) -> bool:
    """A level rises and falls by one: by enough successes without a violation, or by a person's word (E34, E35)."""
    if step.before is None or step.before.record.trust is None:
        return True
    before: Trust = step.before.record.trust
    now: Trust = step.after.record.trust
    moved = now.level - before.level
    match step.event:
        case Succeeded():
            earned = not before.violations and now.successes >= SUCCESSES[now.level]
            return now.successes == before.successes + 1 and moved in (0, 1) and (not moved or earned)
        case Promoted():
            return now.violations == 0 and now.level == min(before.level + 1, AccessLevel.ELEVATED)
        case Demoted() | Violated():
            violations = before.violations + isinstance(step.event, Violated)
            return now.violations == violations and now.level == max(before.level - 1, AccessLevel.UNTRUSTED)
        case _:
            return now == before


def stays_where_it_is(step: Transition) -> bool:
    """What is said of an agent's trust, of its restarts, or of its plan changes nothing of where it is."""
    is_said = isinstance(step.event, Succeeded | Judged | RestartWanted | RestartDone | Reassigned | Dismissed)
    return step.before is None or not is_said or step.after.state is step.before.state


PRESENT: Final = (State.AWAY, State.WAITING, State.WORKING)
"""In these a worker is there."""

_AT_REST_OR_WORK: Final = (State.AWAY, State.WORKING)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("the board knows who is at which task, and why somebody has gone", knows_the_task),
    always_step("an agent has the roles that the plan gave it last", has_the_roles_of_the_plan),
    accepts("what the plan says of an agent is heard while it is there", {PRESENT: (Reassigned, Dismissed)}),
    always_step("an agent leaves when the plan has it no more, and is not taken back", leaves_for_good),
    always_step("an agent's level moves by its formula only", moves_by_the_formula),
    always_step("nobody goes anywhere by what is said of its trust, its restarts, or its plan", stays_where_it_is),
    leads_where(
        "whoever wants work waits, whoever has a task works, and whoever wants none, or goes, is not there for any",
        {
            WorkWanted: (State.WAITING,),
            WorkLeft: (State.AWAY,),
            Seated: (State.WORKING,),
            WorkerGone: (State.GONE,),
        },
    ),
    accepts("an agent that fell is heard", {_AT_REST_OR_WORK: (RestartWanted, RestartDone)}),
    accepts("that nothing is in hand is heard", {_AT_REST_OR_WORK: (WorkLeft,)}),
    accepts(
        "whatever is said of an agent's trust is heard while it is there",
        {PRESENT: (Succeeded, Promoted, Demoted, Violated)},
        when=lambda e: e.record.trust is not None,
    ),
    *exits_on(State.AWAY, WorkWanted, WorkerGone),
    *exits_on(State.WAITING, Seated, WorkerGone),
    *exits_on(State.WORKING, WorkWanted, WorkLeft, WorkerGone),
)

machine = Machine(
    "worker_slot",
    WorkerSlot(),
    about="the board's view of a worker: away, waiting for work, working, gone",
    rows=(
        row(State.AWAY, WorkWanted, State.WAITING),
        row(State.WAITING, Seated, State.WORKING, give),
        row(State.WORKING, WorkWanted, State.WAITING, empty),
        row(_AT_REST_OR_WORK, WorkLeft, State.AWAY, empty),
        row(_AT_REST_OR_WORK, RestartWanted, STAY),
        row(_AT_REST_OR_WORK, RestartDone, STAY),
        row(PRESENT, WorkerGone, State.GONE, leave),
        row(PRESENT, Reassigned, STAY, reassign),
        row(PRESENT, Dismissed, STAY, dismiss),
        row(PRESENT, Succeeded, STAY, earn, when=has_trust),
        row(PRESENT, Promoted, STAY, promote, when=has_trust),
        row(PRESENT, Demoted, STAY, demote, when=has_trust),
        row(PRESENT, Violated, STAY, blame, when=has_trust),
    ),
    final={State.GONE},
    properties=PROPERTIES,
)
