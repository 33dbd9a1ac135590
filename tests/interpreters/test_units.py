"""The guarantee: a duration or size in a fleet file has one meaning, and what is doubtful is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.fleet_file import format_duration, format_size, parse_duration_ms, parse_size_bytes
from lifefold.interpreters.units import LARGEST_BYTES, LONGEST_MS


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("500ms", 500), ("5s", 5_000), ("30m", 1_800_000), ("2h", 7_200_000), ("1h30m", 5_400_000), ("1m5ms", 60_005)],
)
def test_a_duration_means_its_milliseconds(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "5 s",
        " 5s",
        "5s\n",
        "s",
        "-5s",
        "1.5s",
        "5S",
        "30m1h",
        "1s1s",
        "\N{ARABIC-INDIC DIGIT FIVE}s",
        "8761h",
        "9" * 99 + "s",
    ],
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: a duration as text"):
        parse_duration_ms(text)


@given(st.integers(0, LONGEST_MS))
def test_every_duration_is_written_so_that_it_is_read_again(duration_ms: int) -> None:
    assert parse_duration_ms(format_duration(duration_ms)) == duration_ms


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("7B", 7),
        ("500kB", 500_000),
        ("500KB", 500_000),
        ("10MB", 10**7),
        ("1GB", 10**9),
        ("2KiB", 2048),
        ("1GiB", 1 << 30),
    ],
)
def test_a_size_means_its_bytes(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "10", "10 MB", "10mb", "1.5MB", "-1B", "MB", "2000GiB"])
def test_anything_else_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: a size as text"):
        parse_size_bytes(text)


@given(st.integers(0, LARGEST_BYTES))
def test_every_size_is_written_so_that_it_is_read_again(size_bytes: int) -> None:
    assert parse_size_bytes(format_size(size_bytes)) == size_bytes


@given(st.text(st.sampled_from("0123456789hmskMGiB"), max_size=8))
def test_a_text_is_a_duration_a_size_or_a_value_error(text: str) -> None:
    for parse in (parse_duration_ms, parse_size_bytes):
        with suppress(ValueError):
            assert parse(text) >= 0
