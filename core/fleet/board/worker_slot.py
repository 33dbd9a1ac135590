"""The board's view of a worker: away, waiting for work, working, or gone. The board has one slot for each worker.

A slot is Working until the worker asks for work again. After a failed session that is later than the end of its claim.

In a fleet with trust gates (decision E34), a worker slot also has the track record of its agent. It has one success for
each closed task, and the judgements of operators. The formula is in ``core.policy.access``.
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
    """The worker asks for a task. Its sessions have ``spent`` this much since its last report, as far as known.

    ``silent``: one of these sessions has not reported its cost.
    """

    spent: Amounts = Amounts()
    silent: bool = False


class WorkLeft(Event, frozen=True):
    """The worker has no task, and asks for none now. ``spent`` and ``silent`` are as in ``WorkWanted``."""

    spent: Amounts = Amounts()
    silent: bool = False


class TaskGiven(Event, frozen=True):
    """The worker was given a task."""

    task: str = "T1"


class WorkerGone(Event, frozen=True):
    """The worker has stopped for good. ``spent`` and ``silent`` are as in ``WorkWanted``."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    spent: Amounts = Amounts()
    silent: bool = False


class Succeeded(Event, frozen=True):
    """A task of the agent was closed."""


class Judged(Event, frozen=True):
    """Base of an operator's judgement of an agent's trust, with its reason."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """Return one in a fleet with trust gates."""
        return () if record.trust is None else (cls(),)


class Promoted(Judged, frozen=True):
    """An operator promotes the agent by one level, and forgives its violations (E35)."""


class Demoted(Judged, frozen=True):
    """An operator demotes the agent by one level."""


class Violated(Judged, frozen=True):
    """An operator has found a violation by the agent: it is demoted, and the violation stays on record (E35)."""


class RestartWanted(Event, frozen=True):
    """The worker's agent has stopped because of errors, and asks for a restart."""


class RestartDone(Event, frozen=True):
    """The agent was restarted."""


class Reassigned(Event, frozen=True):
    """The plan changes the agent's roles, or whether its time limit is adaptive."""

    roles: tuple[str, ...] = ()
    adaptive: bool = False

    @classmethod
    def examples(cls) -> tuple["Reassigned", ...]:
        """Return all combinations of a role or none, adaptive or not."""
        return cls(("coder",), adaptive=True), cls(adaptive=True), cls(("coder",)), cls()


class Dismissed(Event, frozen=True):
    """The plan has removed the agent: it finishes its task, and gets no other one."""


class WorkerSlot(Record, frozen=True):
    """The board's view of a worker. ``task`` is its current task; tasks can require one of its ``roles``.

    ``trust`` is its track record; None in a fleet without trust gates, where every agent may do everything.
    ``adaptive``: earlier sessions decide the time limit of its sessions (E33). ``leaves``: a plan change removed it.
    ``account`` is the account of its model service; empty for none.
    """

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.AWAY
    task: str = ""
    reason: str = ""
    roles: tuple[str, ...] = ()
    trust: Trust | None = None
    adaptive: bool = False
    leaves: bool = False
    account: str = ""

    @property
    def level(self) -> AccessLevel:
        """The trust level of its agent; the highest one without trust gates."""
        return AccessLevel.ELEVATED if self.trust is None else self.trust.level

    def may_take(self, role: str, level: AccessLevel = AccessLevel.UNTRUSTED) -> bool:
        """Tell whether the worker may take a task that requires this role (or none) and this trust level."""
        return (not role or role in self.roles) and self.level >= level


def has_trust(s: WorkerSlot, _e: Succeeded | Judged) -> bool:
    """The fleet has trust gates."""
    return s.trust is not None


def give(s: WorkerSlot, e: TaskGiven) -> Step[WorkerSlot, Never]:
    """Record the task."""
    return Step(replace(s, task=e.task))


def empty(s: WorkerSlot, _e: WorkWanted | WorkLeft) -> Step[WorkerSlot, Never]:
    """Clear the task: the worker is done with it."""
    return Step(replace(s, task=""))


def leave(s: WorkerSlot, e: WorkerGone) -> Step[WorkerSlot, Never]:
    """Record the reason."""
    return Step(replace(s, task="", reason=e.reason))


def reassign(s: WorkerSlot, e: Reassigned) -> Step[WorkerSlot, Never]:
    """Take the roles of the new plan."""
    return Step(replace(s, roles=e.roles, adaptive=e.adaptive))


