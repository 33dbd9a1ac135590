"""Charts of simulations: every figure in them is in their words, and their pictures need nothing from a network."""

import re
from typing import Any, Final

import msgspec
import pytest

from embedded_drawings import drawings
from lifefold.core.fleet.board import fleet_task
from lifefold.interpreters.campaign import Tally, campaign
from lifefold.interpreters.campaign.findings import SeedFinding
from lifefold.interpreters.campaign.report import Report, duration, state_times
from lifefold.interpreters.notebook import charts
from lifefold.interpreters.notebook.displays import BUNDLES, picture_of
from lifefold.interpreters.notebook.figure import Figure
from lifefold.interpreters.notebook.trial import bars, finding_html, finding_text, run_html, run_text
from lifefold.interpreters.simulate import NONE, Limits, hours, simulate
from lifefold.interpreters.simulate.simulation import Found
from lifefold.interpreters.simulate.story import AROUND
from lifefold.interpreters.targets.simulation_targets import named

ELSEWHERE: Final = re.compile(r"(?:src|href|url)\s*[=(](?!\"data:)|<script|@import", re.IGNORECASE)
"""What loads something. An image that is in its own address does not."""


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
        charts.states(target, run, fleet_task.machine),
    ]


def test_a_picture_stands_alone_and_is_always_the_same(tally: Tally) -> None:
    """No script, no style sheet, nothing that a page would have to fetch."""
    for figure, again in zip(drawn(tally), drawn(tally), strict=True):
        picture = figure.svg()
        assert picture.startswith("<svg")
        assert not ELSEWHERE.search(picture)
        assert again.svg() == picture


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


