"""The parts of a system that a search or a simulation has used, and in words those that it has not.

The parts are states, rows, both results of every guard, the reports of activities, and rules. A rule is *triggered* by
a transition, and *answers* it if it asks for something. A rule that never answers was not tried, or cannot.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lifefold.core.kernel import AggregateType, Machine, Row, Rule, System


class UsedParts(msgspec.Struct):
    """The used parts: by the name of the machine, or by the kind of the aggregate and the place of the rule in it."""

    states: set[tuple[str, str]] = msgspec.field(default_factory=set[tuple[str, str]])
    rows: set[tuple[str, int]] = msgspec.field(default_factory=set[tuple[str, int]])
    guards: set[tuple[str, int, bool]] = msgspec.field(default_factory=set[tuple[str, int, bool]])
    reports: set[tuple[str, str, str]] = msgspec.field(default_factory=set[tuple[str, str, str]])
    triggered: set[tuple[str, int]] = msgspec.field(default_factory=set[tuple[str, int]])
    answered: set[tuple[str, int]] = msgspec.field(default_factory=set[tuple[str, int]])

    def add(self, other: "UsedParts") -> None:
        """Add the used parts of another search or simulation of the same system."""
        for name in self.__struct_fields__:
            getattr(self, name).update(getattr(other, name))

    def counts(self, system: System) -> dict[str, tuple[int, int]]:
        """Return the used and the total number of states, rows, guards and rules; of rules only if there are any."""
        machines = machines_of(system).values()
        guarded = [(m.name, n) for m in machines for n, row in enumerate(m.rows) if row.when is not None]
        both = sum((*each, True) in self.guards and (*each, False) in self.guards for each in guarded)
        rules = sum(len(of.rules) for of in system.aggregates.values())
        found = {
            "states": (len(self.states), sum(len(m.states) - len(m.detached) for m in machines)),
            "rows": (len(self.rows), sum(len(m.rows) for m in machines)),
            "guards, both ways": (both, len(guarded)),
        }
        return found | {"rules": (len(self.answered), rules)} if rules else found

    def missing(self, system: System, *, with_states: bool = True) -> Iterator[str]:
        """Yield in words each unused part of each machine."""
        for name, machine in machines_of(system).items():
            for state in machine.states if with_states else ():
                if (name, state) not in self.states and state not in machine.detached:
                    yield f"{name}: state {state} is never met"
            for number, row in enumerate(machine.rows):
                yield from self._of_row(name, number, row)
            for slot, span in machine.spans.items():
                for kind in span.during.yields:
                    if slot not in machine.served and (name, slot, kind.__name__) not in self.reports:
                        yield f"{name}: {slot} never says {kind.__name__}"

    def _of_row(self, name: str, number: int, row: Row[Any]) -> Iterator[str]:
        if (name, number) not in self.rows:
            yield f"{name}: never taken: {row}"
        elif row.when is not None and (name, number, False) not in self.guards:
            yield f"{name}: its guard always agrees: {row}"

    def unused_rules(self, system: System) -> Iterator[str]:
        """Yield in words each rule that never answered. A kind of which no rule was triggered is named once."""
        for kind, of in system.aggregates.items():
            if of.rules and not any((kind, number) in self.triggered for number, _ in enumerate(of.rules)):
                yield f"{kind}: none of its {len(of.rules)} rules is triggered"
                continue
            for number, each in enumerate(of.rules):
                if (kind, number) not in self.answered:
                    was = "is triggered, and never answers" if (kind, number) in self.triggered else "never triggered"
                    yield f"{kind}: rule {each.name} on {each.on}: {was}"


def machines_of(system: System) -> dict[str, Machine[Any]]:
    """Return the machines of a system by name."""
    return {machine.name: machine for of in system.aggregates.values() for machine in of.machines.values()}


class RuleNumbers:
    """The place of each rule in the rules of its type, found by identity."""

    def __init__(self, system: System) -> None:
        """Number the rules."""
        self._numbers: Final = {
            (kind, id(each)): (kind, number)
            for kind, of in system.aggregates.items()
            for number, each in enumerate(of.rules)
        }

    def of(self, of: AggregateType, each: Rule) -> tuple[str, int]:
        """Return the kind of an aggregate type and the place of one of its rules."""
        return self._numbers[of.kind, id(each)]
