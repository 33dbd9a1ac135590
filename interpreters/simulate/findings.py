"""What a seed has found, made small: the few deviations with which it is found, and the run that they make."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lifefold.core.kernel import Machine, System, alone
from lifefold.interpreters.simulate.choices import Name
from lifefold.interpreters.simulate.faults import Faults
from lifefold.interpreters.simulate.shrink import shrunk
from lifefold.interpreters.simulate.simulation import Limits, Run, simulate
from lifefold.interpreters.simulate.targets import Target, named

SEEDS: Final = 100
"""How many seeds are tried in each smaller system."""


class Finding(msgspec.Struct, frozen=True):
    """A promise that is broken: by which seed it was found, and the small run that breaks it."""

    target: Target
    seed: int
    run: Run
    limits: Limits

    @property
    def system(self) -> System:
        """The system that was simulated; of a machine, the one in which it is alone."""
        subject = self.target.subject
        return alone(subject)[0] if isinstance(subject, Machine) else subject


def small(target: Target, seed: int, run: Run, faults: Faults, limits: Limits) -> Finding:
    """Return the smallest run that breaks the promise which this one breaks, in the smallest system that does.

    Smaller systems are tried with the same deviations, and then with seeds.
    """
    for name in target.smaller:
        there = named(name)
        for each, tried in _tried(there, run, faults, limits):
            if _is_same(tried, run):
                return _least(there, each, tried, limits)
    return _least(target, seed, run, limits)


def _tried(target: Target, run: Run, faults: Faults, limits: Limits) -> Iterator[tuple[int, Run]]:
    yield 0, _again(target, run.deviations, limits)
    for seed in range(SEEDS):
        yield seed, _drawn(target, seed, faults, limits)


def _least(target: Target, seed: int, run: Run, limits: Limits) -> Finding:
    few = shrunk(run.deviations, lambda deviations: _is_same(_again(target, deviations, limits), run))
    return Finding(target, seed, _again(target, few, limits), limits)


def _again(target: Target, deviations: Mapping[Name, int], limits: Limits) -> Run:
    return simulate(
        target.subject, opening=target.opening, but=deviations, environment=target.environment, limits=limits
    )


def _drawn(target: Target, seed: int, faults: Faults, limits: Limits) -> Run:
    return simulate(
        target.subject,
        opening=target.opening,
        seed=seed,
        faults=faults,
        environment=target.environment,
        limits=limits,
    )


def _is_same(one: Run, other: Run) -> bool:
    """Tell whether both break the same promise."""
    return one.found is not None and other.found is not None and one.found.promise == other.found.promise
