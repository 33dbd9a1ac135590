"""Coverage of the tables by a search: states, rows, both results of every guard, all reports of activities."""

from collections.abc import Iterator
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


class Coverage:
    """Counts the used parts of every machine of a system."""

    def __init__(self, system: System) -> None:
        """Begin with nothing."""
        self.machines: Final = {
            machine.name: machine for of in system.aggregates.values() for machine in of.machines.values()
        }
        self.states: Final[set[tuple[str, str]]] = set()
        self.rows: Final[set[tuple[str, int]]] = set()
        self.guards: Final[set[tuple[str, int, bool]]] = set()
        self.yields: Final[set[tuple[str, str, str]]] = set()
        self._open: Final[dict[tuple[str, State, type[Event]], tuple[tuple[int, Row[Any]], ...]]] = {}
        """By machine, state and event: the rows that are not fully covered yet."""

    def meet(self, of: AggregateType, aggregate: Aggregate) -> None:
        """Record a state."""
        for ref, entity in aggregate.entities.items():
            machine = of.machine_of(ref)
            if machine is not None:
                self.states.add((machine.name, entity.state))

    def meet_changed(self, of: AggregateType, reaction: Reaction) -> None:
        """Record the states of changed entities."""
        for ref in reaction.changed:
            machine = of.machine_of(ref)
            if machine is not None:
                self.states.add((machine.name, reaction.aggregate.entities[ref].state))

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

    def _hear(self, machine: Machine[Any], given: Envelope) -> None:
        if isinstance(given.event, TimerFired):
            self.yields.add((machine.name, given.event.slot, machine.spans[given.event.slot].during.yields[0].__name__))
        elif given.slot:
            self.yields.add((machine.name, given.slot, type(given.event).__name__))

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
                self.guards.add((machine.name, number, agreed))
                if agreed:
                    self.rows.add((machine.name, number))
                    break
        if all(self._is_used(machine.name, number, row) for number, row in rows):
            self._open[key] = ()

    def _is_used(self, name: str, number: int, row: Row[Any]) -> bool:
        """Tell whether a row was taken and, if it has a guard, also rejected by it."""
        return (name, number, True) in self.guards and (row.when is None or (name, number, False) in self.guards)

    def missing(self) -> Iterator[str]:
        """Yield in words each part that was not used."""
        for name, machine in self.machines.items():
            for state in machine.states:
                if (name, state) not in self.states and state not in machine.detached:
                    yield f"{name}: state {state} is never met"
            for number, row in enumerate(machine.rows):
                yield from self._of_row(name, number, row)
            for slot, span in machine.spans.items():
                for kind in span.during.yields:
                    if slot not in machine.served and (name, slot, kind.__name__) not in self.yields:
                        yield f"{name}: {slot} never says {kind.__name__}"

    def _of_row(self, name: str, number: int, row: Row[Any]) -> Iterator[str]:
        if (name, number) not in self.rows:
            yield f"{name}: never taken: {row}"
        elif row.when is not None and (name, number, False) not in self.guards:
            yield f"{name}: its guard always agrees: {row}"

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the used and the total number of states, rows and guards."""
        machines = self.machines.values()
        guarded = [(m.name, n) for m in machines for n, row in enumerate(m.rows) if row.when is not None]
        both = sum((*each, True) in self.guards and (*each, False) in self.guards for each in guarded)
        return {
            "states": (len(self.states), sum(len(m.states) - len(m.detached) for m in machines)),
            "rows": (len(self.rows), sum(len(m.rows) for m in machines)),
            "guards, both ways": (both, len(guarded)),
        }


def _rows(machine: Machine[Any], state: State, event: type[Event]) -> tuple[tuple[int, Row[Any]], ...]:
    """Return the rows of a machine for an event in a state, with their numbers."""
    return tuple(
        (number, row) for number, row in enumerate(machine.rows) if row.event is event and state in machine.sources(row)
    )
