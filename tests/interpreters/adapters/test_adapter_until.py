"""The end of a limit is read off sentences, with the time of the moment and its zone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.adapters import Now
from lifefold.interpreters.adapters.until import EARLIEST_MS, LONGEST_MS, believed, until_of


def ms(year: int, month: int, day: int, hour: int, minute: int = 0) -> int:
    """Return a time of UTC in milliseconds of the epoch."""
    return round(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


NOON = Now(ms(2026, 11, 24, 12))
NOON_IN_TOKYO = Now(ms(2026, 11, 24, 3), utc_offset_min=540)
SILVESTER = Now(ms(2026, 12, 31, 22))


@pytest.mark.parametrize(
    ("sentence", "now", "until"),
    [
        ("try again at 12:30 PM.", NOON, ms(2026, 11, 24, 12, 30)),
        ("try again at 11:30 AM.", NOON, ms(2026, 11, 25, 11, 30)),
        ("resets 11:55am", NOON, ms(2026, 11, 24, 11, 55)),
        ("resets 11:45am", NOON, ms(2026, 11, 25, 11, 45)),
        ("try again at 12:30 PM.", NOON_IN_TOKYO, ms(2026, 11, 24, 3, 30)),
        ("try again at 12:05 AM", NOON, ms(2026, 11, 25, 0, 5)),
        ("try again at Nov 25th, 2026 10:00 AM.", NOON, ms(2026, 11, 25, 10)),
        ("You've hit your limit · resets 5pm", NOON, ms(2026, 11, 24, 17)),
        ("You've hit your limit · resets Nov 25, 10am (UTC)", NOON, ms(2026, 11, 25, 10)),
        ("You've hit your limit · resets Nov 25, 10am (UTC)", NOON_IN_TOKYO, ms(2026, 11, 25, 10)),
        ("resets Jan 2, 10am", SILVESTER, ms(2027, 1, 2, 10)),
        ("resets at 17:00", NOON, ms(2026, 11, 24, 17)),
        ("Claude AI usage limit reached|1795600800", NOON, 1_795_600_800_000),
        ("Please try again in 20s.", NOON, NOON.ms + 20_000),
        ("Please try again in 6m0s.", NOON, NOON.ms + 360_000),
        ("Please retry in 34.5s", NOON, NOON.ms + 34_500),
        ("Your quota will reset after 12h30m15s.", NOON, NOON.ms + 45_015_000),
        ("try again in 2 days 3 hours 5 minutes", NOON, NOON.ms + 183_900_000),
        ("try again in about 2 hours and 5 minutes", NOON, NOON.ms + 7_500_000),
        ("Please try again in 250ms.", NOON, NOON.ms + 250),
    ],
)
def test_a_sentence_tells_the_end_of_a_limit(sentence: str, now: Now, until: int) -> None:
    assert until_of(sentence, now) == until


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "Please try again later.",
        "try again at 12:75 PM",
        "resets Feb 31, 10am",
        "resets Foo 3, 10am",
        "Limit: 100. resets 5",
        "try again at Nov 25th, 2031 10:00 AM.",
        "usage limit reached|9999999999",
        "try again in 999999 days",
        "a failure in 3 tests",
    ],
)
def test_a_sentence_without_a_time_that_can_be_tells_nothing(sentence: str) -> None:
    assert until_of(sentence, NOON) is None


@pytest.mark.parametrize("stamp", [NOON.ms, NOON.ms // 1000])
def test_a_stamp_is_in_seconds_or_in_milliseconds(stamp: int) -> None:
    assert believed(stamp, NOON) == NOON.ms


@pytest.mark.parametrize(
    "stamp",
    [None, "1795600800", True, 1.5, 0, -1, 2**70, NOON.ms + LONGEST_MS + 1000, NOON.ms - EARLIEST_MS - 1000],
)
def test_a_stamp_that_cannot_be_the_end_of_a_limit_counts_as_unknown(stamp: object) -> None:
    assert believed(stamp, NOON) is None


@given(
    st.text(max_size=60) | st.from_regex(r"(resets|try again) (at |in )?[0-9:apmAPM ]{1,20}", fullmatch=True),
    st.integers(-(2**60), 2**60),
    st.integers(-1440, 1440),
)
def test_no_sentence_and_no_moment_raises_an_error(sentence: str, now_ms: int, offset_min: int) -> None:
    until = until_of(sentence, Now(now_ms, offset_min))
    assert until is None or now_ms - EARLIEST_MS <= until <= now_ms + LONGEST_MS
