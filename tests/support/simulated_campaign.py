"""What ``simulate`` makes of the mistakes that ``check`` finds: by which seed each is found, and how small it is.

Each is tried as ``lifefold simulate`` tries what somebody has written: with the seeds from 0 on, the usual faults, the
environment of its target. What is found first is shrunk, and its *events* are the inputs that the small run has on
record when the property is broken, those that it opens with included.
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
from lifefold.interpreters.simulate import Faults, Limits, Run, simulate
from lifefold.interpreters.simulate.findings import small
from lifefold.interpreters.simulate.fleet_plans import governed_plan, plan
from lifefold.interpreters.simulate.simulation_targets import FLEET, Target, target
from mutation import Mutant
from mutation_campaign import BEYOND, Campaign
from rule_mutation import Made, Mistake
from rule_sources import SOURCES

SEEDS: Final = 1_000
"""Within how many seeds a mistake is to be found."""

SHORT: Final = 15
"""A small run has fewer events than that."""

LIMITS: Final = Limits(inputs=20_000)
"""How long a run is at most: what has a mistake may go round for ever. That it does is not held against it."""

ENDLESS: Final = "comes to rest"
"""What is said of a run that is broken off."""

FLEETS: Final = ((2, 3), (1, 1), (1, 2), (2, 1), (1, 3), (2, 2))
"""The sizes of the fleets, agents and tasks, that mistakes in the rules are tried in, and shrunk in."""


class Seen(msgspec.Struct, frozen=True):
    """What became of a mistake: of which kind it is, which seed found it, by which property, how small it was made.

    ``seed`` is None if none of the seeds found it.
    """

    mistake: str
    kind: str
    seeds: int
    """How many were tried."""
    seed: int | None = None
    by: str = ""
    events: int = 0
    deviations: int = 0
    where: str = ""
    fate: str = "killed"
    """What a check makes of it."""

    @property
    def is_short(self) -> bool:
        """Whether it was found, and made as small as it should be."""
        return self.seed is not None and self.events < SHORT


def seen(of: Target, mistake: str, kind: str, seeds: int = SEEDS, within_s: float = math.inf) -> Seen:
    """Simulate what has a mistake until a seed finds it, and make that small; or until the time is over."""
    until_s = monotonic() + within_s
    for seed, run in runs(of, seeds):
        if is_broken(run):
            return shown(of, mistake, kind, seed, run)
        if monotonic() > until_s:
            return Seen(mistake, kind, seeds=seed + 1)
    return Seen(mistake, kind, seeds=seeds)


def shown(of: Target, mistake: str, kind: str, seed: int, run: Run) -> Seen:
    """Make what a seed has found small."""
    finding = small(of, seed, run, Faults(), LIMITS)
    found = finding.run.found
    assert found is not None
    few, events = finding.run.deviations, finding.run.entries
    return Seen(mistake, kind, seed + 1, seed, found.prop, len(events), len(few), finding.target.name)


def is_broken(run: Run) -> bool:
    """Tell whether a property is broken in a run, and not only the run broken off."""
    return run.found is not None and run.found.prop != ENDLESS


def runs(of: Target, seeds: int) -> Iterator[tuple[int, Run]]:
    """Yield the run of each seed."""
    for seed in range(seeds):
        yield (
            seed,
            simulate(of.subject, opening=of.opening, seed=seed, environment=of.environment, limits=LIMITS),
        )


class Simulated:
    """The mistakes of one shipped machine that ``check`` finds."""

    def __init__(self, name: str) -> None:
        """Take a target's name."""
        self.name: Final = name
        self._campaign: Final = Campaign(name)

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """All mistakes."""
        return self._campaign.mutants

    def run(self, share: slice = slice(None), seeds: int = SEEDS, within_s: float = math.inf) -> Iterator[Seen]:
        """Try some of the mistakes, or all: of those, each that is another machine."""
        for mutant in self.mutants[share]:
            found = self.attempt(mutant, seeds, within_s)
            if found is not None:
                yield found

    def attempt(self, mutant: Mutant, seeds: int = SEEDS, within_s: float = math.inf) -> Seen | None:
        """Try a mistake; None if it is refused, or is no other machine."""
        try:
            machine = mutant.make()
        except InvalidMachine:
            return None
        if mutant.kind not in BEYOND and self._campaign.table.is_same(machine):
            return None
        return seen(target(machine, name=self.name), mutant.name, mutant.kind, seeds, within_s)


class SimulatedRules:
    """The mistakes in the rules of the fleet, each tried in a fleet and then in smaller ones.

    Of those that no seed finds it is asked what a check makes of them: they may be none.
    """

    def __init__(self) -> None:
        """Make them."""
        self._checks: rule_campaign.Campaign | None = None
        self.mistakes: Final = tuple(each for source in SOURCES for each in source.mistakes())

    def run(self, share: slice = slice(None), seeds: int = SEEDS, within_s: float = math.inf) -> Iterator[Seen]:
        """Try some of the mistakes, or all."""
        for mistake in self.mistakes[share]:
            yield self.attempt(mistake, seeds, within_s)

    def attempt(self, mistake: Mistake, seeds: int = SEEDS, within_s: float = math.inf) -> Seen:
        """Try a mistake: if it is not found in the fleet, in one in which people have their say."""
        trials = (
            seen(fleet_with(mistake, planned), mistake.name, mistake.kind, seeds, within_s)
            for planned in (plan, governed_plan)
        )
        first = next(trials)
        found = first if first.seed is not None else next(trials)
        return found if found.seed is not None else self.judged(mistake, found)

    def judged(self, mistake: Mistake, missed: Seen) -> Seen:
        """Say what a check makes of a mistake that was not found."""
        self._checks = self._checks or rule_campaign.Campaign()
        return msgspec.structs.replace(missed, fate=str(self._checks.attempt(mistake).fate))


def fleet_with(mistake: Mistake, planned: Callable[[int, int], Plan] = plan) -> Target:
    """Return the shipped fleet with a mistake in its rules; what is found there is looked for in smaller ones."""
    made = mistake.make()
    types = (_but(of, made) if of.kind == mistake.of else of for of in fleet.system.aggregates.values())
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
