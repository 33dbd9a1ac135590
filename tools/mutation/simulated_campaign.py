"""Simulations of the mutants that ``check`` kills: the first seed that finds each, and the size of its shrunk run.

A mutant is simulated as ``lifefold simulate`` does: with the seeds from 0 on, the usual faults and the environment of
its target. The first failing run is shrunk. Its *events* are the entries in the log when the property breaks, with the
opening.
"""

import math
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Final

import msgspec

import rule_campaign
from lifefold.core import fleet
from lifefold.core.fleet import Plan
from lifefold.core.fleet.system import fleet_properties
from lifefold.core.kernel import AggregateType, InvalidMachine, System, View
from lifefold.interpreters.campaign.findings import small
from lifefold.interpreters.simulate import Faults, Limits, Run, simulate
from lifefold.interpreters.targets.fleet_plans import governed_plan, plan
from lifefold.interpreters.targets.simulation_targets import FLEET, target
from lifefold.interpreters.targets.target import Target
from mutation import Mutant
from mutation_campaign import BEYOND, Campaign
from rule_mutation import Made, RuleMutant
from rule_sources import SOURCES

SEEDS: Final = 1_000
"""The number of seeds that are tried for each mutant."""

SHORT: Final = 15
"""A short run has fewer events than this."""

LIMITS: Final = Limits(inputs=20_000)
"""The longest run: a mutant may never come to rest. That alone does not count as found."""

ENDLESS: Final = "comes to rest"
"""The property that a run breaks if it ends at its limit."""

FLEETS: Final = ((2, 3), (1, 1), (1, 2), (2, 1), (1, 3), (2, 2))
"""The sizes of the fleets, in agents and tasks, in which mutants of the rules are simulated and shrunk."""


class Seen(msgspec.Struct, frozen=True):
    """The result for a mutant: its kind, the seed and the property that found it, and the size of the shrunk run.

    ``seed`` is None if no seed found it.
    """

    mutant: str
    kind: str
    seeds: int
    """The number of seeds that were tried."""
    seed: int | None = None
    by: str = ""
    events: int = 0
    deviations: int = 0
    where: str = ""
    fate: str = "killed"
    """The verdict of ``check``."""

    @property
    def is_short(self) -> bool:
        """Whether a seed found it and the shrunk run is short."""
        return self.seed is not None and self.events < SHORT


def seen(of: Target, mutant: str, kind: str, seeds: int = SEEDS, within_s: float = math.inf) -> Seen:
    """Simulate a mutant until a seed finds it, and shrink that run; or until the time is over."""
    until_s = monotonic() + within_s
    for seed, run in runs(of, seeds):
        if is_broken(run):
            return shown(of, mutant, kind, seed, run)
        if monotonic() > until_s:
            return Seen(mutant, kind, seeds=seed + 1)
    return Seen(mutant, kind, seeds=seeds)


def shown(of: Target, mutant: str, kind: str, seed: int, run: Run) -> Seen:
    """Shrink the run that a seed has found."""
    finding = small(of, seed, run, Faults(), LIMITS)
    found = finding.run.found
    assert found is not None
    few, events = finding.run.deviations, finding.run.entries
    return Seen(mutant, kind, seed + 1, seed, found.prop, len(events), len(few), finding.target.name)


def is_broken(run: Run) -> bool:
    """Tell whether a run breaks a property, and does not only end at its limit."""
    return run.found is not None and run.found.prop != ENDLESS


def runs(of: Target, seeds: int) -> Iterator[tuple[int, Run]]:
    """Yield the run of each seed."""
    for seed in range(seeds):
        yield (
            seed,
            simulate(of.subject, opening=of.opening, seed=seed, environment=of.environment, limits=LIMITS),
        )


class Simulated:
    """The mutants of one shipped machine."""

    def __init__(self, name: str) -> None:
        """Take the name of a target."""
        self.name: Final = name
        self._campaign: Final = Campaign(name)

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """All of them."""
        return self._campaign.mutants

    def run(self, share: slice = slice(None), seeds: int = SEEDS, within_s: float = math.inf) -> Iterator[Seen]:
        """Simulate some of the mutants, or all; refused and equivalent ones are left out."""
        for mutant in self.mutants[share]:
            found = self.attempt(mutant, seeds, within_s)
            if found is not None:
                yield found

    def attempt(self, mutant: Mutant, seeds: int = SEEDS, within_s: float = math.inf) -> Seen | None:
        """Simulate a mutant; None if it is refused or equivalent."""
        try:
            machine = mutant.make()
        except InvalidMachine:
            return None
        if mutant.kind not in BEYOND and self._campaign.table.is_equivalent(machine):
            return None
        return seen(target(machine, name=self.name), mutant.name, mutant.kind, seeds, within_s)


class SimulatedRules:
    """The mutants of the fleet's rules, each simulated in a fleet and then shrunk in smaller ones.

    A mutant that no seed finds is checked: it may be equivalent.
    """

    def __init__(self) -> None:
        """Make the mutants."""
        self._checks: rule_campaign.Campaign | None = None
        self.mutants: Final = tuple(each for source in SOURCES for each in source.mutants())

    def run(self, share: slice = slice(None), seeds: int = SEEDS, within_s: float = math.inf) -> Iterator[Seen]:
        """Simulate some of the mutants, or all."""
        for mutant in self.mutants[share]:
            yield self.attempt(mutant, seeds, within_s)

    def attempt(self, mutant: RuleMutant, seeds: int = SEEDS, within_s: float = math.inf) -> Seen:
        """Simulate a mutant in the fleet, and if no seed finds it there, in a fleet with approvals by operators."""
        trials = (
            seen(fleet_with(mutant, planned), mutant.name, mutant.kind, seeds, within_s)
            for planned in (plan, governed_plan)
        )
        first = next(trials)
        found = first if first.seed is not None else next(trials)
        return found if found.seed is not None else self.judged(mutant, found)

    def judged(self, mutant: RuleMutant, missed: Seen) -> Seen:
        """Return the result with the verdict of a check, for a mutant that no seed found."""
        self._checks = self._checks or rule_campaign.Campaign()
        return msgspec.structs.replace(missed, fate=str(self._checks.attempt(mutant).fate))


def fleet_with(mutant: RuleMutant, planned: Callable[[int, int], Plan] = plan) -> Target:
    """Return the shipped fleet with a mutant of its rules, with smaller fleets for shrinking."""
    made = mutant.make()
    types = (_but(of, made) if of.kind == mutant.of else of for of in fleet.system.aggregates.values())
    system = System("fleet", *types, properties=fleet_properties.PROPERTIES)
    large, *small_ones = (
        target(system, tuple(fleet.opening(of, 0)), environment=FLEET, name=f"fleet-{of.name}")
        for of in (planned(*size) for size in FLEETS)
    )
    return msgspec.structs.replace(large, smaller=tuple(small_ones))


def _but(of: AggregateType, made: Made) -> AggregateType:
    views = of.views
    if made.fold is not None and "work" in views:
        views = views | {"work": View(views["work"].initial, made.fold)}
    return AggregateType(
        of.kind,
        machines=of.machines.values(),
        rules=made.rules,
        views=views,
        commands=of.commands,
        properties=of.properties,
    )
