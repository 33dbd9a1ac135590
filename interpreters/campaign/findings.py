"""The findings of seeds, shrunk: the few deviations that break a property, and their run."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Final, cast

import msgspec

from lifefold.core.kernel import START_MS, System
from lifefold.core.kernel.shown import counted, shown
from lifefold.interpreters.campaign.campaign import Tally
from lifefold.interpreters.campaign.driver import Driver, driver_of
from lifefold.interpreters.campaign.shrink import shrunk
from lifefold.interpreters.campaign.stopping import unless_stopped
from lifefold.interpreters.report.finding import Finding
from lifefold.interpreters.report.trace import WIDTH, Trace, wrapped
from lifefold.interpreters.search.rule_error import ANSWERED
from lifefold.interpreters.simulate.choices import Name
from lifefold.interpreters.simulate.faults import Faults
from lifefold.interpreters.simulate.simulated_runner import RunnerType
from lifefold.interpreters.simulate.simulation import Found, Limits, Run, simulate
from lifefold.interpreters.simulate.story import deviation_lines, last_lines, last_steps
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.targets.target import Target

SEEDS: Final = 100
"""The number of seeds for each smaller system."""

EARLIER: Final = 30
"""The number of times, spread over a run, at which an earlier healing is tried."""


class SeedFinding(Finding, frozen=True):
    """A broken property of a simulation: the seed that found it, and the shrunk run that breaks it.

    Raises ``ValueError`` for a run in which no property breaks.
    """

    inset: ClassVar[str | None] = ""
    target: Target
    seed: int
    run: Run
    limits: Limits
    driver: Driver = Driver.OWN
    """What was simulated."""

    def __post_init__(self) -> None:
        """Check the run."""
        if self.run.found is None:
            message = f"{self.target.name}: no property breaks in the run of seed {self.seed}"
            raise ValueError(message)

    def __repr__(self) -> str:
        """Return the broken property, the system and the seed."""
        inputs = counted(len(self.run.entries), "input")
        return shown(f"Finding: {self.found.owner}: {self.found.prop}; {self.target.name}, seed {self.seed}, {inputs}")

    @property
    def system(self) -> System:
        """The simulated system; for a machine, the system of the machine alone."""
        return self.target.system

    @property
    def found(self) -> Found:
        """The broken property."""
        return cast("Found", self.run.found)

    @property
    def shown(self) -> Trace:
        """The end of the shrunk run as a trace, such as a check finds, with the numbers of its text."""
        return last_steps(self.system, self.run.entries)

    def words(self, *, of: str = "") -> str:  # noqa: ARG002 - the owner is not the target, if the target is a fleet
        """Return the broken property and its seed, with the smaller target in which it broke."""
        found = self.found
        where = "" if self.target.name == found.owner else f" of {self.target.name}"
        return f"{found.owner}: {found.prop}: broken, first with seed {self.seed}{where}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the subject, the deviations, and the last inputs."""
        yield from wrapped("     ", f"not so of {self.found.of}", width)
        yield from deviation_lines(self.run.deviations, width)
        yield from last_lines(self.system, self.run.entries, width)
        yield ""


class Unshrunk(Finding, frozen=True):
    """A broken property that there was no time to shrink."""

    seed: int
    found: Found

    def words(self, *, of: str = "") -> str:  # noqa: ARG002 - as above
        """Return the broken property and its seed."""
        return f"{self.found.owner}: {self.found.prop}: broken by seed {self.seed}; it was not shrunk"

    def way(self, width: int = WIDTH) -> Iterator[str]:  # noqa: ARG002 - there is none yet
        """Yield nothing."""
        return iter(())


def small(  # noqa: PLR0913 - a run, and what it was made with
    target: Target, seed: int, run: Run, faults: Faults, limits: Limits, *, driver: Driver = Driver.OWN
) -> SeedFinding:
    """Return the smallest run that breaks the same property, in the smallest system that has one.

    Smaller systems are tried with the same deviations, and then with seeds.
    """
    runner = driver.runner()
    for place in target.smaller:
        there = named(place) if isinstance(place, str) else place
        for each, tried in _tried(there, run, faults, limits, runner):
            if _is_same(tried, run):
                return _least(there, each, tried, limits, runner)
    return _least(target, seed, run, limits, runner)


def _tried(
    target: Target, run: Run, faults: Faults, limits: Limits, runner: RunnerType | None
) -> Iterator[tuple[int, Run]]:
    yield 0, _again(target, run.deviations, limits, runner)
    for seed in range(SEEDS):
        yield seed, _drawn(target, seed, faults, limits, runner)


def _least(target: Target, seed: int, run: Run, limits: Limits, runner: RunnerType | None) -> SeedFinding:
    few = shrunk(run.deviations, lambda deviations: _is_same(_again(target, deviations, limits, runner), run))
    least = _again(target, few, limits, runner)
    limits = _earlier(target, least, limits, runner)
    return SeedFinding(target, seed, _again(target, few, limits, runner), limits, driver=driver_of(runner))


def _earlier(target: Target, run: Run, limits: Limits, runner: RunnerType | None) -> Limits:
    """Return limits with an earlier healing, if the property breaks all the same: soon after an input."""
    times = list(dict.fromkeys(each.envelope.at_ms - START_MS for each in run.entries))
    for until_ms in times[:: max(1, len(times) // EARLIER)]:
        if 0 <= until_ms < limits.until_ms:
            sooner = msgspec.structs.replace(limits, until_ms=until_ms)
            if _is_same(_again(target, run.deviations, sooner, runner), run):
                return sooner
    return limits


def _again(target: Target, deviations: Mapping[Name, int], limits: Limits, runner: RunnerType | None) -> Run:
    return simulate(
        target.subject,
        opening=target.opening,
        but=deviations,
        environment=target.environment,
        limits=limits,
        runner=runner,
    )


def _drawn(target: Target, seed: int, faults: Faults, limits: Limits, runner: RunnerType | None) -> Run:
    return simulate(
        target.subject,
        opening=target.opening,
        seed=seed,
        faults=faults,
        environment=target.environment,
        limits=limits,
        runner=runner,
    )


def _is_same(one: Run, other: Run) -> bool:
    """Tell whether both break the same property; for rule errors, by the same error."""
    return one.found is not None and other.found is not None and identity(one.found) == identity(other.found)


def identity(found: Found) -> tuple[str, ...]:
    """Return the identity of a finding: the owner, the property, and for rule errors the error."""
    error = found.of.split(": ")[1:2] if found.prop == ANSWERED else ()
    return found.owner, found.prop, *error


def first_of_each(
    target: Target, tally: Tally, faults: Faults, limits: Limits, is_stopped: Callable[[], bool] | None = None
) -> list[SeedFinding]:
    """Shrink the findings of a campaign: each property once, by its first seed, and each rule error.

    Findings that there is no time for are left out.
    """
    firsts: dict[tuple[str, ...], int] = {}
    for seed, found in tally.found:
        firsts.setdefault(identity(found), seed)
    shrinks = (partial(_made_small, target, seed, tally, faults, limits) for seed in firsts.values())
    made = (unless_stopped(is_stopped, shrink) for shrink in shrinks)
    return [each for each in made if each is not None]


def _made_small(target: Target, seed: int, tally: Tally, faults: Faults, limits: Limits) -> SeedFinding:
    run = _drawn(target, seed, faults, limits, tally.driver.runner())
    return small(target, seed, run, faults, limits, driver=tally.driver)
