"""The effect of a plan change on a task: new terms, or removal from the plan.

New terms never move a task that a worker has: the owner goes on. An OPEN task is dispatched again by its new terms. A
task that has failed for good is tried again if its new terms leave it a retry (``core.fleet.system``).

Work that waits for its approval is verified again if its commands change. So no work is approved that only the former
commands have verified.

A removed task is BLOCKED with the plan as its blocker, so that a later change can put it back. A task that rests after
a failure stays FAILED, and is not tried again.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.fleet.board.fleet_task.model import PLAN, FleetTask
from lifefold.core.kernel import STAY, Event, Property, Row, Step, Transition, always_step, replace, row
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Retried, Stage, State
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
    "anew",
    "approval_ms",
    "retry",
    "always_needs_approval",
)
"""The fields of a task that only a plan sets."""

KEYS: Final = {
    "prompt": "prompt",
    "verify": "verify",
    "depends_on": "depends_on",
    "priority": "priority",
    "max_retries": "max_retries",
    "role": "role",
    "files": "files",
    "needs_approval": "approval",
    "most_subtasks": "max_subtasks",
    "subtasks_ms": "subtasks_timeout",
    "trust": "trust",
    "caps": "budget",
    "orphaned": "orphaned",
    "on_nothing": "on_nothing",
    "anew": "on_retry",
}
"""The keys of a fleet file, by the fields of a planned task."""

UNDER_WAY: Final = frozenset(
    {State.CLAIMED, State.IN_PROGRESS, State.ORPHANED, State.DONE, State.PENDING_APPROVAL, State.WAITING_FOR_SUBTASKS}
)
"""In these states a task has been begun, and is neither over nor given back."""


class Replanned(Event, frozen=True):
    """The plan has new terms for the task: ``to`` is the record that a new board would begin with.

    ``retries`` is the number of retries, if the plan changes it; granted retries are not added. ``what`` names the
    changed keys, for operators; it is empty for a task that only has another number, because of other tasks.
    """

    opaque: ClassVar[tuple[str, ...]] = ("what",)

    to: FleetTask = FleetTask()
    retries: int | None = None
    what: str = ""

    @classmethod
    def examples(cls) -> tuple["Replanned", ...]:
        """Return terms without commands, and with one."""
        return cls(), cls(FleetTask(verify=(("true",),)))

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Replanned", ...]:
        """Return new terms with the same retries, with two, and with none."""
        to = replace(FleetTask(), **{name: getattr(record, name) for name in TERMS})
        return cls(replace(to, verify=(("true",),))), cls(to, 2), cls(to, 0)


class Removed(Event, frozen=True):
    """The task is no longer in the plan."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


def replanned(t: FleetTask, e: Replanned) -> FleetTask:
    """Return a task with its new terms. A permanent failure keeps the limit that it has set."""
    most = t.max_retries if e.retries is None else max(t.retries, e.retries)
    limit = most if t.limit == t.max_retries else min(t.limit, most)
    if t.removed:  # the removal had set the limit: its failure decides again
        limit = retry_limit(most, t.trouble, e.to.retry)
    asks = t.needs_approval if e.to.always_needs_approval is t.always_needs_approval else e.to.always_needs_approval
    terms = {name: getattr(e.to, name) for name in TERMS}
    lacks = "" if t.state is State.FAILED else t.blocked_by
    return replace(t, **terms, needs_approval=asks, max_retries=most, limit=limit, blocked_by=lacks, removed=False)


def replan(t: FleetTask, e: Replanned) -> Step[FleetTask, Never]:
    """Take the new terms."""
    return Step(replanned(t, e))


def has_other_commands(t: FleetTask, e: Replanned) -> bool:
    """The new terms have commands, and not those that have verified the work."""
    return bool(e.to.verify) and e.to.verify != t.verify


def verify_again(t: FleetTask, e: Replanned) -> Step[FleetTask, Never]:
    """Take the new terms, and leave the verification of the kept work to do."""
    return Step(replace(replanned(t, e), stage=Stage.REVERIFY))


def remove(t: FleetTask, e: Removed) -> Step[FleetTask, Never]:
    """Record the removal, with its reason."""
    return Step(replace(t, blocked_by=PLAN, reason=e.reason, removed=True))


def mark(t: FleetTask, _e: Removed) -> Step[FleetTask, Never]:
    """Record the removal; the reason of its failure stays."""
    return Step(replace(t, blocked_by=PLAN, removed=True))


def give_up(t: FleetTask, e: Removed) -> Step[FleetTask, Never]:
    """Record the removal; the task is not tried again."""
    return Step(replace(t, blocked_by=PLAN, reason=e.reason, limit=t.retries, removed=True))


def comes_back(was: FleetTask, now: FleetTask) -> bool:
    """Tell whether new terms give a retry to a task that had none left."""
    return not task.retries_left(was, Retried()) and task.retries_left(now, Retried())


def is_to_be_tried_again(t: FleetTask, _e: Removed) -> bool:
    """The task has a retry left."""
    return task.retries_left(t, Retried())


REMOVABLE: Final = (State.PLANNED, State.OPEN, State.FAILED, State.BLOCKED)
"""In these states a task can be removed from the plan: no agent has it, and it is not done."""

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
"""In these states new terms move nothing, except work that is verified again."""

ROWS: Final[tuple[Row[Any], ...]] = (
    row(State.OPEN, Replanned, State.OPEN, replan),
    row(State.PENDING_APPROVAL, Replanned, State.DONE, verify_again, when=has_other_commands),
    row(_KEPT, Replanned, STAY, replan),
    row(State.PLANNED, Removed, State.CANCELLED, remove),
    row((State.OPEN, State.BLOCKED), Removed, State.BLOCKED, remove),
    row(State.FAILED, Removed, STAY, give_up, when=is_to_be_tried_again),
    row(State.FAILED, Removed, STAY, mark),
)


def keeps_what_is_under_way(step: Transition) -> bool:
    """New terms leave the owner, the claim and the progress of a task as they are.

    Only work that waits for its approval is verified again, by other commands.
    """
    if not isinstance(step.event, Replanned):
        return True
    before: FleetTask = step.was
    now: FleetTask = step.after.record
    same = ("owner", "epoch", "result", "collected", "kept", "commit", "parts", "waits_for_parts", "failure")
    is_verified_again = before.state is State.PENDING_APPROVAL and step.event.to.verify not in {(), before.verify}
    place = (State.DONE, Stage.REVERIFY) if is_verified_again else (before.state, before.stage)
    return (now.state, now.stage) == place and all(getattr(before, name) == getattr(now, name) for name in same)


def has_its_terms(step: Transition) -> bool:
    """A task has the terms of the last plan, with its number of retries."""
    if not isinstance(step.event, Replanned):
        return True
    now: FleetTask = step.after.record
    planned, used = step.event.retries, step.was.retries
    most = step.was.max_retries if planned is None else max(planned, used)
    return now.max_retries == most and all(getattr(now, name) == getattr(step.event.to, name) for name in TERMS)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a plan change takes no task from its owner", keeps_what_is_under_way, on=Event),
    always_step("a task has the terms of the plan in force", has_its_terms, on=Event),
)
