"""What becomes of a mutant: it is refused when it is built, breaks a property, is no other machine, or survives."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, NamedTuple

from lifefold.core.kernel import Aggregate, AggregateType, InvalidMachine, Machine, Reaction, alone, replace
from lifefold.interpreters import views
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import explore
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.targets.check_targets import named
from mutation import Mutant, mutants
from tabulated import Tabulated

MORE_STATES: Final = 1_000
"""How many more than twice those of the true machine are looked at in the end: a mutant may have no end of them."""

BEYOND: Final = ("not final",)
"""Mistakes that do not show in what happens, but in what is said of it."""


class Fate(StrEnum):
    """What may become of a mutant."""

    REFUSED = "refused"
    KILLED = "killed"
    SAME = "same"
    DEAF = "deaf"
    SURVIVED = "survived"


class Tried(NamedTuple):
    """What became of a mutant, and by what: the first problem, the first property that is broken, an error."""

    mutant: Mutant
    fate: Fate
    by: str = ""


def base_of(name: str) -> Machine[Any] | None:
    """Return the machine that a shipped one is a profile of: the first with its states and none but its properties.

    None if it is that itself.
    """
    shipped = views.machines()
    profile = shipped[name]
    declared = {each.name for each in profile.properties}
    first = next(
        machine
        for machine in shipped.values()
        if machine.states == profile.states and declared.issuperset(each.name for each in machine.properties)
    )
    return None if first is profile else first


class Campaign:
    """All mutants of one shipped machine, looked at with the question that it is shipped with."""

    def __init__(self, name: str) -> None:
        """Take a target's name."""
        target = named(name)
        assert isinstance(target.subject, Machine)
        self.name: Final = name
        self.table: Final = Tabulated(target.subject, target.bounds)
        most = MORE_STATES + 2 * len(self.table.states)
        self._bounds: Final = replace(target.bounds, compared=0, states=most)
        self.mutants: Final = mutants(self.table, base_of(name))

    def run(self, share: slice = slice(None)) -> Iterator[Tried]:
        """Try some of the mutants, or all."""
        return (self.attempt(mutant) for mutant in self.mutants[share])

    def attempt(self, mutant: Mutant) -> Tried:
        """Say what becomes of a mutant."""
        try:
            machine = mutant.make()
        except InvalidMachine as invalid:
            return Tried(mutant, Fate.REFUSED, invalid.problems[0])
        if mutant.kind not in BEYOND and self.table.is_same(machine):
            return Tried(mutant, Fate.SAME)
        is_deaf = self.table.takes_less(machine)
        by = self._killer(machine)
        survived = Fate.DEAF if is_deaf else Fate.SURVIVED
        return Tried(mutant, Fate.KILLED if by else survived, by)

    def _killer(self, machine: Machine[Any]) -> str:
        """Return a property that is broken; nothing if there is none. Those of states and steps are asked first."""
        found = first_broken(machine, self._bounds)
        if found:
            return found
        system, openings = alone(machine)
        report = check(system, opening=tuple(openings.items()), bounds=self._bounds)
        return next((f"{each.name}: {each.outcome}" for each in report.broken()), "")


def first_broken(machine: Machine[Any], bounds: Bounds) -> str:
    """Return the first property about states or steps that a search finds broken; nothing if there is none."""
    system, openings = alone(machine)
    try:
        explore(ProductSystem(system, tuple(openings.items()), Impatient(system), bounds))
    except Broken as broken:
        return str(broken)
    return ""


class Broken(BaseException):
    """A property is broken; which one is all that is said. It is no error, so that it is not taken for one of a rule."""


class Impatient(Judge):
    """Ends the search as soon as a property about states or steps is broken."""

    def meet(self, part: int, number: int, of: AggregateType, aggregate: Aggregate) -> None:
        super().meet(part, number, of, aggregate)
        for broken in self.wrong.values():
            raise Broken(self.properties[broken[0]].property.name)

    def step(self, of: AggregateType, reaction: Reaction) -> tuple[int, ...]:
        for broken in super().step(of, reaction):
            raise Broken(self.properties[broken].property.name)
        return ()
