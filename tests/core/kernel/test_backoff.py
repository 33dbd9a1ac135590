"""Backoff: exact, capped, never overflowing; and spread without random numbers."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.policy.backoff import exponential_ms, spread_ms


@given(st.integers(1, 200), st.integers(1, 10**6), st.integers(1, 10**9))
def test_the_delay_is_the_formula(n: int, base_ms: int, cap_ms: int) -> None:
    """``min(base * 2 ** (n - 1), cap)``, computed exactly."""
    assert exponential_ms(n, base_ms=base_ms, cap_ms=cap_ms) == min(base_ms * 2 ** (n - 1), cap_ms)


@given(st.integers(0, 10**18), st.integers(0, 10**9))
def test_without_a_base_there_is_no_delay(n: int, cap_ms: int) -> None:
    """However many failures there were."""
    assert exponential_ms(n, base_ms=0, cap_ms=cap_ms) == 0


@given(st.integers(1, 10**6), st.integers(1, 10**9))
def test_before_the_first_failure_the_delay_is_the_first_one(base_ms: int, cap_ms: int) -> None:
    """A count of none raises nothing."""
    assert exponential_ms(0, base_ms=base_ms, cap_ms=cap_ms) == exponential_ms(1, base_ms=base_ms, cap_ms=cap_ms)


@given(st.integers(200, 10**18), st.integers(1, 10**6), st.integers(1, 10**9))
def test_the_delay_saturates(n: int, base_ms: int, cap_ms: int) -> None:
    """However many failures there were, no huge number is ever made (D5)."""
    assert exponential_ms(n, base_ms=base_ms, cap_ms=cap_ms) == cap_ms


@given(st.integers(1, 100), st.integers(1, 10**6), st.integers(1, 10**9))
def test_one_more_failure_never_shortens_the_delay(n: int, base_ms: int, cap_ms: int) -> None:
    """The delay grows until it is at its cap."""
    now, then = (exponential_ms(i, base_ms=base_ms, cap_ms=cap_ms) for i in (n, n + 1))
    assert now <= then <= cap_ms


@given(st.integers(0, 10**9), st.floats(0, 1), st.text(), st.integers())
def test_a_spread_delay_lies_within_the_fraction(delay_ms: int, fraction: float, name: str, attempt: int) -> None:
    """Never longer than the delay, never shorter than it less the fraction; the same every time (D27)."""
    spread = spread_ms(delay_ms, fraction, name, attempt)
    assert delay_ms - delay_ms * fraction <= spread <= delay_ms
    assert spread == spread_ms(delay_ms, fraction, name, attempt)


def test_a_spread_delay_is_the_same_on_every_machine() -> None:
    """It depends on nothing but its arguments: not on the process, nor on the seed of its hashes."""
    assert [spread_ms(60_000, 0.5, "a", n) for n in range(4)] == SPREAD


SPREAD = [44230, 44824, 51930, 33654]


def test_the_parts_are_kept_apart() -> None:
    """``("a", 11)`` and ``("a1", 1)`` wait for different times."""
    assert spread_ms(10**9, 1.0, "a", 11) != spread_ms(10**9, 1.0, "a1", 1)


def test_without_a_fraction_nothing_is_spread() -> None:
    """The delay is exact by default."""
    assert spread_ms(60_000, 0.0, "a", 1) == 60_000
