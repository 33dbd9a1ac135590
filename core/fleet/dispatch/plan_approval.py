"""The approval of a plan: an operator approves or declines it as a whole, in one step (E43).

A fleet whose plan needs approval begins with PLANNED tasks and one plan on its board. Tasks can be decided one by one,
too. A decision about the plan covers all tasks without a decision. A plan is decided once.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, cast

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.kernel import (
    Aggregate,
    Created,
    Dispatch,
    Event,
    Machine,
    Property,
    Record,
    Transition,
    always_step,
    row,
    rule,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.property_forms import exits_on, leads_where

REF: Final = "plan"


class State(AnyLifecycleState):
    """The three states of a plan."""

    PROPOSED = "Proposed"
    APPROVED = "Approved"
    DECLINED = "Declined"


class PlanApproved(Event, frozen=True):
    """An operator approves the plan."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class PlanDeclined(Event, frozen=True):
    """An operator declines the plan."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Proposal(Record, frozen=True):
    """A plan, and the decision about it."""

    state: State = State.PROPOSED


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a plan is decided once", lambda step: step.was.state is State.PROPOSED, on=Event),
    leads_where(
        "the state of a plan is its decision", {PlanApproved: (State.APPROVED,), PlanDeclined: (State.DECLINED,)}
    ),
    *exits_on(State.PROPOSED, PlanApproved, PlanDeclined),
)

machine = Machine(
    "plan",
    Proposal(),
    about="a plan that waits for a person: approved or declined, as a whole and once",
    rows=(row(State.PROPOSED, PlanApproved, State.APPROVED), row(State.PROPOSED, PlanDeclined, State.DECLINED)),
    final={State.APPROVED, State.DECLINED},
    properties=PROPERTIES,
)


@rule(on=fleet_task.machine, event=Created, enters=task.State.PLANNED)
def decide_late(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Apply the decision about the plan to a task that is added later."""
    plan = board.entities.get(REF)
    if plan is not None:
        if plan.state is State.APPROVED:
            yield Dispatch(transition.entity, task.Approved("the plan is approved"))
        elif plan.state is State.DECLINED:
            yield Dispatch(transition.entity, task.Declined("the plan is declined"))


@rule(on=machine, event=(PlanApproved, PlanDeclined))
def decide(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Apply the decision about the plan to all tasks without a decision.

    The most urgent tasks come first: waiting workers get the tasks that are approved first.
    """
    by = cast("PlanApproved | PlanDeclined", transition.event)
    decision = task.Approved(by.reason) if transition.entered is State.APPROVED else task.Declined(by.reason)
    for each in sorted(tasks_of(board), key=lambda each: (each.priority, each.ordinal, each.id)):
        if each.state is task.State.PLANNED:
            yield Dispatch(f"task:{each.id}", decision)
