"""The log in a browser tells the story by default, as ``lifefold log`` does, and every transition with a switch."""

import html
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from fleet_log import FleetLog
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.web.app import application
from lifefold.interpreters.web.drawing import Scale, ticks
from lifefold.interpreters.web.journal import Choice
from lifefold.interpreters.web.log_page import log_page
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.overview import overview
from lifefold.interpreters.web.shelf import Shelf
from lifefold.interpreters.web.structs import Lane, Span, TimelinePage
from lifefold.interpreters.web.telling import Moment
from lifefold.interpreters.web.token import Token
from web_desk import Served, served
from web_logs import run_of, written

ENTRIES = run_of(2, 4).entries


@pytest.fixture(name="log")
def log_of_two_agents(tmp_path: Path) -> Path:
    """A task that has failed for good, and one at which another agent works."""
    log = FleetLog(
        tmp_path / "fleet.db",
        TaskPlan("one", "do it", max_retries=0),
        TaskPlan("two", "do it"),
        agents=(AgentPlan("ann"), AgentPlan("bob")),
    )
    return log.failed("one", "no <b>way</b>").claimed("two", "bob").path


@pytest.fixture(name="desk")
def desk_of_log(log: Path) -> Iterator[Served]:
    """Its desk."""
    with served([log]) as desk:
        yield desk


def printed(log: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """Return the lines of ``lifefold log``, with single spaces and without their dates and times."""
    main(["log", "--db", str(log), *options])
    return [" ".join(line.split()[2:]) for line in capsys.readouterr().out.splitlines()]


def told(page: Any) -> list[str]:
    """Return the same lines of a page, the oldest first."""
    lines = [
        f"{each['about']} {each['said']}{' (by ' + each['by'] + ')' if each['by'] else ''}" for each in page["story"]
    ]
    return [" ".join(each.split()) for each in lines[::-1]]


@pytest.mark.parametrize(
    ("query", "options"), [("", ()), ("task=one", ("--task", "one")), ("agent=bob", ("--agent", "bob"))]
)
def test_the_story_has_the_words_of_the_command(
    desk: Served, log: Path, capsys: pytest.CaptureFixture[str], query: str, options: tuple[str, ...]
) -> None:
    page = desk.json(f"/fleets/fleet/log.json?{query}")
    assert (page["is_all"], page["lines"]) == (False, [])
    assert told(page) == printed(log, capsys, *options)
    assert any("begun by bob" in each for each in told(page)) is (query != "task=one")


def test_a_switch_shows_every_transition_and_keeps_what_was_chosen(desk: Served) -> None:
    text = desk.get("/fleets/fleet/log?task=one", accept="text/html").text
    assert "no &lt;b&gt;way&lt;/b&gt;" in text
    assert "CLAIMED → " not in html.unescape(text)
    (switch,) = re.findall(r'href="(\?[^"]*all=1)"', text)
    everything = html.unescape(desk.get(f"/fleets/fleet/log{html.unescape(switch)}", accept="text/html").text)
    assert "CLAIMED → <b>IN_PROGRESS</b>" in everything
    assert "bob" not in "".join(re.findall(r"<td>.*?</td>", everything))
    page = desk.json("/fleets/fleet/log.json?all=1&task=one")
    assert page["is_all"]
    assert {each["name"] for each in page["lines"] if each["machine"] == "task"} == {"one"}


@pytest.mark.parametrize("all_", ["", "&all=1"])
def test_older_lines_follow_without_a_gap_and_without_a_repetition(tmp_path: Path, all_: str) -> None:
    """A page that ends within an entry has all lines of that entry."""
    with Shelf([written(tmp_path / "fleet.db", ENTRIES)]) as shelf:
        log = shelf.logs["fleet"]
        log.take()
        every = log.journal.lines if all_ else log.journal.story
        seen: list[Any] = []
        before = 0
        while True:
            page = log_page(View(log), Choice(), before, most=3, is_all=bool(all_))
            seen += page.lines if all_ else page.story
            before = page.before
            if not before:
                break
        assert seen[::-1] == list(every)


def test_the_page_of_a_fleet_ends_with_its_story(desk: Served) -> None:
    page = desk.json("/fleets/fleet.json")
    assert page["story"] == desk.json("/fleets/fleet/log.json")["story"][: len(page["story"])]
    text = desk.get("/fleets/fleet", accept="text/html").text
    assert '<tr class="failed">' in text


def test_a_broken_fleet_does_not_hide_the_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paths = [FleetLog(tmp_path / f"{name}.db", TaskPlan("one", "do it")).path for name in ("good", "bad")]
    with Shelf(paths) as shelf:
        for log in shelf.logs.values():
            log.take()
        broken = shelf.logs["bad"]
        broken.now = Moment(1, 0, {"board": None}, broken.now.account, is_now=True)  # type: ignore[dict-item]
        page = overview(shelf)
    assert [each.at.key for each in page.fleets] == ["good"]
    (unread,) = page.unread
    assert unread.why.startswith("fleet: a mistake of lifefold has broken its page (AttributeError)")
    assert "Traceback" in capfd.readouterr().err


def test_a_page_whose_log_is_being_read_is_asked_for_again(log: Path, tmp_path: Path) -> None:
    """By the browser itself, with and without the script of the page."""

    async def asked() -> list[httpx2.Response]:
        with Shelf([log]) as shelf:
            token = Token(tmp_path / "tokens", 1)
            transport = httpx2.ASGITransport(application(shelf, token, ["127.0.0.1:1"]))
            bearer = {"authorization": f"Bearer {token.secret}"}
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:1", headers=bearer) as client:
                before = await client.get("/fleets/fleet")
                shelf.logs["fleet"].take()
                return [before, await client.get("/fleets/fleet"), await client.get("/fleets/nowhere")]

    before, after, nowhere = anyio.run(asked)
    assert (before.status_code, before.headers["refresh"], before.headers["retry-after"]) == (503, "1", "1")
    assert "is being read" in before.text
    for each, status in ((after, 200), (nowhere, 404)):
        assert each.status_code == status
        assert "refresh" not in each.headers


def test_a_timeline_has_an_axis_and_a_legend(desk: Served) -> None:
    text = desk.get("/fleets/fleet/timeline", accept="text/html").text
    legend = text[text.index('<ul class="legend"') :].partition("</ul>")[0]
    states = dict(re.findall(r"</svg> (.*?) <small>(\w+)</small>", legend))
    assert states["failed"] == "FAILED"
    assert states["not begun"] == "OPEN"
    assert states["idle"] == "Idle"  # their sessions are prepared, and no worker has a task
    assert "nothing happens" in legend
    assert len(re.findall(r'<text class="time"', text)) >= 1


@pytest.mark.parametrize("seconds", [0, 1, 59, 3_600, 86_400, 40 * 86_400])
def test_the_times_of_an_axis_are_round_rise_and_leave_room(seconds: int) -> None:
    begin = 1_700_000_123_456
    end = begin + seconds * 1_000
    idle = ((begin + 10_000, end - 10_000),) if seconds == 3_600 else ()
    span = Span(begin, end, "OPEN", "", 1)
    page = TimelinePage(None, begin, end, (Lane("task", "one", (span,)),), 0, idle)  # type: ignore[arg-type]
    found = [x for x, _ in ticks(page, Scale(page))]
    assert found[0] == 140
    assert all(then - first >= 90 for first, then in pairwise(found))
    assert len(found) <= 12
    assert len(found) >= (4 if seconds in {59, 86_400, 40 * 86_400} else 1)