def test_numbers_and_amounts_are_in_words_too() -> None:
    """Each bar has its number behind it, and is as long as the number says."""
    head, of, *bars_of = charts.counts("sessions", {"tasks": [1, 1, 3]}).words.splitlines()
    assert (head, of.split(",")[0]) == ("sessions", "  tasks: 1.67 (mean)")
    assert [(line.split()[0], line.count("█"), line.split()[-1]) for line in bars_of] == [
        ("1", charts.BAR, "2"), ("2", 0, "0"), ("3", charts.BAR // 2, "1")
    ]  # fmt: skip
    head, *amounts = charts.amounts("hours", {"one": 1.5, "half": 0.75, "none": 0.0}, "h").words.splitlines()
    assert head == "hours"
    assert [(line.split()[0], line.count("█"), " ".join(line.split()[-2:])) for line in amounts] == [
        ("one", charts.BAR, "1.5 h"), ("half", charts.BAR // 2, "0.8 h"), ("none", 0, "0.0 h")
    ]  # fmt: skip


def test_what_passes_the_last_step_is_counted_too() -> None:
    """No time is left out, however long it was."""
    spec = charts.times("how long", {"days": [10**9]}).spec
    (values,) = spec["datasets"].values()
    assert [(each["bin"], each["count"]) for each in values] == [("over 24 h", 1)]


def test_every_task_is_in_some_state_at_every_moment() -> None:
    """From the first, when all are open, to the last, when all are closed: nothing goes wrong here."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, faults=NONE, seed=1)
    figure = charts.states(target, run, fleet_task.machine)
    (values,) = figure.spec["datasets"].values()
    standing: dict[float, dict[str, int]] = {}
    for each in values:
        standing.setdefault(each["after"], {})[each["state"]] = each["count"]
    assert {sum(each.values()) for each in standing.values()} == {3}
    assert [each for each in standing[0.0].items() if each[1]] == [("OPEN", 3)]
    assert figure.words.splitlines()[-2].endswith(": 3 CLOSED")


@pytest.mark.parametrize(("until_ms", "unit"), [(hours(24), "h"), (50_000, "s"), (0, "ms")])
def test_time_is_in_the_unit_that_suits_it(until_ms: int, unit: str) -> None:
    """What takes seconds is not shown in thousandths of an hour."""
    target, limits = named("fleet-2x200"), Limits(until_ms=until_ms, healing_ms=0)
    run = simulate(
        target.subject, opening=target.opening, environment=target.environment, faults=NONE, seed=1, limits=limits
    )
    spec: Any = charts.states(target, run, fleet_task.machine).spec
    assert spec["encoding"]["x"]["title"] == f"virtual time, {unit}"


def test_a_chart_that_ends_before_its_run_says_so() -> None:
    """From the last move on nothing is drawn, and a day is simulated all the same."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, faults=NONE, seed=1)
    spec: Any = charts.states(target, run, fleet_task.machine).spec
    said = spec["title"]["subtitle"]
    assert said.endswith(f"none moves any more; the run ends after {duration(run.until_ms)}")
    assert charts.states(target, run, fleet_task.machine).words.endswith(said)


def test_a_run_says_what_happened_in_it_and_where_time_went() -> None:
    """In words, and with a bar for each machine; how quickly it was simulated is no part of it."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, seed=22)
    assert run_text(run).startswith("seed 22: no property is broken\n")
    assert f"{run.counts.inputs:,} inputs" in run_text(run)
    page = run_html(run)
    drawn = drawings(page)[0]
    assert drawn.count('fill="#24324a"') == len({machine for (machine, _), spent in run.state_ms.items() if spent})
    assert not ELSEWHERE.search(page)


def test_bars_are_as_long_as_the_time_that_they_stand_for(tally: Tally) -> None:
    """All of a machine's together are the same length."""
    times = state_times(tally)
    picture, rows = bars(times), dict[str, float]()
    for top, wide in re.findall(r'y="(\d+)" width="([\d.]+)" height="12"', picture):
        rows[top] = rows.get(top, 0.0) + float(wide)
    assert len(rows) == len(times) > 1
    assert all(abs(each - 420) < 1 for each in rows.values())


def test_below_a_bar_are_its_states_in_its_order_and_its_colours() -> None:
    """All of one hundredth and more, however many; what is less has its name where one points at it."""
    spent = {"small": 9, "rare": 1, **{f"a state with a long name, {number}": 100 for number in range(9)}, "last": 90}
    picture = bars({"machine": spent})
    segments = re.findall(r'height="12" fill="(#\w+)"><title>([^<]+): ', picture)
    named_below = re.findall(r'<circle [^>]*fill="(#\w+)"/>\n<text [^>]*>([^<]+) [\d.]+ %</text>', picture)
    assert [name for _, name in segments] == list(spent)
    assert named_below == [each for each in segments if each[1] not in {"small", "rare"}]


def test_names_below_a_bar_stay_within_the_picture() -> None:
    """What does not fit goes on in another line, and the next bar begins below."""
    picture = bars({name: {f"a state with a long name, {number}": 1 for number in range(9)} for name in ("one", "two")})
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" fill="#57606a">([^<]+)<', picture)
    assert all(float(x) + 5 * len(name) < 510 for x, _, name in places)
    assert len({(x, y) for x, y, _ in places}) == len(places) == 18


def test_a_picture_of_a_finding_numbers_what_happened_as_its_text_does() -> None:
    """Of a long run both have the end alone, and count from there."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, seed=1)
    broken = msgspec.structs.replace(run, found=Found("fleet", "something", "fleet", run.until_ms))
    finding = SeedFinding(target, 1, broken, Limits())
    assert len(run.entries) > AROUND
    assert finding_text(finding).endswith("\n".join(finding.shown.lines()).rstrip())
    drawn = drawings(finding_html(finding, picture_of))[0]
    numbers = {int(each) for each in re.findall(r">(\d+)\. ", drawn)}
    assert numbers
    assert max(numbers) <= AROUND


def test_a_report_on_a_page_has_the_conclusion_of_its_words(tally: Tally) -> None:
    """And loads nothing."""
    report = Report(named("fleet-2x3"), tally)
    bundle = BUNDLES[Report](report)
    assert bundle["text/plain"] == str(report)
    said = "no property is broken in 20 seeds"
    assert [said in bundle[each] for each in ("text/plain", "text/html")] == [True, True]
    assert not ELSEWHERE.search(bundle["text/html"])
