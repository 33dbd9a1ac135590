"""Healing gives a property what it relies on, and nothing else; and the same in every process."""

from typing import Any

import pytest

from lifefold.core.kernel import (
    START_MS,
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Event,
    Fairness,
    Machine,
    Property,
    Record,
    Step,
    System,
    Transition,
    does,
    leads_to,
    row,
    rule,
    weakly,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.effects import Activity, Tell
from lifefold.interpreters.campaign import campaign
from lifefold.interpreters.campaign.findings import first_of_each
from lifefold.interpreters.search.rule_error import ADDRESSED, ANSWERED
from lifefold.interpreters.simulate import Faults, Limits, hours, simulate
from lifefold.interpreters.simulate.faults import NAMES
from lifefold.interpreters.targets.simulation_targets import named, target

HANGS = Faults(dict.fromkeys(NAMES, 0.0) | {"hangs": 0.5}, swarm=False)
SHORT = Limits(until_ms=hours(1), healing_ms=hours(24))


class Bread(AnyLifecycleState):
    DOUGH = "Dough"
    DONE = "Done"


class Bake(Activity, frozen=True):
    """Bake it."""


class Smelled(Event, frozen=True):
    """It smells as if it were done."""


class Rang(Event, frozen=True):
    """The oven rings."""


class Browned(Event, frozen=True):
    """It is brown."""


class Cooked(Event, frozen=True):
    """Its core is hot."""


class Loaf(Record, frozen=True):
    state: Bread = Bread.DOUGH
    by: str = ""


ENDS: tuple[type[Event], ...] = (Smelled, Rang, Browned, Cooked)


def bake(_loaf: Loaf) -> Bake:
    return Bake()


def note(loaf: Loaf, event: Event) -> Step[Loaf, Any]:
    """Remember by what it was known."""
    return Step(Loaf(loaf.state, type(event).__name__))


def loaf(*given: Fairness) -> Machine[Loaf]:
    """Return a loaf that is promised to be done at last, given this."""
    done: Property[Any] = leads_to(
        "it is done", lambda e: e.state is Bread.DOUGH, lambda e: e.state is Bread.DONE, given=given
    )
    return Machine(
        "loaf",
        Loaf(),
        rows=tuple(row(Bread.DOUGH, each, Bread.DONE, note) for each in ENDS),
        during={Bread.DOUGH: does(bake, last=ENDS)},
        final={Bread.DONE},
        properties=(done,),
    )


def test_what_hangs_comes_to_an_end_only_if_a_property_relies_on_that() -> None:
    """A property that forgets to say so is broken, as the checker says; one that says so is kept."""
    said, forgotten = (
        [simulate(machine, seed=seed, faults=HANGS, limits=SHORT) for seed in range(20)]
        for machine in (loaf(*weakly(Bake)), loaf())
    )
    assert all(run.ok for run in said)
    assert {"hangs" in run.struck for run in said} == {True, False}
    assert [run.ok for run in forgotten] == ["hangs" not in run.struck for run in said]


@pytest.mark.parametrize("first", ENDS)
def test_of_the_ends_that_are_due_the_first_that_is_declared_comes(first: type[Event]) -> None:
    """Whatever the addresses of classes are in this process."""
    due = (first, *(each for each in ENDS if each is not first))
    machine = loaf(*weakly(*due))
    runs = (simulate(machine, seed=seed, faults=HANGS, limits=SHORT) for seed in range(20))
    hung = next(run for run in runs if "hangs" in run.struck)
    assert [type(each.envelope.event) for each in hung.entries][-1] is ENDS[0]


class Door(AnyLifecycleState):
    SHUT = "Shut"
    OPEN = "Open"


class Pushed(Event, frozen=True):
    """The door is pushed."""


class Pulled(Event, frozen=True):
    """The door is pulled."""


class Hall(Record, frozen=True):
    state: Door = Door.SHUT


door = Machine(
    "door",
    Hall(),
    rows=(
        row(Door.SHUT, Pushed, Door.OPEN),
        row(Door.SHUT, Pulled, Door.OPEN),
        row(Door.OPEN, Pulled, Door.SHUT),
    ),
)
OPENING = (("house", Envelope("door", Created(Hall()), 0)),)
OPERATORS = Faults(dict.fromkeys(NAMES, 0.0) | {"operators": 0.9}, swarm=False)


@rule(on=door)
def tell_the_neighbours(_house: Aggregate, transition: Transition) -> Any:
    """Send to an aggregate that is not open."""
    if transition.entered is Door.OPEN:
        yield Tell("house/next", "door", Pushed())


@rule(on=door)
def stumble(_house: Aggregate, transition: Transition) -> Any:
    """Fail, in one of two ways."""
    if transition.before is not None:
        raise KeyError("pushed") if isinstance(transition.event, Pushed) else ValueError("pulled")
    yield from ()


def house(*rules: Any) -> System:
    """Return a system of houses with these rules."""
    return System("street", AggregateType("house", machines=(door,), rules=rules))


def test_a_message_to_an_aggregate_that_was_never_begun_is_a_finding() -> None:
    """As in the check; it does not end the campaign."""
    run = simulate(house(tell_the_neighbours), opening=OPENING, seed=1, faults=OPERATORS, limits=SHORT)
    assert run.found is not None
    assert run.found.prop == ADDRESSED
    assert "house/next" in run.found.of


def test_different_errors_are_different_findings() -> None:
    """Rules that fail in two ways are shown in both."""
    street = target(house(stumble), OPENING)
    tally = campaign(street, range(10), faults=OPERATORS, limits=SHORT)
    assert {found.prop for _, found in tally.found} == {ANSWERED}
    findings = first_of_each(street, tally, OPERATORS, SHORT)
    errors = {each.run.found.of.split(": ")[1] for each in findings if each.run.found is not None}
    assert (errors, len(findings)) == ({"KeyError", "ValueError"}, 2)


def test_a_run_that_just_ends_gets_no_operator_command() -> None:
    """A missing command of an operator, such as an approval, is no input of the end of a run."""
    fleet = named("fleet-governed-2x3")
    runs = [
        simulate(fleet.subject, opening=fleet.opening, seed=seed, limits=Limits(until_ms=1_000, healing_ms=0))
        for seed in range(10)
    ]
    assert any(each.found is not None and "at last" in each.found.prop for each in runs)
    at_the_end = [entry for each in runs for entry in each.entries if entry.envelope.at_ms == START_MS + 1_000]
    assert not {type(each.envelope.event).__name__ for each in at_the_end} & {"PlanApproved", "LastTaskIn"}
