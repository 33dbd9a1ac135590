"""The whole campaign of mutants of the fleet's rules: none survives without a reason. Run by ``make mutants``."""

import pytest

from rule_results import NAMES, keep, run


@pytest.mark.parametrize("name", NAMES)
def test_no_mutant_of_the_rules_survives_without_a_reason(name: str) -> None:
    """The results are written before they are judged."""
    found = run(name)
    keep(found)
    assert not found.unexplained()
