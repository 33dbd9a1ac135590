"""A person's word on finished work, and on a plan. PENDING_APPROVAL is entered and left here and nowhere else (E2).

The task's own table has no row into PENDING_APPROVAL and none out of it. Asking for approval is an operation of its
own, with a table of its own over the same record: what is done waits for a person; a grant makes it done again, a
refusal fails it. Nobody can grant what nobody has asked for, so that an approval never completes a task that is
somewhere else. Every one of these steps is a transition like any other: it has an actor, and stands in the journal.

*Silence is a refusal* (E41): after ``APPROVAL_TIMEOUT_MS`` without a word the task has failed. A task that waits for a
person is *parked* (E3): it is not finished, and a run that has only parked tasks left is not complete.

A *plan* is decided as a whole or task by task (E43). A decision about the plan takes all its tasks that nobody has
decided about yet, in one step; if there is none left, the plan was decided before.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, Final, Never

import msgspec
from returns.result import Failure, Result, Success

from lifefold.core.kernel import (
    Event,
    IllegalTransition,
    Machine,
    Property,
    Row,
    Step,
    Transition,
    accepts,
    after,
    always_step,
    leads_to,
    row,
    sometimes,
)
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.property_forms import lasts_only, leads_where
from lifefold.core.lifecycles.task import State, Task, failed

APPROVAL_TIMEOUT_MS: Final = 3_600_000
"""For how long a person is waited for."""


class ApprovalRequested(Event, frozen=True):
    """What is done shall take effect only when a person has agreed."""


class ApprovalGranted(Event, frozen=True):
    """A person agrees."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class ApprovalRefused(Event, frozen=True):
    """A person does not agree."""

    reason: str = ""


class ApprovalExpired(Event, frozen=True):
    """Nobody has said anything in time."""


def refuse(t: Task, e: ApprovalRefused) -> Step[Task, Never]:
    """Keep why, for the next attempt."""
    return Step(failed(t, e.reason, kept=0))


def lapse(t: Task, _e: ApprovalExpired) -> Step[Task, Never]:
    """Keep that nobody answered."""
    reason = f"nobody approved within {APPROVAL_TIMEOUT_MS // 1_000} s"
    return Step(failed(t, reason, kept=0))


ROWS: Final[tuple[Row[Task], ...]] = (
    row(State.DONE, ApprovalRequested, State.PENDING_APPROVAL),
    row(State.PENDING_APPROVAL, ApprovalGranted, State.DONE),
    row(State.PENDING_APPROVAL, ApprovalRefused, State.FAILED, refuse),
    row(State.PENDING_APPROVAL, ApprovalExpired, State.FAILED, lapse),
)


def agreed_by_a_person(step: Transition) -> bool:
    """Work that waits for a person takes effect by that person's word and by nothing else (E2, E41)."""
    waited = step.before is not None and step.before.state is State.PENDING_APPROVAL and step.entered is not None
    expected = State.DONE if isinstance(step.event, ApprovalGranted) else State.FAILED
    return not waited or step.entered is expected


def waits_only_when_done(step: Transition) -> bool:
    """A person is asked about what is done, and about nothing else (E2)."""
    asked = step.entered is State.PENDING_APPROVAL and step.before is not None
    return not asked or (step.before is not None and step.before.state is State.DONE)


def agrees_to_what_was_asked(step: Transition) -> bool:
    """Nobody agrees to what nobody has asked about: an agreement completes no task that is somewhere else (E2)."""
    if step.before is None or not isinstance(step.event, ApprovalGranted):
        return True
    return step.before.state is State.PENDING_APPROVAL


def says_why_it_was_refused(step: Transition) -> bool:
    """Work that a person has not agreed to has failed for what that person says, or for want of a word (E41)."""
    t: Task = step.after.record
    match step.event:
        case ApprovalRefused(reason=reason):
            return t.reason == t.failure == reason
        case ApprovalExpired():
            return t.reason == t.failure and t.reason.startswith("nobody approved")
        case _:
            return True


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("what waits for a person is done again by that person's word only", agreed_by_a_person),
    always_step("nobody agrees to what was not asked", agrees_to_what_was_asked),
    always_step("a person is asked about what is done only", waits_only_when_done),
    leads_where(
        "a person's word decides: agreed is done, refused or not said in time is failed",
        {
            ApprovalGranted: (State.DONE,),
            ApprovalRefused: (State.FAILED,),
            ApprovalExpired: (State.FAILED,),
        },
    ),
    accepts(
        "a person who is asked can agree, and can refuse", {State.PENDING_APPROVAL: (ApprovalGranted, ApprovalRefused)}
    ),
    always_step("work that is refused says why", says_why_it_was_refused),
    lasts_only("ApprovalExpired", State.PENDING_APPROVAL),
    leads_to(
        "nobody is waited for for ever",
        lambda e: e.state is State.PENDING_APPROVAL,
        lambda e: e.state is not State.PENDING_APPROVAL,
    ),
    sometimes("a person is asked", lambda e: e.state is State.PENDING_APPROVAL),
    sometimes("the work is refused", lambda e: e.state is State.FAILED),
)


machine = Machine(
    "task-approval",
    Task(state=State.DONE),
    about="what a person's approval does to a task that is done",
    rows=ROWS,
    final={State.FAILED},
    detached=frozenset(State) - {State.DONE, State.PENDING_APPROVAL, State.FAILED},
    during={State.PENDING_APPROVAL: after(APPROVAL_TIMEOUT_MS, ApprovalExpired)},
    properties=PROPERTIES,
)


@lru_cache
def with_approval(tasks: Machine[Any], name: str) -> Machine[Any]:
    """Return a profile of a machine of tasks that has the rows of the approval behind its own, built once."""
    during: dict[Any, Any] = {**tasks.during, **machine.during}
    postpone: dict[Any, Any] = {**tasks.postpone}
    return Machine(
        name,
        tasks.initial,
        rows=(*tasks.rows, *ROWS),
        final=tasks.final,
        during=during,
        postpone=postpone,
        served=tasks.served,
        invariants=tasks.invariants,
        properties=(*tasks.properties, *PROPERTIES),
        rests=tasks.rests,
        detached=tasks.detached - {State.PENDING_APPROVAL},
        about=f"{tasks.about}; and what a person's approval does to it",
    )


class PlanConflict(msgspec.Struct, frozen=True):
    """Nothing of the plan could be decided as asked; nothing has changed. ``tasks`` are those in the way."""

    tasks: tuple[str, ...]
    reason: str


def decide_plan(
    tasks: Iterable[Task],
    decision: task.Approved | task.Declined,
    tasks_machine: Machine[Any] = task.machine,
) -> Result[tuple[Task | None, ...], PlanConflict]:
    """Approve or decline a plan, all of it or nothing (E43).

    Return for each task what it becomes; None for one that was decided before, which stays as it is.
    """
    every = tuple(tasks)
    steps = [tasks_machine.step(each, decision) if each.state is State.PLANNED else None for each in every]
    if every and not any(steps):
        return Failure(PlanConflict(tuple(each.id for each in every), "the plan was decided before"))
    refused = tuple(each.id for each, step in zip(every, steps, strict=True) if isinstance(step, IllegalTransition))
    if refused:
        return Failure(PlanConflict(refused, f"{type(decision).__name__} is refused"))
    return Success(tuple(step.record if isinstance(step, Step) else None for step in steps))
