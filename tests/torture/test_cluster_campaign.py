"""A cluster outlasts its faults. The campaign has all of them at random times; here is one trial."""

from collections import Counter

import pytest

from cluster_faults import FAULTS, ClusterCampaign, faults_of


def test_every_fault_comes_first_in_turn_and_those_of_a_server_have_one() -> None:
    """Each third trial has two faults."""
    first = Counter(faults_of(number)[0][0] for number in range(2 * len(FAULTS)))
    assert first == dict.fromkeys(FAULTS, 2)
    for number in range(100):
        faults, is_on_a_server = faults_of(number)
        assert len(faults) == 1 + (number % 3 == 2)
        assert is_on_a_server or not any("PostgreSQL" in each for each in faults)


@pytest.mark.cluster
def test_a_trial_with_two_faults_finds_nothing_wrong() -> None:
    """A brain is cut off from its log on a server, and then there is another fault."""
    try:
        campaign = ClusterCampaign()
    except LookupError as missing:
        pytest.skip(str(missing))
    try:
        verdict = campaign.attempt(8)
    finally:
        campaign.close()
    assert verdict.wrong == ()
    assert verdict.counted["sessions"] >= 6
