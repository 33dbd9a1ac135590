"""The whole campaign of simulated mistakes, a test for each lifecycle and the rules. Run by ``make mutants``."""

from typing import Final

import pytest

from simulated_results import NAMES, keep, run

WITHIN_S: Final = 30.0
"""For how many seconds a mistake is tried at most."""


@pytest.mark.parametrize("name", NAMES)
def test_most_mistakes_are_found_by_seeds_and_made_short(name: str) -> None:
    """Which ones are not stands on the page. What is found is written down before it is judged."""
    found = run(name, within_s=WITHIN_S)
    keep(found)
    assert found.short * 2 >= len(found.seen)
