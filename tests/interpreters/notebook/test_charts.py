"""Charts of simulations: every figure in them is in their words, and their pictures need nothing from a network."""

import re
from typing import Final

import pytest

from lifefold.core import task
from lifefold.interpreters.notebook import charts
from lifefold.interpreters.notebook.displays import BUNDLES
from lifefold.interpreters.notebook.figure import Figure
from lifefold.interpreters.notebook.trial import bars, run_html, run_text
from lifefold.interpreters.simulate import NONE, Tally, campaign, simulate
from lifefold.interpreters.simulate.report import Report, state_times
from lifefold.interpreters.simulate.targets import named

ELSEWHERE: Final = re.compile(r"(?:src|href|url)\s*[=(]|<script|@import", re.IGNORECASE)
"""What loads something."""


@pytest.fixture(scope="module")
def tally() -> Tally:
    """Return what came of some seeds."""
    return campaign("fleet-2x3", range(20))


def drawn(tally: Tally) -> list[Figure]:
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, seed=3)
    return [
        charts.recovery(tally),
        charts.cost(tally),
        charts.sessions(tally),
        charts.amounts("hours", {"one": 1.5, "none": 0.0}, "h"),
        charts.states(target, run, task.in_fleet),
    ]


def test_a_picture_stands_alone_and_is_always_the_same(tally: Tally) -> None:
    """No script, no style sheet, nothing that a page would have to fetch."""
    for figure in drawn(tally):
        picture = figure.svg()
        assert picture.startswith("<svg")
        assert not ELSEWHERE.search(picture)
        assert figure.svg() == picture


def test_words_have_every_number_that_the_picture_has() -> None:
    """How many there are of each, the median, and what 95 % do not pass."""
    words = charts.times("how long", {"this": [50, 100, 101, 90_000], "that": []}).words
    assert words.splitlines() == [
        "how long",
        "  this: 100 ms (median), 1.3 min (95 %)",
        "    up to 100 ms   ██████████████████████████████ 2",
        "    up to 300 ms   ███████████████                1",
        *(f"    up to {each:<8}                                0" for each in ("1 s", "3 s", "10 s", "30 s", "1 min")),
        "    up to 3 min    ███████████████                1",
        "  that: never",
        *(
            f"    up to {each:<8}                                0"
            for each in ("100 ms", "300 ms", "1 s", "3 s", "10 s")
        ),
        *(f"    up to {each:<8}                                0" for each in ("30 s", "1 min", "3 min")),
    ]


def test_what_passes_the_last_step_is_counted_too() -> None:
    """No time is left out, however long it was."""
    spec = charts.times("how long", {"days": [10**9]}).spec
    (values,) = spec["datasets"].values()
    assert [(each["bin"], each["count"]) for each in values] == [("over 24 h", 1)]


def test_every_task_is_in_some_state_at_every_moment() -> None:
    """From the first, when all are open, to the last, when all are closed: nothing goes wrong here."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, faults=NONE, seed=1)
    figure = charts.states(target, run, task.in_fleet)
    (values,) = figure.spec["datasets"].values()
    standing: dict[float, dict[str, int]] = {}
    for each in values:
        standing.setdefault(each["hours"], {})[each["state"]] = each["count"]
    assert {sum(each.values()) for each in standing.values()} == {3}
    assert [each for each in standing[0.0].items() if each[1]] == [("OPEN", 3)]
    assert figure.words.splitlines()[-1].endswith(": 3 CLOSED")


def test_a_run_says_what_happened_in_it_and_where_time_went() -> None:
    """In words, and with a bar for each machine; how quickly it was simulated is no part of it."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, seed=22)
    assert run_text(run).startswith("seed 22: no promise is broken\n")
    assert f"{run.counts.inputs:,} inputs" in run_text(run)
    page = run_html(run)
    assert page.count('fill="#24324a"') == len({machine for (machine, _), spent in run.state_ms.items() if spent})
    assert not ELSEWHERE.search(page)


def test_bars_are_as_long_as_the_time_that_they_stand_for(tally: Tally) -> None:
    """All of a machine's together are the same length."""
    picture = bars(state_times(tally))
    rows: dict[str, float] = {}
    for top, wide in re.findall(r'y="(\d+)" width="([\d.]+)" height="12"', picture):
        rows[top] = rows.get(top, 0.0) + float(wide)
    assert all(abs(each - 420) < 1 for each in rows.values())


def test_a_report_on_a_page_has_no_promise_that_is_not_in_its_words(tally: Tally) -> None:
    """The page says the same as the text, and loads nothing."""
    report = Report(named("fleet-2x3"), tally)
    bundle = BUNDLES[Report](report)
    assert bundle["text/plain"] == str(report)
    assert "no promise is broken in 20 seeds" in bundle["text/html"]
    assert not ELSEWHERE.search(bundle["text/html"])
