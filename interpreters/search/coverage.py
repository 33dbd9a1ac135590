"""Coverage: records which parts of a system each reaction uses, for searches and simulations alike."""

from typing import Any, Final

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Entity,
    Envelope,
    Event,
    Machine,
    Reaction,
    Refusal,
    Row,
    State,
    System,
    TimerFired,
    replace,
)
from lifefold.interpreters.search.used_parts import RuleNumbers, UsedParts


class Coverage:
    """Records the used parts of a system."""

    def __init__(self, system: System) -> None:
        """Begin with nothing."""
        self.used: Final = UsedParts()
        self._rule_numbers: Final = RuleNumbers(system)
        self._open: Final[dict[tuple[str, State, type[Event]], tuple[tuple[int, Row[Any]], ...]]] = {}
        """By machine, state and event: the rows that are not fully covered yet."""

    def meet(self, of: AggregateType, aggregate: Aggregate) -> None:
        """Record a state."""
        for ref, entity in aggregate.entities.items():
            machine = of.machine_of(ref)
            if machine is not None:
                self.used.states.add((machine.name, entity.state))

    def meet_changed(self, of: AggregateType, reaction: Reaction) -> None:
        """Record the states of changed entities."""
        for ref in reaction.changed:
            machine = of.machine_of(ref)
            if machine is not None:
                self.used.states.add((machine.name, reaction.aggregate.entities[ref].state))

    def react(self, of: AggregateType, aggregate: Aggregate, given: Envelope, came: Reaction | Refusal) -> None:
        """Record the outcome of an input."""
        machine = of.machine_of(given.entity)
        if isinstance(came, Refusal):
            entity = aggregate.entities.get(given.entity)
            if machine is not None and entity is not None and came.kind == "illegal":
                self._try(machine, entity, given.event, given.at_ms)
            return
        if machine is not None:
            self._hear(machine, given)
        for step in came.transitions:
            if step.before is not None:
                self._try(of.machines[step.machine], step.before, step.event, step.at_ms)
        self._follow(of, came)

    def _follow(self, of: AggregateType, came: Reaction) -> None:
        """Record the rules that a reaction has triggered, and those that have answered."""
        if of.rules:
            number = self._rule_numbers.of
            self.used.triggered.update(number(of, each) for step in came.transitions for each in of.triggered(step))
            self.used.answered.update(number(of, each) for each in came.rules)

    def _hear(self, machine: Machine[Any], given: Envelope) -> None:
        if isinstance(given.event, TimerFired):
            fired = machine.spans[given.event.slot].during.yields[0].__name__
            self.used.reports.add((machine.name, given.event.slot, fired))
        elif given.slot:
            self.used.reports.add((machine.name, given.slot, type(given.event).__name__))

    def _try(self, machine: Machine[Any], entity: Entity[Any], event: Event, at_ms: int) -> None:
        """Try the rows as the reducer does."""
        key = (machine.name, entity.state, type(event))
        rows = self._open.get(key)
        if rows is None:
            rows = self._open[key] = _rows(machine, entity.state, type(event))
        if not rows:
            return
        record = replace(entity.record, at_ms=at_ms) if machine.clocked else entity.record
        for number, row in rows:
            if row.pattern is None or row.pattern.test(event):
                agreed = row.when is None or row.when(record, event)
                self.used.guards.add((machine.name, number, agreed))
                if agreed:
                    self.used.rows.add((machine.name, number))
                    break
        if all(self._is_used(machine.name, number, row) for number, row in rows):
            self._open[key] = ()

    def _is_used(self, name: str, number: int, row: Row[Any]) -> bool:
        """Tell whether a row was taken and, if it has a guard, also rejected by it."""
        guards = self.used.guards
        return (name, number, True) in guards and (row.when is None or (name, number, False) in guards)


def _rows(machine: Machine[Any], state: State, event: type[Event]) -> tuple[tuple[int, Row[Any]], ...]:
    """Return the rows of a machine for an event in a state, with their numbers."""
    return tuple(
        (number, row) for number, row in enumerate(machine.rows) if row.event is event and state in machine.sources(row)
    )
