"""The whole campaign of mistakes in the fleet's rules: no one goes unnoticed. Run by ``make mutants``."""

import pytest

from rule_results import NAMES, keep, run


@pytest.mark.parametrize("name", NAMES)
def test_every_mistake_in_the_rules_is_found_or_makes_no_other_fleet(name: str) -> None:
    """Or there is a reason why it survives. What is found is written down before it is judged."""
    found = run(name)
    keep(found)
    assert not found.unexplained()
