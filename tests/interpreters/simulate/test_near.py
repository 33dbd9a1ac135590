"""In a large system a mistake is found at the step at which it would be if all of it were asked at every step."""

import pytest

from lifefold.core import fleet
from lifefold.interpreters.simulate import Found, simulate, vigil
from lifefold.interpreters.simulate.targets import fleet_of
from lost_rules import BOARD, WORKER, without

TARGET = fleet_of(3, 9)
SEEDS = range(12)


def found(name: str, seed: int) -> Found | None:
    """Return what is found in a fleet without the rules of this name."""
    system = without(name) if name else fleet.system
    return simulate(system, opening=TARGET.opening, environment=TARGET.environment, seed=seed).found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=pytest.mark.campaign if place % 4 else (), id=each or "nothing is lost")
        for place, each in enumerate(("", *BOARD, *WORKER))
    ],
)
def test_what_a_step_has_touched_is_where_something_is_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every rule that can be lost: what is asked near a step is broken when the whole is, and never else."""
    small = [found(name, seed) for seed in SEEDS]
    monkeypatch.setattr(vigil, "WHOLE", 5)
    assert [found(name, seed) for seed in SEEDS] == small


def test_the_tests_have_something_to_find() -> None:
    """Of some rules that are lost: not only nothing is nothing."""
    assert any(found("hand_over", seed) for seed in SEEDS)
