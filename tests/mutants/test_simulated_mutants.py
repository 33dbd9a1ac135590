"""Seeds find mutants of the shipped lifecycles and rules, and their runs are shrunk: some of all of them."""

from typing import Final

import pytest

from mutation_campaign import Campaign
from simulated_campaign import SHORT, Seen, Simulated, SimulatedRules, fleet_with, seen
from simulated_results import NAMES, Simulations, kept, section

SEEDS: Final = 300
"""The number of seeds for each mutant here."""

FOUND: Final = {
    "session": (
        "row(Initializing, WorktreeReady, BuildingPrompt): leads to Interrupting",
        "row(SessionComplete, WorktreeReady, BuildingPrompt): leads to CoolingDown",
        "RunSession is not ended",
    ),
    "session-prompt-failures": ("BuildPrompt is not begun",),
}
"""Some mutants of different kinds, by lifecycle."""

RULES: Final = (
    "board: hand_over on task: is not there",
    "worker: _GIVEN_UP: `assignment.State.WORKING` is ORPHANED",
)
"""Some mutants of the rules."""


@pytest.mark.parametrize(("name", "mutant_name"), [(name, each) for name, some in FOUND.items() for each in some])
def test_a_seed_finds_a_mutant_of_a_lifecycle_and_its_run_is_short(name: str, mutant_name: str) -> None:
    """An activity that never begins is noticed when all faults are healed."""
    simulated = Simulated(name)
    (mutant,) = (each for each in simulated.mutants if each.name == mutant_name)
    found = simulated.attempt(mutant, SEEDS)
    assert found is not None
    assert found.is_short, found


@pytest.mark.parametrize("name", RULES)
def test_a_seed_finds_a_mutant_of_the_rules_and_its_run_is_short(name: str) -> None:
    """In a smaller fleet, if that breaks a property, too."""
    (mutant,) = (each for each in SimulatedRules().mutants if each.name == name)
    found = seen(fleet_with(mutant), mutant.name, mutant.kind, SEEDS)
    assert found.is_short, found


def test_an_equivalent_mutant_is_not_simulated() -> None:
    """A refused one is not, either."""
    simulated, campaign = Simulated("intake"), Campaign("intake")
    killed = [each.mutant.name for each in campaign.run() if each.fate == "killed"]
    assert [each.mutant for each in simulated.run(seeds=1)] == killed


def test_the_page_says_how_many_were_tried() -> None:
    """It lists mutants that were not found or have a long run."""
    seen_so = (
        Seen("this", "row lost", 7),
        Seen("that", "row lost", 3, 2, "it holds", SHORT),
        Seen("it", "x", 1, 0, "", 2),
    )
    text = section([Simulations("worker_slot", 5, 10.0, seen_so)])
    assert "| worker_slot | 3 | 2 | 1 | 1 |" in text
    assert "- `this`: not found by 7 seeds" in text
    assert f"- `that`: {SHORT} events" in text
    assert "one in 5 was tried" in text
    assert section([]) == ""
    assert [each.name for each in kept()] == [name for name in NAMES if name in {each.name for each in kept()}]
