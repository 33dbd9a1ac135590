"""Mistakes planted in the shipped lifecycles and rules are found by seeds and made short: some of all of them."""

from typing import Final

import pytest

from mutation_campaign import Campaign
from simulated_campaign import SHORT, Seen, Simulated, SimulatedRules, fleet_with, seen
from simulated_results import NAMES, Simulations, kept, section

SEEDS: Final = 300
"""Within how many seeds those are found that are tried here."""

FOUND: Final = {
    "session": (
        "row(Initializing, WorktreeReady, BuildingPrompt): leads to Interrupting",
        "row(SessionComplete, WorktreeReady, BuildingPrompt): leads to CoolingDown",
        "RunSession is not ended",
    ),
    "session-prompt-failures": ("BuildPrompt is not begun",),
}
"""Some mistakes, of different kinds, by lifecycle."""

RULES: Final = (
    "board: hand_over on task: is not there",
    "worker: _GIVEN_UP: `assignment.State.WORKING` is ORPHANED",
)
"""Some mistakes in the rules."""


@pytest.mark.parametrize(("name", "mistake"), [(name, each) for name, some in FOUND.items() for each in some])
def test_a_mistake_in_a_lifecycle_is_found_by_a_seed_and_made_short(name: str, mistake: str) -> None:
    """Whichever of its kind: these are some. An activity that never begins is missed when all is healed."""
    simulated = Simulated(name)
    (mutant,) = (each for each in simulated.mutants if each.name == mistake)
    found = simulated.attempt(mutant, SEEDS)
    assert found is not None
    assert found.is_short, found


@pytest.mark.parametrize("name", RULES)
def test_a_mistake_in_the_rules_is_found_by_a_seed_and_made_short(name: str) -> None:
    """In a smaller fleet, if it shows there."""
    (mistake,) = (each for each in SimulatedRules().mistakes if each.name == name)
    found = seen(fleet_with(mistake), mistake.name, mistake.kind, SEEDS)
    assert found.is_short, found


def test_what_is_no_other_machine_is_not_tried() -> None:
    """And what is refused is not, either."""
    simulated, campaign = Simulated("intake"), Campaign("intake")
    killed = [each.mutant.name for each in campaign.run() if each.fate == "killed"]
    assert [each.mistake for each in simulated.run(seeds=1)] == killed


def test_the_page_says_how_many_were_tried() -> None:
    """And what was not found, or is long; of all that was kept."""
    seen_so = (
        Seen("this", "row lost", 7),
        Seen("that", "row lost", 3, 2, "it holds", SHORT),
        Seen("it", "x", 1, 0, "", 2),
    )
    text = section([Simulations("worker_slot", 5, 10.0, seen_so)])
    assert "| worker slot | 3 | 2 | 1 | 1 |" in text
    assert "- `this`: not found by 7 seeds" in text
    assert f"- `that`: {SHORT} events" in text
    assert "one in 5 was tried" in text
    assert section([]) == ""
    assert [each.name for each in kept()] == [name for name in NAMES if name in {each.name for each in kept()}]
