"""A plan that waits for a person: approved or declined as a whole, in one step (E43).

A fleet whose plan has to be approved begins with all tasks PLANNED and with one of these on its board. Tasks can be
decided one by one, too; a decision about the plan takes all that nobody has decided about yet. It is decided once.
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
    """A person lets the plan be carried out."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class PlanDeclined(Event, frozen=True):
    """A person does not want the plan."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Proposal(Record, frozen=True):
    """A plan, and what has become of it."""

    state: State = State.PROPOSED


def is_decided_once(step: Transition) -> bool:
    """A plan that is decided is not decided again."""
    return step.before is None or step.before.state is State.PROPOSED


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a plan is decided once", is_decided_once),
    leads_where(
        "the state of a plan is its decision",
        {PlanApproved: (State.APPROVED,), PlanDeclined: (State.DECLINED,)},
    ),
    *exits_on(State.PROPOSED, PlanApproved, PlanDeclined),
)

machine = Machine(
    "plan",
    Proposal(),
    about="a plan that waits for a person: approved or declined, as a whole and once",
    rows=(
        row(State.PROPOSED, PlanApproved, State.APPROVED),
        row(State.PROPOSED, PlanDeclined, State.DECLINED),
    ),
    final={State.APPROVED, State.DECLINED},
    properties=PROPERTIES,
)


@rule(on=fleet_task.machine, event=Created, enters=task.State.PLANNED)
def decide_late(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What was decided of the plan is decided of a task that comes to it afterwards."""
    plan = board.entities.get(REF)
    if plan is not None:
        if plan.state is State.APPROVED:
            yield Dispatch(transition.entity, task.Approved("the plan is approved"))
        elif plan.state is State.DECLINED:
            yield Dispatch(transition.entity, task.Declined("the plan is declined"))


@rule(on=machine, event=(PlanApproved, PlanDeclined))
def decide(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What is decided of the plan is decided of all its tasks that nobody has decided about yet.

    The most urgent first: whoever waits for work is given what is approved first.
    """
    by = cast("PlanApproved | PlanDeclined", transition.event)
    decision = task.Approved(by.reason) if transition.entered is State.APPROVED else task.Declined(by.reason)
    for each in sorted(tasks_of(board), key=lambda each: (each.priority, each.ordinal, each.id)):
        if each.state is task.State.PLANNED:
            yield Dispatch(f"task:{each.id}", decision)
