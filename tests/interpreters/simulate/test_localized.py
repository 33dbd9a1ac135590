"""In a large system a mistake is found at the step at which it would be if all of it were asked at every step."""

from typing import Any

import pytest

from lifefold.core import fleet
from lifefold.core.fleet.system import fleet_properties
from lifefold.core.kernel import AggregateType, Property, System
from lifefold.interpreters.simulate import Found, property_monitor, simulate
from lifefold.interpreters.targets.simulation_targets import fleet_of
from lost_rules import BOARD, WORKER, without

TARGET = fleet_of(3, 9)
SEEDS = (1, 2, 3, 6, 10)
"""With each rule lost, these find two mistakes planted in the monitor wherever one of the seeds 0 to 11 does."""


NEAR = tuple(each for each in fleet_properties.PROPERTIES if each.localized is not None)
"""What is promised of the system, and is asked near steps."""


def found(name: str, seed: int) -> Found | None:
    """Return what is found in a fleet without the rules of this name."""
    system = without(name) if name else fleet.system
    return simulate(system, opening=TARGET.opening, environment=TARGET.environment, seed=seed).found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=pytest.mark.campaign if place % 8 else (), id=each or "nothing is lost")
        for place, each in enumerate(("", *BOARD, *WORKER))
    ],
)
def test_what_a_step_has_touched_is_where_something_is_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every rule that can be lost: what is asked near a step is broken when the whole is, and never else."""
    small = [found(name, seed) for seed in SEEDS]
    monkeypatch.setattr(property_monitor, "WHOLE", 5)
    assert [found(name, seed) for seed in SEEDS] == small


def alone(name: str, *promised: Property[Any]) -> System:
    """Return a fleet without the rules of this name that has these properties and no others."""
    system = without(name)
    types = [
        AggregateType(of.kind, machines=of.machines.values(), rules=of.rules, views=of.views, commands=of.commands)
        for of in system.aggregates.values()
    ]
    return System("fleet", *types, properties=promised)


def broken_at(system: System, seed: int) -> tuple[int, str] | None:
    """Return after how many inputs a property is broken, and which one; None if none is."""
    run = simulate(system, opening=TARGET.opening, environment=TARGET.environment, seed=seed)
    return None if run.found is None else (len(run.entries), run.found.prop)


BROKEN = {
    "hand_over": "with no message in flight, each worker holds the task it owns, or finishes a merge",
    "look_again": "no task waits for a task that is lost",
    "work_begins": "with no message in flight, exactly the tasks with a session are in progress",
}
"""Rules without which a localized property is broken, each another one."""

BREAKING = (0, 1, 6, 13)
"""Seeds of which some break what each of these rules is for, and some do not."""


@pytest.mark.parametrize(
    "name",
    [*BROKEN, *(pytest.param(each, marks=pytest.mark.campaign) for each in (*BOARD, *WORKER) if each not in BROKEN)],
)
def test_each_property_is_found_broken_near_the_step_that_breaks_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the whole is never asked: also what is promised only for when no message is under way.

    A run in which none of the properties is broken is the run of each property alone, so it is made once for all.
    """

    def compared(system: System, seed: int) -> tuple[int, str] | None:
        monkeypatch.undo()
        whole = broken_at(system, seed)
        monkeypatch.setattr(property_monitor, "WHOLE", 5)
        monkeypatch.setattr(property_monitor, "PART", 1e-9)
        assert broken_at(system, seed) == whole
        return whole

    together = alone(name, *NEAR)
    breaking = [seed for seed in BREAKING if compared(together, seed) is not None]
    each_alone = [compared(alone(name, prop), seed) for prop in NEAR for seed in breaking]
    broken = {found[1] for found in each_alone if found is not None}
    assert name not in BROKEN or broken == {BROKEN[name]}


def test_the_tests_have_something_to_find() -> None:
    """Of some rules that are lost: not only nothing is nothing."""
    assert any(found("hand_over", seed) for seed in SEEDS)
    assert len(set(BROKEN.values())) == len(BROKEN)
