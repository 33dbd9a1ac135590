"""Tables for terminals: columns that fit are whole, and others are left out in a stated order."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.cli.fitting import NAME_CHARACTERS, fitted, terminal_width, wrapped
from lifefold.interpreters.cli.wording import columns

ROWS = [("AGENT", "STATE", "SESSION", "TASK"), ("coder-1", "Running", "3", "a-long-name-of-a-task-of-the-fleet-7")]


def fit(width: int | None) -> str:
    return fitted(ROWS, width, first_out=("SESSION",), shortened=("TASK", "AGENT"))


def test_a_table_that_fits_is_whole_and_so_is_one_for_a_file() -> None:
    assert fit(None) == fit(200) == columns(ROWS)


def test_a_column_is_left_out_and_named_before_a_name_is_cut() -> None:
    assert fit(60).splitlines()[-1] == "left out here: SESSION"
    assert "a-long-name-of-a-task-of-the-fleet-7" in fit(60)


def test_a_name_is_cut_in_the_middle_because_its_end_tells_it_apart() -> None:
    line = fit(40).splitlines()[1]
    assert len(line) <= 40
    assert line.endswith("-7")
    assert "…" in line


@given(
    st.integers(1, 200),
    st.lists(st.tuples(*[st.text("abcdef", max_size=40)] * 4), min_size=1, max_size=5),
)
def test_a_table_is_never_wider_than_its_shortest_form(width: int, rows: list[tuple[str, ...]]) -> None:
    heads = ("A", "B", "C", "D")
    lines = fitted([heads, *rows], width, first_out=heads[:2], shortened=heads[2:]).splitlines()
    table = lines[:-1] if lines[-1].startswith("left out") else lines
    assert max(map(len, table)) <= max(width, 2 * NAME_CHARACTERS + 2)


def test_only_a_terminal_has_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    for is_terminal, width in ((True, 77), (False, None)):
        monkeypatch.setattr("sys.stdout.isatty", partial(bool, is_terminal))
        assert terminal_width() == width


def test_a_line_is_cut_between_words_so_that_a_path_can_be_copied() -> None:
    line = "  the log is /home/a-folder/of-a/project-with-hyphens/.lifefold/fleet.db and it is whole"
    found = wrapped(line, 40)
    assert "/home/a-folder/of-a/project-with-hyphens/.lifefold/fleet.db" in [each.strip() for each in found]
    assert all(len(each) <= 40 or "/home/" in each for each in found)
    assert found[0] == "  the log is"
    assert all(each.startswith("    ") for each in found[1:])
    assert wrapped(line, None) == [line]


@given(st.text("ab -/", max_size=120), st.integers(5, 60))
def test_a_cut_line_has_all_its_words(line: str, width: int) -> None:
    assert [word for part in wrapped(line, width) for word in part.split()] == line.split()
