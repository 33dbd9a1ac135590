"""The whole campaign, a test for each lifecycle: no mistake in it goes unnoticed. Run by ``make mutants``."""

import pytest

from lifefold.interpreters import views
from mutation_campaign import Campaign
from mutation_results import keep, result


@pytest.mark.parametrize("name", views.machines())
def test_every_mutant_is_found_or_is_no_other_machine(name: str) -> None:
    """Or there is a reason why it survives. What is found is written down before it is judged."""
    campaign = Campaign(name)
    found = result(campaign, campaign.run())
    keep(found)
    assert not found.unexplained()
