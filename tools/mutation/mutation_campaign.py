"""The campaign of mutants of the shipped lifecycles: what finds each of them, and which survive."""

from collections.abc import Iterator
from enum import StrEnum
from inspect import signature
from typing import Any, Final, NamedTuple

from lifefold.core.kernel import Aggregate, AggregateType, InvalidMachine, Machine, Reaction, alone, replace
from lifefold.core.lifecycles.property_forms import OF_TABLES
from lifefold.interpreters import views
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import explore
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.targets.check_targets import named
from mutation import Mutant, mutants
from tabulated import Tabulated

MORE_STATES: Final = 1_000
"""The bound of a search is twice the states of the original and these: a mutant may have infinitely many."""

BEYOND: Final = ("not final",)
"""Kinds of mutants that change no outcome of an input, but the declarations of the machine."""


class Fate(StrEnum):
    """The possible results for a mutant."""

    REFUSED = "refused"
    KILLED = "killed"
    TABULATED = "tabulated"
    EQUIVALENT = "equivalent"
    UNDETECTED = "undetected"
    SURVIVED = "survived"


class Verdict(NamedTuple):
    """The result for a mutant, with its cause: the first problem, the first broken property, or an error."""

    mutant: Mutant
    fate: Fate
    by: str = ""


def base_of(name: str) -> Machine[Any] | None:
    """Return the base of a shipped profile: the first machine with its states and only properties of the profile.

    None if the machine is itself the first.
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
    """All mutants of one shipped machine, checked within the bounds of its target."""

    def __init__(self, name: str) -> None:
        """Take the name of a target."""
        target = named(name)
        assert isinstance(target.subject, Machine)
        self.name: Final = name
        self.table: Final = Tabulated(target.subject, target.bounds)
        most = MORE_STATES + 2 * len(self.table.states)
        self._bounds: Final = replace(target.bounds, compared=0, states=most)
        self.mutants: Final = mutants(self.table, base_of(name))

    def run(self, share: slice = slice(None)) -> Iterator[Verdict]:
        """Try some of the mutants, or all."""
        return (self.attempt(mutant) for mutant in self.mutants[share])

    def attempt(self, mutant: Mutant) -> Verdict:
        """Return the verdict on a mutant."""
        try:
            machine = mutant.make()
        except InvalidMachine as invalid:
            return Verdict(mutant, Fate.REFUSED, invalid.problems[0])
        if mutant.kind not in BEYOND and self.table.is_equivalent(machine):
            return Verdict(mutant, Fate.EQUIVALENT)
        for fate, held_to in ((Fate.KILLED, without_derived(machine)), (Fate.TABULATED, machine)):
            by = self._killer(held_to)
            if by:
                return Verdict(mutant, fate, by)
        return Verdict(mutant, self._left(machine))

    def _left(self, machine: Machine[Any]) -> Fate:
        """Return the fate of a mutant that breaks no property."""
        return Fate.UNDETECTED if self.table.refuses_more(machine) else Fate.SURVIVED

    def _killer(self, machine: Machine[Any]) -> str:
        """Return a broken property; an empty text if there is none. Invariants and transition properties come first."""
        found = first_broken(machine, self._bounds)
        if found:
            return found
        system, openings = alone(machine)
        report = check(system, opening=tuple(openings.items()), bounds=self._bounds)
        return next((f"{each.name}: {each.outcome}" for each in report.broken()), "")


def without_derived(machine: Machine[Any]) -> Machine[Any]:
    """Return a machine of the same class without the properties that are derived from its table."""
    parts: dict[str, Any] = {part: getattr(machine, part) for part in signature(Machine).parameters}
    parts["properties"] = [each for each in machine.properties if each.name not in OF_TABLES]
    return type(machine)(**parts)


def first_broken(machine: Machine[Any], bounds: Bounds) -> str:
    """Return the first broken invariant or transition property that a search finds; an empty text if there is none."""
    system, openings = alone(machine)
    try:
        explore(ProductSystem(system, tuple(openings.items()), Impatient(system), bounds))
    except Broken as broken:
        return str(broken)
    return ""


class Broken(BaseException):
    """A property is broken; the text is its name. It is no ``Exception``, so it is not taken for an error of a rule."""


class Impatient(Judge):
    """Ends the search at the first broken invariant or transition property."""

    def meet(self, component: int, number: int, of: AggregateType, aggregate: Aggregate) -> None:
        """Judge a new state."""
        super().meet(component, number, of, aggregate)
        for broken in self.wrong.values():
            raise Broken(self.properties[broken[0]].property.name)

    def step(self, of: AggregateType, reaction: Reaction) -> tuple[int, ...]:
        """Judge a transition."""
        for broken in super().step(of, reaction):
            raise Broken(self.properties[broken].property.name)
        return ()
