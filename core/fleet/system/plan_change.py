"""A change of the plan of a living fleet: accepted, and then in force as a whole or refused as a whole.

Each change is an entity of the board, ``change:1``, ``change:2`` and so on. It is created ACCEPTED: an operator has
seen it. The rules in ``plan_enforcement`` decide in the same step. A DRAFT is a change before its acceptance. A check
begins with one and accepts it at any time.

The plan in force is the plan that the log began with, with every change in force applied in order (``in_force``).
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Never

from lifefold.core.fleet.system.plan import Plan, TaskPlan
from lifefold.core.fleet.system.plan_difference import Change, TaskChange, changed
from lifefold.core.kernel import (
    Aggregate,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    always_step,
    anywhere,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on, leads_where

REF: Final = "change"


class State(AnyLifecycleState):
    """The four states of a plan change."""

    DRAFT = "Draft"
    ACCEPTED = "Accepted"
    IN_FORCE = "InForce"
    REFUSED = "Refused"


class ChangeAccepted(Event, frozen=True):
    """An operator accepts the change."""


class ChangeEnforced(Event, frozen=True):
    """Nothing of the change is in the way of the board: all of it is in force."""


class ChangeRefused(Event, frozen=True):
    """Something of the change cannot be: nothing of it is in force, for these ``reasons``."""

    reasons: tuple[str, ...] = ()


class PlanChange(Record, frozen=True):
    """What changes in the plan, and the fleet's ``rules`` afterwards: a plan without agents, tasks and services.

    ``after`` is the number of the change that was in force when this one was made; 0 is none. ``meaning`` is the fleet
    file's meaning afterwards, for the interpreter: core does not read it. ``partial``: the operator has accepted that
    it has no effect on tasks that are over.
    """

    opaque: ClassVar[tuple[str, ...]] = ("meaning",)

    state: State = State.DRAFT
    changes: tuple[Change, ...] = ()
    rules: Plan = Plan("", (), ())
    after: int = 0
    meaning: str = ""
    reasons: tuple[str, ...] = ()
    partial: bool = False


def refuse(c: PlanChange, e: ChangeRefused) -> Step[PlanChange, Never]:
    """Keep why."""
    return Step(replace(c, reasons=e.reasons))


def ref_of(number: int) -> str:
    """Return the reference of a change on the board; the first one has number 1."""
    return f"{REF}:{number}"


def number_of(ref: str) -> int:
    """Return the number of a change on the board."""
    return int(ref.partition(":")[2])


def changes_of(board: Aggregate) -> Iterator[tuple[int, PlanChange]]:
    """Yield all changes that a board has seen, by their numbers, oldest first."""
    numbers = sorted(number_of(ref) for ref in board.entities if ref.startswith(f"{REF}:"))
    for number in numbers:
        yield number, board.record(ref_of(number))


def last_in_force(board: Aggregate) -> int:
    """Return the number of the last change that is in force; 0 if there is none."""
    return max((number for number, each in changes_of(board) if each.state is State.IN_FORCE), default=0)


def in_force_since(board: Aggregate) -> tuple[int, int]:
    """Return the number of the last change that is in force, and since when it is; 0 and 0 if there is none."""
    number = last_in_force(board)
    return (number, board.entities[ref_of(number)].entered_ms) if number else (0, 0)


def in_force(plan: Plan, board: Aggregate) -> Plan:
    """Return the plan that is in force on a board whose log has begun with ``plan``."""
    for _, each in changes_of(board):
        if each.state is State.IN_FORCE:
            plan = changed(plan, each.changes)
    return plan


def meaning_of(board: Aggregate, begun: str) -> str:
    """Return the meaning in force of a fleet file whose log has begun with the meaning ``begun``."""
    number = last_in_force(board)
    found: PlanChange | None = board.record(ref_of(number)) if number else None
    return begun if found is None else found.meaning


def removed(board: Aggregate) -> frozenset[str]:
    """Return the tasks that were taken out of the plan and are not in it again: they count no more."""
    gone: dict[str, bool] = {}
    for _, each in changes_of(board):
        if each.state is State.IN_FORCE:
            gone |= {found.name: found.now is None for found in each.changes if isinstance(found, TaskChange)}
    return frozenset(name for name, is_gone in gone.items() if is_gone)


def terms_when_removed(board: Aggregate, name: str) -> TaskPlan | None:
    """Return the last terms of a task that a change has removed; None if none has."""
    found = None
    for _, each in changes_of(board):
        if each.state is State.IN_FORCE:
            taken_out = (of for of in each.changes if isinstance(of, TaskChange) and of.name == name and of.now is None)
            found = next((of.was for of in taken_out), found)
    return found


def refusal_has_reasons(step: Transition) -> bool:
    """A refused change has its obstacles, and a change never differs from what was accepted."""
    before: PlanChange = step.was
    reasons = step.event.reasons if isinstance(step.event, ChangeRefused) else ()
    return bool(step.after.record == replace(before, state=step.after.state, reasons=reasons))


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a plan change is in force as accepted, or has its obstacles", refusal_has_reasons, on=Event),
    leads_where(
        "an accepted plan change is decided once",
        {ChangeAccepted: (State.ACCEPTED,), ChangeEnforced: (State.IN_FORCE,), ChangeRefused: (State.REFUSED,)},
    ),
    *exits_on(State.DRAFT, ChangeAccepted),
    *exits_on(State.ACCEPTED, ChangeEnforced, ChangeRefused),
)

machine: Machine[Any] = Machine(
    REF,
    PlanChange(),
    about="a change of the plan while its fleet lives: accepted, and then in force or refused as a whole",
    rows=(
        row(State.DRAFT, ChangeAccepted, State.ACCEPTED),
        row(State.ACCEPTED, ChangeEnforced, State.IN_FORCE),
        row(State.ACCEPTED, ChangeRefused, State.REFUSED, refuse),
    ),
    final={State.IN_FORCE, State.REFUSED},
    properties=PROPERTIES,
    rests=anywhere,
)
