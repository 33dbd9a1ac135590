"""The times of fences: a session is over before its host counts as lost, whatever the network does."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.cluster.fencing import Fence, Fencing

DETECTIONS_MS = st.integers(min_value=1_000, max_value=3_600_000)


@given(DETECTIONS_MS, st.integers(0, 10**9), st.integers(0, 10**6))
def test_a_session_is_killed_before_its_host_counts_as_lost(detection_ms: int, sent_ms: int, travel_ms: int) -> None:
    """The fence counts from the sending, and the detection from the later arrival."""
    rule = Fencing(detection_ms)
    killed_ms = rule.killed_ms(rule.until_ms(sent_ms))
    arrived_ms = sent_ms + travel_ms
    assert not rule.is_lost(killed_ms - arrived_ms)
    assert rule.is_lost(detection_ms)


@given(DETECTIONS_MS)
def test_several_heartbeats_fit_into_a_lease(detection_ms: int) -> None:
    """One lost heartbeat ends no session: there are three more within the lease."""
    rule = Fencing(detection_ms)
    assert 4 * rule.beat_ms <= rule.lease_ms < detection_ms


def test_the_defaults_are_thirty_seconds_and_twenty_four() -> None:
    """The lease of the usual detection time of a cluster is 24 seconds."""
    rule = Fencing(30_000)
    assert (rule.lease_ms, rule.grace_ms, rule.beat_ms) == (24_000, 3_000, 6_000)


def test_a_fence_moves_to_later_times_until_it_has_passed() -> None:
    """An earlier acknowledgement changes nothing, and none saves a session past its fence."""
    fence = Fence(10)
    assert fence.moved(20) == Fence(20)
    assert fence.moved(5) == fence
    assert not fence.seen_at(9).has_passed
    passed = fence.seen_at(10)
    assert passed.has_passed
    assert passed.moved(20) == passed
    assert passed.seen_at(0).has_passed
