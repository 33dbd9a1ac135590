"""Approval by a person, of finished work and of a plan. PENDING_APPROVAL is entered and left here only (E2).

The task's own table has no row into PENDING_APPROVAL and none out of it. Approval is an operation of its own, with a
table of its own over the same record. Finished work waits for a person. A grant makes it done again, a refusal fails
it. A grant needs a request, so an approval never completes a task in another state. Each of these steps is a transition
like any other: it has an actor, and an entry in the journal.

*Silence is a refusal* (E41): after ``APPROVAL_TIMEOUT_MS`` without an answer the task fails. A task that waits for a
person is *parked* (E3): it is not finished, and a run with parked tasks only is not complete.

A *plan* is decided as a whole or task by task (E43). A decision about the plan applies to all its undecided tasks, in
one step. If none is left, the plan was decided before.
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
"""The time in which a person must answer."""


class ApprovalRequested(Event, frozen=True):
    """The finished work takes effect only after a person agrees."""


class ApprovalGranted(Event, frozen=True):
    """A person agrees."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class ApprovalRefused(Event, frozen=True):
    """A person refuses."""

    reason: str = ""


class ApprovalExpired(Event, frozen=True):
    """No person has answered in time."""


def refuse(t: Task, e: ApprovalRefused) -> Step[Task, Never]:
    """Keep the reason, for the next attempt."""
    return Step(failed(t, e.reason, kept=0))


def expire(t: Task, _e: ApprovalExpired) -> Step[Task, Never]:
    """Keep that no answer came."""
    reason = f"not approved within {APPROVAL_TIMEOUT_MS // 1_000} s"
    return Step(failed(t, reason, kept=0))


ROWS: Final[tuple[Row[Task], ...]] = (
    row(State.DONE, ApprovalRequested, State.PENDING_APPROVAL),
    row(State.PENDING_APPROVAL, ApprovalGranted, State.DONE),
    row(State.PENDING_APPROVAL, ApprovalRefused, State.FAILED, refuse),
    row(State.PENDING_APPROVAL, ApprovalExpired, State.FAILED, expire),
)


def agreed_by_a_person(step: Transition) -> bool:
    """Work that waits for a person is done only by that person's grant (E2, E41)."""
    waited = step.before is not None and step.before.state is State.PENDING_APPROVAL and step.entered is not None
    expected = State.DONE if isinstance(step.event, ApprovalGranted) else State.FAILED
    return not waited or step.entered is expected


def waits_only_when_done(step: Transition) -> bool:
    """Only finished work waits for a person (E2)."""
    waits = step.entered is State.PENDING_APPROVAL and step.before is not None
    return not waits or (step.before is not None and step.before.state is State.DONE)


def grants_what_was_requested(step: Transition) -> bool:
    """A grant needs a request: it completes no task in another state (E2)."""
    return step.was.state is State.PENDING_APPROVAL


def keeps_the_reason_of_its_refusal(step: Transition) -> bool:
    """Refused work has failed for the person's reason, or for the missing answer (E41)."""
    t: Task = step.after.record
    match step.event:
        case ApprovalRefused(reason=reason):
            return t.reason == t.failure == reason
        case ApprovalExpired():
            return t.reason == t.failure and "approved within" in t.reason
        case _:
            return True


BY_GRANT: Final[Property[Any]] = always_step(
    "work that waits for a person is done by that person's grant only", agreed_by_a_person
)
"""The property that a fleet replaces: there, a changed verification also ends the wait."""

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    BY_GRANT,
    always_step("a grant needs a request", grants_what_was_requested, on=ApprovalGranted),
    always_step("only finished work waits for a person", waits_only_when_done),
    leads_where(
        "granted work is done, work that is refused or not answered in time is failed",
        {ApprovalGranted: (State.DONE,), ApprovalRefused: (State.FAILED,), ApprovalExpired: (State.FAILED,)},
    ),
    accepts("waiting work can be granted and refused", {State.PENDING_APPROVAL: (ApprovalGranted, ApprovalRefused)}),
    always_step("refused work has the reason", keeps_the_reason_of_its_refusal),
    lasts_only("ApprovalExpired", State.PENDING_APPROVAL),
    leads_to(
        "no work waits for a person for ever",
        lambda e: e.state is State.PENDING_APPROVAL,
        lambda e: e.state is not State.PENDING_APPROVAL,
    ),
    sometimes("a person is asked", lambda e: e.state is State.PENDING_APPROVAL),
    sometimes("the work is refused", lambda e: e.state is State.FAILED),
)


machine = Machine(
    "task-approval",
    Task(state=State.DONE),
    about="the approval of a finished task by a person",
    rows=ROWS,
    final={State.FAILED},
    detached=frozenset(State) - {State.DONE, State.PENDING_APPROVAL, State.FAILED},
    during={State.PENDING_APPROVAL: after(APPROVAL_TIMEOUT_MS, ApprovalExpired)},
    properties=PROPERTIES,
)


@lru_cache
def with_approval(tasks: Machine[Any], name: str) -> Machine[Any]:
    """Return a profile of a machine of tasks with the rows of the approval behind its own, built once."""
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
        about=f"{tasks.about}; with a person's approval",
    )


class PlanConflict(msgspec.Struct, frozen=True):
    """The decision does not fit the plan, and nothing has changed. ``tasks`` are those that refused it."""

    tasks: tuple[str, ...]
    reason: str


def decide_plan(
    tasks: Iterable[Task], decision: task.Approved | task.Declined, tasks_machine: Machine[Any] = task.machine
) -> Result[tuple[Task | None, ...], PlanConflict]:
    """Approve or decline a plan, all of it or nothing (E43).

    Return the new record of each task; None for a task that was decided before, which is unchanged.
    """
    every = tuple(tasks)
    steps = [tasks_machine.step(each, decision) if each.state is State.PLANNED else None for each in every]
    if every and not any(steps):
        return Failure(PlanConflict(tuple(each.id for each in every), "the plan was decided before"))
    refused = tuple(each.id for each, step in zip(every, steps, strict=True) if isinstance(step, IllegalTransition))
    if refused:
        return Failure(PlanConflict(refused, f"{type(decision).__name__} is refused"))
    return Success(tuple(step.record if isinstance(step, Step) else None for step in steps))
