"""The strategies: what is drawn is legal, everything that can happen is drawn, and examples become small."""

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import kiln
import oven
from lifefold.core.kernel import (
    ActivityEnded,
    Created,
    Envelope,
    Event,
    Machine,
    Reaction,
    Refusal,
    RunnerRecovered,
    State,
    TimerFired,
    advance,
    alone,
    possible_of,
    react,
)
from lifefold.interpreters.testing import Trace, events, systems, traces
from random_machines import machines

QUIET: Final = settings(max_examples=500, database=None, deadline=None)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), machine=machines())
def test_a_trace_is_legal_and_time_never_goes_back(data: st.DataObject, machine: Machine[Any]) -> None:
    """Of any machine: every step is what ``react`` makes of it, from the record on that the machine begins with."""
    trace = data.draw(traces(machine, max_size=10))
    system, opening = alone(machine)
    aggregate = system.aggregates[machine.name].start(machine.name)
    assert trace.steps[0].envelope == opening[machine.name]
    for taken in trace.steps:
        outcome = react(system.aggregates[machine.name], aggregate, taken.envelope)
        assert isinstance(outcome, Reaction)
        assert taken.outcome == outcome
        aggregate = outcome.aggregate
    times = [taken.envelope.at_ms for taken in trace.steps]
    assert times == sorted(times)
    assert trace.entity == aggregate.entities[machine.name]


@given(data=st.data(), trace=traces(oven.machine, max_size=6))
def test_an_event_is_one_that_the_entity_takes(data: st.DataObject, trace: Trace) -> None:
    """Unless what it refuses is asked for, too."""
    entity, now_ms = trace.entity, trace.steps[-1].envelope.at_ms
    may_come = [each.envelope for each in possible_of(oven.machine, entity, now_ms)]
    taken = [each for each in may_come if not isinstance(advance(oven.machine, entity, each), Refusal)]
    if taken:
        assert data.draw(events(oven.machine, entity, now_ms=now_ms)) in taken
        assert data.draw(events(oven.machine, entity, now_ms=now_ms, refused=True)) in may_come


def test_the_first_events_are_those_of_an_entity_that_has_just_begun() -> None:
    """A cold oven is lit, has visitors, or is scrapped."""
    seen: set[str] = set()

    @settings(max_examples=100)
    @given(events(oven.machine))
    def look(envelope: Envelope) -> None:
        seen.add(type(envelope.event).__name__)

    look()
    assert seen == {"Lit", "Knocked", "Scrapped"}


def test_everything_that_can_happen_is_drawn() -> None:
    """States, timers, confirmations, a runner that comes back, events that wait, and time."""
    states: set[State] = set()
    kinds: set[type[Event]] = set()
    most = {"postponed": 0, "at_ms": 0, "inputs": 0}

    @settings(max_examples=200, database=None)
    @given(traces(oven.machine))
    def look(trace: Trace) -> None:
        states.add(trace.entity.state)
        kinds.update(type(taken.envelope.event) for taken in trace.steps)
        found = {"postponed": len(trace.entity.postponed), "at_ms": trace.steps[-1].envelope.at_ms}
        for name, number in (*found.items(), ("inputs", len(trace.steps) - 1)):
            most[name] = max(most[name], number)

    look()
    assert states == set(oven.machine.states)
    rare = {oven.Warned, oven.Swept, oven.Cooled}
    assert kinds | rare == {*oven.machine.events, Created, TimerFired, ActivityEnded, RunnerRecovered}
    assert (most["postponed"] > 0, most["at_ms"] > 50_000, most["inputs"]) == (True, True, 20)


def test_a_trace_becomes_as_short_as_it_can_be() -> None:
    """Two loaves need two fires: five inputs, each as soon as may be."""
    trace = find(traces(oven.machine), lambda each: each.entity.record.loaves == 2, settings=QUIET)
    said = [type(taken.envelope.event).__name__ for taken in trace.steps[1:]]
    assert (len(said), said.count("Lit"), said.count("Baked")) == (5, 2, 2)


def is_twice(trace: Trace) -> bool:
    """Tell whether a message has come again."""
    return any(isinstance(taken.outcome, Refusal) and taken.outcome.kind == "duplicate" for taken in trace.steps)


def is_late(trace: Trace) -> bool:
    """Tell whether something has happened while a message was under way."""
    tallies = [taken.aggregate for taken in trace.steps[2:]]
    return len(trace.in_flight) >= 2 and len(tallies) > 3


@pytest.mark.parametrize("wanted", [is_twice, is_late], ids=["twice", "late"])
def test_messages_come_late_and_twice(wanted: Any) -> None:
    """Each run of a system is legal but for what comes again, which its receiver refuses."""
    trace = find(systems(kiln.system, kiln.opened()), wanted, settings=settings(QUIET, phases=[Phase.generate]))
    assert wanted(trace)
    assert set(trace.system_state.aggregates) == {"tally", "kiln/a"}


@given(systems(kiln.system, list(kiln.opened(0, "a", "b")), max_size=25))
def test_what_is_told_is_counted_once_or_is_under_way(trace: Trace) -> None:
    """A law of the pottery, over whole runs of it."""
    told = sum(aggregate.sent.get("tally", 0) for aggregate in trace.aggregates.values())
    heard = sum(trace.aggregates["tally"].received.values())
    assert told == heard + len(trace.in_flight)
    refused = [taken.outcome.kind for taken in trace.steps if isinstance(taken.outcome, Refusal)]
    assert set(refused) <= {"duplicate"}


def test_a_strategy_of_entities_is_no_entity() -> None:
    """It is said what is accepted; and a class is no machine."""
    strategy: Any = traces(kiln.kiln).map(lambda trace: trace.entity)
    with pytest.raises(
        TypeError, match=r"Strategy is given; accepted: an Entity, such as trace\.entity; within a strategy"
    ):
        events(kiln.kiln, strategy)
    record: Any = kiln.Kiln
    with pytest.raises(TypeError, match=r"Kiln is a Record class; accepted: a Machine$"):
        events(record)
