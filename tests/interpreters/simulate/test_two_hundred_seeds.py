"""The shipped fleet keeps what it promises in two hundred seeds of a fleet of some size, whatever goes wrong."""

import pytest

from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.targets.simulation_targets import fleet_of

SEEDS = 25
"""How many are tried at a time."""

ALWAYS = 25
"""How many are tried always; the others in campaigns."""

EVENTS = 25_000
"""How many events there are at least in as many: what entities take, inputs and what rules have follow."""

TARGET = fleet_of(9, 76)


@pytest.mark.parametrize(
    "first",
    [pytest.param(each, marks=() if each < ALWAYS else pytest.mark.campaign) for each in range(0, 200, SEEDS)],
)
def test_a_fleet_has_its_properties_under_faults(first: int) -> None:
    """A virtual day for each seed, and what it takes until everything is settled after that."""
    events = 0
    for seed in range(first, first + SEEDS):
        run = simulate(TARGET.subject, opening=TARGET.opening, seed=seed, environment=TARGET.environment)
        assert run.ok, (seed, run.found)
        events += run.counts.transitions
    assert events >= EVENTS
