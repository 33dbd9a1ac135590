"""Overdue sessions: the runner never ends one before the session's own supervisor must have done it."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.policy.overdue import MARGIN_MS, kill_after_ms, wake_after_ms

TIMES = st.integers(0, 10**9)


@given(TIMES, TIMES)
def test_a_shim_has_its_own_limits_and_the_margin_before_it_is_woken(timeout_ms: int, grace_ms: int) -> None:
    """It then has the grace and the margin once more."""
    assert wake_after_ms(timeout_ms, grace_ms) == timeout_ms + grace_ms + MARGIN_MS
    assert kill_after_ms(grace_ms) == grace_ms + MARGIN_MS


@given(TIMES)
def test_a_session_that_may_last_for_ever_is_never_overdue(grace_ms: int) -> None:
    """It has no time-out."""
    assert wake_after_ms(None, grace_ms) is None


def test_no_grace_is_no_less_than_none() -> None:
    """What is killed at once has the margin."""
    assert kill_after_ms(-1) == kill_after_ms(0) == MARGIN_MS > 0
