"""The whole campaign of simulated mutants, a test for each lifecycle and the rules. Run by ``make mutants``."""

from typing import Final

import pytest

from simulated_results import NAMES, keep, run

WITHIN_S: Final = 30.0
"""The time for each mutant, in seconds."""


@pytest.mark.parametrize("name", NAMES)
def test_seeds_find_most_mutants_and_their_runs_are_short(name: str) -> None:
    """The page lists the others. The results are written before they are judged."""
    found = run(name, within_s=WITHIN_S)
    keep(found)
    assert found.short * 2 >= len(found.seen)
