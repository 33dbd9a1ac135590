"""A fleet on the engine does under all faults what the model does, to its end. The campaign has large fleets."""

from collections import Counter

from soak import SoakCampaign


def test_fleets_live_to_their_end_as_the_model_does() -> None:
    """Small ones, with the faults of a few seeds; some of them finish their tasks, and some crash meanwhile."""
    campaign = SoakCampaign("fleet-2x3")
    counted: Counter[str] = Counter()
    for seed in range(4):
        verdict = campaign.attempt(seed)
        assert verdict.wrong == ()
        counted.update(verdict.counted)
    assert counted["tasks"] >= 3
    assert counted["crashes"] > 0
    assert counted["entries"] > 4 * counted["tasks"]
