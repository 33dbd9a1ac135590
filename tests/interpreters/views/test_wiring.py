"""The wiring of a system has its rules, with their triggers and all of their actions."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pytest

from lifefold.core import fleet
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Create,
    Created,
    Dispatch,
    Rule,
    System,
    Transition,
    rule,
)
from lifefold.core.kernel.rule import RuleAction
from lifefold.core.lifecycles import task
from lifefold.effects import Tell
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.targets.fleet_plans import KINDS
from lifefold.interpreters.targets.simulation_targets import fleet_of
from lifefold.interpreters.views.wiring import Lead, Wire, wiring

WIRES: Final = {(each.kind, each.rule.on, each.rule.name): each for each in wiring(fleet.system)}

Seen = set[tuple[tuple[str, str, str], str, Lead]]


def watched(system: System, seen: Seen) -> System:
    """Return the system with rules that note the event they follow from, and what they ask for."""

    def noting(kind: str, each: Rule) -> Rule:
        def follow(aggregate: Aggregate, transition: Transition) -> Iterable[RuleAction]:
            for action in each.follow(aggregate, transition):
                event = type(transition.event).__name__
                seen.add(((kind, each.on, each.name), event, lead_of(kind, action)))
                yield action

        return Rule(each.name, each.on, follow, each.events, each.leaves, each.enters, each.beside)

    types = [
        AggregateType(
            of.kind,
            machines=of.machines.values(),
            rules=[noting(kind, each) for each in of.rules],
            views=of.views,
            commands=of.commands,
        )
        for kind, of in system.aggregates.items()
    ]
    return System(system.name, *types)


def lead_of(kind: str, action: RuleAction) -> Lead:
    """Return where an action leads."""
    match action:
        case Create(entity=entity):
            return Lead(kind, entity.partition(":")[0], Created.__name__)
        case Dispatch(entity=entity, event=event):
            return Lead(kind, entity.partition(":")[0], type(event).__name__)
        case Tell(aggregate=aggregate, entity=entity, event=event):
            return Lead(aggregate.partition("/")[0], entity.partition(":")[0], type(event).__name__)


def test_whatever_a_rule_asks_for_in_simulations_is_in_the_wiring() -> None:
    """Of fleets of all kinds: the event that it followed from, and the event that it led to."""
    seen: Seen = set()
    system = watched(fleet.system, seen)
    for kind in KINDS:
        target = fleet_of(3, 9, kind=kind)
        for seed in range(3):
            simulate(system, opening=target.opening, environment=target.environment, seed=seed)
    assert {wire for wire, _, lead in seen if lead not in WIRES[wire].leads} == set()
    assert {(wire, event) for wire, event, _ in seen if event not in WIRES[wire].events} == set()
    assert len({wire for wire, _, _ in seen}) > len(WIRES) / 3


def wire_of(follow: Callable[..., Any], **trigger: Any) -> Wire:
    """Return the wire of a rule on tasks in a small system."""
    of = AggregateType(
        "board",
        machines=(fleet_task.machine, worker_slot.machine),
        rules=(rule(fleet_task.machine, **trigger)(follow),),
    )
    (wire,) = wiring(System("small", of))
    return wire


def test_a_trigger_by_state_stands_for_the_events_of_its_rows() -> None:
    """The events of all rows that lead there, and no others."""
    wire = wire_of(_release, enters=task.State.CLOSED)
    into = {row.event.__name__ for row in fleet_task.machine.rows if row.target is task.State.CLOSED}
    assert set(wire.events) - {"Created"} == into
    assert not wire.is_unconditional


def _release(_board: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    yield from _released("worker_slot:a")


def _released(ref: str) -> Iterator[Dispatch]:
    yield Dispatch(ref, worker_slot.WorkerGone("it is over"))


def _probe(_board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    if _may(transition, task.Retried()):
        yield Dispatch(transition.entity, task.Unblocked())


def _may(transition: Transition, event: object) -> bool:
    return transition.event == event


@pytest.mark.parametrize(
    ("follow", "events"),
    [(_release, [("worker_slot", "WorkerGone")]), (_probe, [("task", "Unblocked")])],
    ids=["an event that another function makes", "an event that is only asked about"],
)
def test_a_rule_leads_to_the_events_that_it_makes(follow: Callable[..., Any], events: list[tuple[str, str]]) -> None:
    """Also in the functions that it calls; an event that a condition only compares is not asked for."""
    assert [(lead.machine, lead.event) for lead in wire_of(follow).leads] == events
