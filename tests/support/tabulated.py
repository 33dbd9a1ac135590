"""All that a machine does in every state that it can reach, as a table: what another machine must do to be the same.

Two machines are one if they begin alike and no input, in any state that the first can reach, tells them apart: not by
where it leads, not by what it asks for, and not by whether it is taken. Then they reach the same states, and whatever
is promised of what happens holds of both or of neither.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from declared import rebuilt
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Envelope,
    Event,
    IllegalTransition,
    Machine,
    Reaction,
    Record,
    Step,
    System,
    alone,
    possible,
    react,
)
from lifefold.interpreters.check import Bounds
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import explore
from lifefold.interpreters.search.product_system import ProductSystem

Answer = Step[Any, Any] | IllegalTransition
"""What a reducer says."""


class Tabulated:
    """A machine as it is in every state within the bounds of a question."""

    def __init__(self, machine: Machine[Any], bounds: Bounds) -> None:
        """Look at every state once, and take down what the reducer is asked there, and what it says."""
        self.machine: Final = machine
        self.calls: Final[dict[tuple[Record, Event], Answer]] = {}
        system, self._opening = alone(_overheard(machine, self.calls))
        product_system = ProductSystem(system, tuple(self._opening.items()), Judge(system), bounds)
        explore(product_system)
        self.states: Final[tuple[Aggregate, ...]] = tuple(product_system.components[0].states)
        self.asked: Final[dict[type[Event], list[tuple[Any, Any]]]] = {}
        """What the reducer is asked, by the type of the event: record and event."""
        for record, event in self.calls:
            self.asked.setdefault(type(event), []).append((record, event))

    def is_same(self, other: Machine[Any]) -> bool:
        """Tell whether another machine does the same in all of these states."""
        if _surroundings(other) == _surroundings(self.machine) and set(other.commands) == set(self.machine.commands):
            return all(_alike(other, *asked, said) for asked, said in self.calls.items())
        ours, theirs = _kind(self.machine), _kind(other)
        begin = self.machine.name, self._opening[self.machine.name]
        births = [react(each, each.start(begin[0]), begin[1]) for each in (ours, theirs)]
        return births[0] == births[1] and all(_react_alike(ours, theirs, each) for each in self.states)

    def takes_less(self, other: Machine[Any]) -> bool:
        """Tell whether another machine does the same or nothing: all that is different is what it refuses."""
        if _surroundings(other) != _surroundings(self.machine) or set(other.commands) - set(self.machine.commands):
            return False
        answers = ((other.step(*asked), said) for asked, said in self.calls.items())
        return all(answer == said or isinstance(answer, IllegalTransition) for answer, said in answers)


def _overheard(machine: Machine[Any], calls: dict[tuple[Record, Event], Answer]) -> Machine[Any]:
    """Return a machine that promises nothing and takes down what it is asked."""
    copy = rebuilt(machine, invariants=(), properties=())
    step = copy.step

    def overhear(record: Record, event: Event) -> Answer:
        said = calls[record, event] = step(record, event)
        return said

    copy.step = overhear
    return copy


def _surroundings(machine: Machine[Any]) -> tuple[object, ...]:
    """Return all of a machine, but for its rows and what people may say, that decides what comes of an input."""
    components: tuple[Mapping[Any, Any], ...] = (machine.during, machine.postpone)
    same = (machine.initial, machine.final, machine.detached, machine.served, machine.reports)
    return (type(machine), *same, *(tuple(part.items()) for part in components))


def _alike(machine: Machine[Any], record: Record, event: Event, said: Answer) -> bool:
    """Tell whether a machine says the same. That it refuses is the same, whatever else it would take."""
    answer: Answer | None = None
    with suppress(Exception):  # a rule may fail where it was not to be asked
        answer = machine.step(record, event)
    # What changes nothing and asks for nothing is as good as refused, unless something is over with it.
    nothing: tuple[Answer, ...] = () if type(event) in machine.yielded else (Step(record),)
    return answer == said or all(isinstance(each, IllegalTransition) or each in nothing for each in (answer, said))


def _kind(machine: Machine[Any]) -> AggregateType:
    system: System = alone(machine)[0]
    return system.aggregates[machine.name]


def _react_alike(ours: AggregateType, theirs: AggregateType, aggregate: Aggregate) -> bool:
    """Tell whether all that may come next, by either's account, comes to the same."""
    inputs = [each.envelope for of in (ours, theirs) for each in possible(of, aggregate, NOW_MS)]
    return all(_outcome(ours, aggregate, each) == _outcome(theirs, aggregate, each) for each in inputs)


def _outcome(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> object:
    reaction = react(of, aggregate, envelope)
    return (reaction.aggregate, reaction.effects) if isinstance(reaction, Reaction) else None
