"""What a plan change does to a task on a board: new terms while it is not over, or it is taken out of the plan.

New terms never move a task that somebody has in hand: what its owner does goes on. A task that is OPEN is looked at
anew. One that has failed for good is tried again if its new terms leave it a retry (``changing``). What was taken out
of the plan is BLOCKED and lacks its place there, so that a later change can put it back. One that rests after a failure
stays FAILED, and is not tried again.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.fleet.board.fleet_task.model import PLAN, FleetTask
from lifefold.core.kernel import STAY, Event, Property, Row, Step, Transition, always_step, replace, row
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Retried, State
from lifefold.core.policy.retry import retry_limit

TERMS: Final = (
    "prompt",
    "verify",
    "depends_on",
    "priority",
    "ordinal",
    "role",
    "files",
    "most_subtasks",
    "subtasks_ms",
    "level",
    "orphaned",
    "on_nothing",
    "approval_ms",
    "retry",
    "always_asks",
)
"""The fields that a plan says of a task, and that nothing else changes."""


KEYS: Final = {
    "prompt": "prompt",
    "verify": "verify",
    "depends_on": "depends_on",
    "priority": "priority",
    "max_retries": "max_retries",
    "role": "role",
    "files": "files",
    "asks": "approval",
    "most_subtasks": "max_subtasks",
    "subtasks_ms": "subtasks_timeout",
    "trust": "trust",
    "caps": "budget",
    "orphaned": "orphaned",
    "on_nothing": "on_nothing",
}
"""What the fields of a planned task are called in a fleet file."""

IN_HAND: Final = frozenset(
    {
        State.CLAIMED,
        State.IN_PROGRESS,
        State.ORPHANED,
        State.DONE,
        State.PENDING_APPROVAL,
        State.WAITING_FOR_SUBTASKS,
    }
)
"""In these a task is begun, and neither over nor given back."""


class Replanned(Event, frozen=True):
    """The plan says something else of the task: ``to`` is how a board would begin with it.

    ``retries`` is how often it may be tried again, if the plan says something else of that; retries that a person has
    granted are not added. ``what`` names what has changed, for people.
    """

    opaque: ClassVar[tuple[str, ...]] = ("what",)

    to: FleetTask = FleetTask()
    retries: int | None = None
    what: str = ""

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Replanned", ...]:
        """Return new terms that leave it as many retries, one more, and one less."""
        to = replace(FleetTask(), **{name: getattr(record, name) for name in TERMS})
        return cls(replace(to, verify=(("true",),))), cls(to, 2), cls(to, 0)


class Removed(Event, frozen=True):
    """The task is not in the plan any more."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


def replanned(t: FleetTask, e: Replanned) -> FleetTask:
    """Return a task with its new terms. A failure that cannot pass keeps the limit that it has set."""
    most = t.max_retries if e.retries is None else max(t.retries, e.retries)
    limit = most if t.limit == t.max_retries else min(t.limit, most)
    if t.removed:  # it was given up: how often it may be tried again is what its failure says of that
        limit = retry_limit(most, t.trouble, e.to.retry)
    asks = t.asks if e.to.always_asks is t.always_asks else e.to.always_asks
    terms = {name: getattr(e.to, name) for name in TERMS}
    lacks = "" if t.state is State.FAILED else t.lacks
    return replace(t, **terms, asks=asks, max_retries=most, limit=limit, lacks=lacks, removed=False)


def replan(t: FleetTask, e: Replanned) -> Step[FleetTask, Never]:
    """Take the new terms."""
    return Step(replanned(t, e))


def remove(t: FleetTask, e: Removed) -> Step[FleetTask, Never]:
    """Keep that it is not in the plan, and why."""
    return Step(replace(t, lacks=PLAN, reason=e.reason, removed=True))


def mark(t: FleetTask, _e: Removed) -> Step[FleetTask, Never]:
    """Keep that it is not in the plan; why it has failed is what is said of it."""
    return Step(replace(t, lacks=PLAN, removed=True))


def give_up(t: FleetTask, e: Removed) -> Step[FleetTask, Never]:
    """Keep that it is not in the plan; it is not tried again."""
    return Step(replace(t, lacks=PLAN, reason=e.reason, limit=t.retries, removed=True))


def comes_back(was: FleetTask, now: FleetTask) -> bool:
    """Tell whether a task that had failed for good has a retry left by its new terms."""
    return not task.retries_left(was, Retried()) and task.retries_left(now, Retried())


def is_to_be_tried_again(t: FleetTask, _e: Removed) -> bool:
    """It rests, and would be tried again."""
    return task.retries_left(t, Retried())


REMOVABLE: Final = (State.PLANNED, State.OPEN, State.FAILED, State.BLOCKED)
"""In these a task can be taken out of the plan: no agent has it in hand, and it is not done."""

_KEPT: Final = (
    State.PLANNED,
    State.CLAIMED,
    State.IN_PROGRESS,
    State.ORPHANED,
    State.DONE,
    State.PENDING_APPROVAL,
    State.WAITING_FOR_SUBTASKS,
    State.BLOCKED,
    State.FAILED,
)
"""In these new terms move nothing."""

ROWS: Final[tuple[Row[Any], ...]] = (
    row(State.OPEN, Replanned, State.OPEN, replan),
    row(_KEPT, Replanned, STAY, replan),
    row(State.PLANNED, Removed, State.CANCELLED, remove),
    row((State.OPEN, State.BLOCKED), Removed, State.BLOCKED, remove),
    row(State.FAILED, Removed, STAY, give_up, when=is_to_be_tried_again),
    row(State.FAILED, Removed, STAY, mark),
)


def keeps_what_is_under_way(step: Transition) -> bool:
    """New terms change nothing of who has the task, of its claim, and of how far it is."""
    if step.before is None or not isinstance(step.event, Replanned):
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    same = ("owner", "epoch", "stage", "result", "kept", "commit", "parts", "waits", "failure")
    return now.state is before.state and all(getattr(before, name) == getattr(now, name) for name in same)


def has_its_terms(step: Transition) -> bool:
    """A task has the terms of the last plan, and may be tried again as often as that says."""
    if step.before is None or not isinstance(step.event, Replanned):
        return True
    now: FleetTask = step.after.record
    asked, used = step.event.retries, step.before.record.retries
    most = step.before.record.max_retries if asked is None else max(asked, used)
    return now.max_retries == most and all(getattr(now, name) == getattr(step.event.to, name) for name in TERMS)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a plan change takes nothing from whoever has a task in hand", keeps_what_is_under_way),
    always_step("a task has the terms of the plan in force", has_its_terms),
)
