"""How things are put for people."""

from datetime import datetime

import pytest

from lifefold.interpreters.cli.wording import by_number, clock_time, coming, cut_in_the_middle
from lifefold.interpreters.explain.status import Timer


def test_a_time_of_another_day_has_its_date() -> None:
    """And one of today has none."""
    now = datetime.now().astimezone()
    assert len(clock_time(now.timestamp())) == len("12:34:56.789")
    then = datetime(2024, 2, 29, 12, 0, 1, 500_000).astimezone()
    assert clock_time(then.timestamp()) == "2024-02-29 12:00:01.500"


def test_names_are_sorted_by_their_numbers() -> None:
    """Whatever they begin with."""
    names = ["w-10", "w-2", "2x", "a", "w-1b", "10x"]
    assert sorted(names, key=by_number) == ["2x", "10x", "a", "w-1b", "w-2", "w-10"]


def test_what_comes_next_is_said_in_words() -> None:
    """With the time that is left."""
    assert coming(Timer("SessionTimeout", 8_500), 1_000) == "times out in 7s"
    assert coming(Timer("BackoffElapsed", 1_500), 1_000) == "next try now"
    assert coming(Timer("BackoffElapsed", 500), 1_499) == "next try now"
    assert coming(Timer("BackoffElapsed", 500), 1_500) == "next try due"
    assert coming(Timer("GraceExceeded", 3_000), 1_000) == "killed in 2s"
    assert coming(None, 1_000) == "-"


@pytest.mark.parametrize(
    ("room", "words"), [(9, "abcdefghi"), (8, "abcd…ghi"), (7, "abc…ghi"), (2, "a…"), (1, "…"), (0, "")]
)
def test_a_name_is_cut_in_its_middle(room: int, words: str) -> None:
    """So that its end is there, too."""
    assert cut_in_the_middle("abcdefghi", room) == words
