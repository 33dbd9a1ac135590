"""The outcomes of a machine in every reachable state, as a table for a comparison with another machine.

Two machines are equivalent if they start alike, and every input has the same outcome in every reachable state of the
first. An outcome is a state with effects, or a refusal. They then reach the same states, and a property of their
behaviour holds of both or of neither.
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
"""The result of a reducer."""


class Tabulated:
    """A machine with its outcomes in every state within bounds."""

    def __init__(self, machine: Machine[Any], bounds: Bounds) -> None:
        """Search the states once, and record every call of the reducer with its result."""
        self.machine: Final = machine
        self.calls: Final[dict[tuple[Record, Event], Answer]] = {}
        system, self._opening = alone(_recording(machine, self.calls))
        product_system = ProductSystem(system, tuple(self._opening.items()), Judge(system), bounds)
        explore(product_system)
        self.states: Final[tuple[Aggregate, ...]] = tuple(product_system.components[0].states)
        self.asked: Final[dict[type[Event], list[tuple[Any, Any]]]] = {}
        """The calls of the reducer, record and event, by the type of the event."""
        for record, event in self.calls:
            self.asked.setdefault(type(event), []).append((record, event))

    def is_equivalent(self, other: Machine[Any]) -> bool:
        """Tell whether another machine has the same outcomes in all of these states."""
        if _without_rows(other) == _without_rows(self.machine) and set(other.commands) == set(self.machine.commands):
            return all(_alike(other, *call, known) for call, known in self.calls.items())
        ours, theirs = _kind(self.machine), _kind(other)
        begin = self.machine.name, self._opening[self.machine.name]
        births = [react(each, each.start(begin[0]), begin[1]) for each in (ours, theirs)]
        return births[0] == births[1] and all(_react_alike(ours, theirs, each) for each in self.states)

    def refuses_more(self, other: Machine[Any]) -> bool:
        """Tell whether another machine differs only by additional refusals."""
        if _without_rows(other) != _without_rows(self.machine) or set(other.commands) - set(self.machine.commands):
            return False
        answers = ((other.step(*call), known) for call, known in self.calls.items())
        return all(answer == known or isinstance(answer, IllegalTransition) for answer, known in answers)


def _recording(machine: Machine[Any], calls: dict[tuple[Record, Event], Answer]) -> Machine[Any]:
    """Return a machine without properties that records its calls."""
    copy = rebuilt(machine, invariants=(), properties=())
    step = copy.step

    def recorded(record: Record, event: Event) -> Answer:
        answer = calls[record, event] = step(record, event)
        return answer

    copy.step = recorded
    return copy


def _without_rows(machine: Machine[Any]) -> tuple[object, ...]:
    """Return the parts of a machine that decide an outcome, without its rows and operator commands."""
    components: tuple[Mapping[Any, Any], ...] = (machine.during, machine.postpone)
    same = (machine.initial, machine.final, machine.detached, machine.served, machine.reports)
    return (type(machine), *same, *(tuple(part.items()) for part in components))


def _alike(machine: Machine[Any], record: Record, event: Event, known: Answer) -> bool:
    """Tell whether a machine has the same outcome; two refusals are equal, whatever their reasons."""
    answer: Answer | None = None
    with suppress(Exception):  # a guard may fail on an input that the original refuses earlier
        answer = machine.step(record, event)
    # An outcome without a change and without an effect counts as a refusal, unless the event ends an activity.
    nothing: tuple[Answer, ...] = () if type(event) in machine.yielded else (Step(record),)
    return answer == known or all(isinstance(each, IllegalTransition) or each in nothing for each in (answer, known))


def _kind(machine: Machine[Any]) -> AggregateType:
    system: System = alone(machine)[0]
    return system.aggregates[machine.name]


def _react_alike(ours: AggregateType, theirs: AggregateType, aggregate: Aggregate) -> bool:
    """Tell whether all possible inputs of both have the same outcome."""
    inputs = [each.envelope for of in (ours, theirs) for each in possible(of, aggregate, NOW_MS)]
    return all(_outcome(ours, aggregate, each) == _outcome(theirs, aggregate, each) for each in inputs)


def _outcome(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> object:
    reaction = react(of, aggregate, envelope)
    return (reaction.aggregate, reaction.effects) if isinstance(reaction, Reaction) else None
