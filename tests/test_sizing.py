"""The tables of the page for operators are those of the rules and of the recorded benchmarks."""

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.boards import Measured, Sizes, report
from benchmarks.busy_brain import Costs
from benchmarks.report import markdown

DOCS: Final = Path(__file__).parents[1] / "docs"
LONG: Final = "\n\n### `long`\n\n20 agents; the logs have 1 MB, 50 MB, 500 MB. 5 rounds."


@pytest.fixture(scope="module")
def sizing() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "write_sizing.py"))


def test_the_tables_for_operators_are_written_from_what_is_recorded(sizing: dict[str, Any]) -> None:
    """`docs/write_sizing.py` would change nothing."""
    page = (DOCS / "operating-a-cluster.md").read_text()
    known = sizing["recorded"]((DOCS / "benchmarks.md").read_text())
    assert sizing["page"](page, sizing["counted"](), known) == page


def test_what_a_benchmark_writes_can_be_read(sizing: dict[str, Any]) -> None:
    """The costs of its report are the costs of the page."""
    costs = Costs(4, 0.25, 15, 3)
    sizes = Sizes(agents=2, boards=(1,), until_min=20, last_min=10)
    written = f"\n{markdown(report(Measured(costs, 20, 16.5), sizes))}{LONG}"
    assert sizing["recorded"](written) == (costs, 20, 16.5, 500)
    with pytest.raises(LookupError, match="boards"):
        sizing["recorded"](LONG)


@pytest.mark.parametrize(("entries_per_s", "boards"), [(1, 1), (175, 1), (176, 2), (1_750, 10)])
def test_a_board_is_given_entries_for_seven_tenths_of_its_time(
    sizing: dict[str, Any], entries_per_s: float, boards: int
) -> None:
    """With four milliseconds an entry, a brain decides 175 in 0.7 s."""
    assert sizing["boards_for"](entries_per_s, 4) == boards


def test_the_formulas_of_the_page_are_those_of_its_table(
    sizing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """600 agents with sessions of a minute close ten tasks in a second, and send 100 heartbeats."""
    monkeypatch.setitem(sizing["of_fleets"].__globals__, "FLEETS", ((600, 1),))
    known = sizing["Recorded"](Costs(4, 0.25, 15, 3), 20, 16.5, 500)
    _head, row = sizing["of_fleets"](sizing["Task"](10, 4, 1), known)
    assert row == ("600", "1 min", "600", "100.0", "100", "1,650", "4.32 GB", "1")