def dismiss(s: WorkerSlot, _e: Dismissed) -> Step[WorkerSlot, Never]:
    """Record that the worker leaves."""
    return Step(replace(s, leaves=True))


def earn(s: WorkerSlot, _e: Succeeded) -> Step[WorkerSlot, Never]:
    """Record a success."""
    return Step(replace(s, trust=succeeded(s.trust or Trust())))


def promote(s: WorkerSlot, _e: Promoted) -> Step[WorkerSlot, Never]:
    """Raise the trust by one level."""
    return Step(replace(s, trust=promoted(s.trust or Trust())))


def demote(s: WorkerSlot, _e: Demoted) -> Step[WorkerSlot, Never]:
    """Lower the trust by one level."""
    return Step(replace(s, trust=demoted(s.trust or Trust())))


def blame(s: WorkerSlot, _e: Violated) -> Step[WorkerSlot, Never]:
    """Record a violation."""
    return Step(replace(s, trust=violated(s.trust or Trust())))


def knows_the_task(step: Transition) -> bool:
    """A worker slot has the task of its worker while the worker works at it, and the reason when the worker is gone."""
    s: WorkerSlot = step.after.record
    match step.event:
        case TaskGiven(task=task):
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
    """An agent has the roles of the last plan, and nothing else changes them."""
    s: WorkerSlot = step.after.record
    if isinstance(step.event, Reassigned):
        return (s.roles, s.adaptive) == (step.event.roles, step.event.adaptive)
    return step.before is None or (s.roles, s.adaptive) == (step.before.record.roles, step.before.record.adaptive)


def leaves_for_good(step: Transition) -> bool:
    """An agent leaves when a plan change removes it, and stays removed."""
    left = step.before is not None and step.before.record.leaves
    return step.before is None or step.after.record.leaves is (left or isinstance(step.event, Dismissed))


def moves_by_the_formula(step: Transition) -> bool:
    """A level changes by one, for enough successes without a violation or by an operator's judgement (E34, E35)."""
    if step.was.trust is None:
        return True
    before: Trust = step.was.trust
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
    """Events about an agent's trust, its restarts or its plan leave the state as it is."""
    is_news = isinstance(step.event, Succeeded | Judged | RestartWanted | RestartDone | Reassigned | Dismissed)
    return step.before is None or not is_news or step.after.state is step.before.state


PRESENT: Final = (State.AWAY, State.WAITING, State.WORKING)
"""In these states the worker is not gone."""

_AT_REST_OR_WORK: Final = (State.AWAY, State.WORKING)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("the board knows each worker's task, and why a worker is gone", knows_the_task),
    always_step("an agent has the roles of the last plan", has_the_roles_of_the_plan),
    accepts("plan changes of an agent are accepted until it is gone", {PRESENT: (Reassigned, Dismissed)}),
    always_step("an agent dismissed by the plan leaves for good", leaves_for_good),
    always_step("an agent's trust level changes only by its formula", moves_by_the_formula, on=Event),
    always_step("news of trust, restarts or the plan moves no worker slot", stays_where_it_is),
    leads_where(
        "each report of a worker moves its slot to the matching state",
        {WorkWanted: (State.WAITING,), WorkLeft: (State.AWAY,), TaskGiven: (State.WORKING,), WorkerGone: (State.GONE,)},
    ),
    accepts(
        "requests for restarts are accepted from a worker that is away or working",
        {_AT_REST_OR_WORK: (RestartWanted, RestartDone)},
    ),
    accepts("a worker can report that it has no task", {_AT_REST_OR_WORK: (WorkLeft,)}),
    accepts(
        "changes of an agent's trust are accepted until it is gone",
        {PRESENT: (Succeeded, Promoted, Demoted, Violated)},
        when=lambda e: e.record.trust is not None,
    ),
    *exits_on(State.AWAY, WorkWanted, WorkerGone),
    *exits_on(State.WAITING, TaskGiven, WorkerGone),
    *exits_on(State.WORKING, WorkWanted, WorkLeft, WorkerGone),
)

machine = Machine(
    "worker_slot",
    WorkerSlot(),
    about="the board's view of a worker: away, waiting for work, working, gone",
    rows=(
        row(State.AWAY, WorkWanted, State.WAITING),
        row(State.WAITING, TaskGiven, State.WORKING, give),
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
