"""Retries: their number, and the rest before each."""

from typing import Any, Final

import pytest

from lifefold.core.policy.ends import Trouble
from lifefold.core.policy.retry import RetryPolicy, not_before_ms, rest_ms, retry_limit


def test_a_task_is_retried_three_times_unless_something_says_less() -> None:
    """Its own limit, the fleet's, and what its trouble suggests (E5)."""
    assert retry_limit(3, Trouble.OTHER) == 3
    assert retry_limit(5, Trouble.TRANSIENT) == 3
    assert retry_limit(1, Trouble.TRANSIENT) == 1
    assert retry_limit(3, Trouble.FATAL) == 0
    assert retry_limit(3, Trouble.OTHER, RetryPolicy(other_retries=2)) == 2
    assert retry_limit(3, Trouble.TRANSIENT, RetryPolicy(other_retries=2)) == 3
    assert retry_limit(9, Trouble.TRANSIENT, RetryPolicy(max_retries=4, transient_retries=9)) == 4


def test_rest_doubles_from_thirty_seconds_to_three_hundred() -> None:
    """min(30 * 2^n, 300) seconds for n retries before, however many; an absolute time for a claim (E6)."""
    assert [rest_ms(n) // 1_000 for n in range(6)] == [30, 60, 120, 240, 300, 300]
    assert rest_ms(10_000) == 300_000
    assert not_before_ms(1_000_000, 2) == 1_120_000


NEGATIVE: Final[list[dict[str, Any]]] = [{"max_retries": -1}, {"backoff_base_ms": -5}, {"fatal_retries": -1}]


@pytest.mark.parametrize("fields", NEGATIVE, ids=lambda fields: next(iter(fields)))
def test_negative_numbers_are_refused(fields: dict[str, Any]) -> None:
    """The message names the field."""
    name, value = next(iter(fields.items()))
    with pytest.raises(ValueError, match=f"{name} must be at least 0, not {value}"):
        RetryPolicy(**fields)
