"""The whole campaign, a test for each lifecycle: no mutant survives without a reason. Run by ``make mutants``."""

import pytest

from lifefold.interpreters import views
from mutation_campaign import Campaign
from mutation_results import keep, result


@pytest.mark.parametrize("name", views.machines())
def test_no_mutant_of_a_lifecycle_survives_without_a_reason(name: str) -> None:
    """The results are written before they are judged."""
    campaign = Campaign(name)
    found = result(campaign, campaign.run())
    keep(found)
    assert not found.unexplained()
