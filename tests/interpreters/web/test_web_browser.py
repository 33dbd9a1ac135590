"""The desk in a real browser: live pages, commands, the past, and what must never happen."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from asking_log import LEAVE, WORDS, at_work
from browsing import WAIT_MS, apart, chromium, window
from fleet_log import FleetLog, folded
from fleet_sandbox import Sandbox
from lifefold.core.fleet.worker.question import REF, Answer, QuestionAnswered, Verdict
from lifefold.core.kernel import replace
from web_desk import WAIT_S, Served, served
from web_reports import OWN, report_of

pytestmark = pytest.mark.browser

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as browser:
        expect.set_options(timeout=WAIT_MS)
        yield browser


@pytest.fixture(name="asking")
def log_that_asks(tmp_path: Path, browser: Browser) -> FleetLog:
    """A log with a permission and a question that wait."""
    del browser
    return apart(partial(at_work, tmp_path / "fleet.db", LEAVE, WORDS))


@pytest.fixture(name="desk")
def desk_of_asking(asking: FleetLog) -> Iterator[Served]:
    """Its desk."""
    with served([asking.path]) as desk:
        yield desk


def test_an_operator_answers_a_question_and_the_page_shows_it(browser: Browser, desk: Served, asking: FleetLog) -> None:
    with window(browser, desk) as of:
        page = of.open("/")
        expect(page.get_by_text("may it run `rm -rf build`?")).to_be_visible()
        page.get_by_role("textbox", name="text").fill("blue")
        page.get_by_role("button", name="Answer").click()
        expect(page.locator("#said")).to_contain_text("ann/Q2: answered: its agent goes on")
        expect(page.get_by_text("Which one?")).to_have_count(0)
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("heading", name="Waits for you")).to_have_count(0)
    questions = apart(lambda: folded(asking.path)).record("worker/ann", REF)
    assert [each.answer for each in questions.questions] == [
        Answer(Verdict.ALLOWED),
        Answer(Verdict.ANSWERED, "blue"),
    ]


def test_a_new_entry_changes_an_open_page_and_keeps_what_is_typed(
    browser: Browser, desk: Served, asking: FleetLog
) -> None:
    with window(browser, desk) as of:
        page = of.open("/fleets/fleet/agents/ann")
        page.get_by_role("textbox", name="text").last.fill("half a sent")
        answered = QuestionAnswered(1, Answer(Verdict.ALLOWED))
        apart(partial(asking.happens, "worker/ann", REF, answered))
        expect(page.get_by_role("textbox", name="text").last).to_have_value("half a sent")
        page.get_by_role("textbox", name="text").last.fill("")
        page.locator("h1").click()
        expect(page.locator(".waits > ul > li")).to_have_count(1)


def test_two_operators_see_each_other_and_a_late_command_is_refused(browser: Browser, desk: Served) -> None:
    with window(browser, desk) as first, window(browser, desk) as second:
        one, other = first.open("/"), second.open("/")
        other.get_by_role("textbox", name="text").fill("mine")
        one.get_by_role("textbox", name="text").fill("red")
        one.get_by_role("button", name="Answer").click()
        expect(one.locator(".waits > ul > li")).to_have_count(1)
        other.get_by_role("button", name="Answer").click()
        expect(other.locator("#said")).to_contain_text("ann/Q2: refused: the question is answered already: red")


def test_an_agent_is_paused_resumed_and_sent_a_message(browser: Browser, desk: Served) -> None:
    with window(browser, desk) as of:
        page = of.open("/fleets/fleet/agents/ann")
        page.get_by_role("textbox", name="text").last.fill("look at <b>this</b>")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#said")).to_contain_text("ann: accepted")
        expect(page.get_by_role("cell", name="look at <b>this</b>").first).to_be_visible()
        page.get_by_role("textbox", name="reason").last.fill("lunch")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(".three")).to_contain_text("Pause: lunch")
        page.get_by_role("button", name="Resume").last.click()
        expect(page.locator(".three")).to_contain_text("Run")


def test_the_scrubber_shows_the_past_and_offers_nothing_to_change(browser: Browser, desk: Served) -> None:
    with window(browser, desk) as of:
        page = of.open("/fleets/fleet/agents/ann")
        lit = page.locator("g.box.lit").first
        expect(lit).to_have_attribute("data-key", "Running")
        slider = page.get_by_role("slider", name="position")
        slider.focus()
        slider.press("ArrowLeft")
        expect(page.get_by_role("note")).to_contain_text("The past")
        page.goto(f"{desk.base}/fleets/fleet/agents/ann?at=4")
        expect(page.get_by_role("note")).to_contain_text("after entry 4")
        expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        expect(page.locator("g.box.lit").first).not_to_have_attribute("data-key", "Running")
        page.get_by_role("link", name="now").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_texts_of_others_run_nothing(browser: Browser, tmp_path: Path) -> None:
    log = apart(partial(at_work, tmp_path / "evil.db", replace(WORDS, text=EVIL), replace(LEAVE, subject=EVIL)))
    with served([log.path]) as desk, window(browser, desk) as of:
        for path in ("", "/agents/ann", "/tasks/T1", "/log", "/timeline"):
            page = of.open(f"/fleets/evil{path}")
            expect(page.locator("main img")).to_have_count(0)
            expect(page.locator("main script")).to_have_count(0)
        expect(of.open("/").get_by_text("onerror=alert(2)").first).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_fit_400_pixels_in_the_light_and_in_the_dark(browser: Browser, desk: Served, *, dark: bool) -> None:
    with window(browser, desk, width=400, dark=dark) as of:
        for path in ("/", "/fleets/fleet/board", "/fleets/fleet/agents/ann", "/fleets/fleet/tasks/T1",
                     "/fleets/fleet/timeline", "/fleets/fleet/log", "/machines", "/machines/session"):  # fmt: skip
            page = of.open(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
            paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            assert (paper == "rgb(255, 255, 255)") is not dark


def test_pages_are_used_by_the_keyboard_and_have_names(browser: Browser, desk: Served) -> None:
    with window(browser, desk) as of:
        page = of.open("/")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_be_focused()
        page.get_by_role("button", name="Approve").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#said")).to_contain_text("ann/Q1: approved")
        for path in ("/fleets/fleet/board", "/fleets/fleet/agents/ann", "/fleets/fleet/tasks/T1", "/fleets/fleet/log"):
            nameless = of.open(path).evaluate(
                """[...document.querySelectorAll("input:not([type=hidden]), button, a, table, svg")]
                .filter((each) => !(each.textContent.trim() || each.labels?.length || each.ariaLabel || each.caption))
                .map((each) => each.outerHTML)"""
            )
            assert nameless == []


@pytest.mark.usefixtures("browser")
def test_the_pictures_of_the_documents_are_taken_of_a_real_fleet(tmp_path: Path) -> None:
    """``make pictures`` takes all that the page about the desk shows."""
    script = Path(__file__).parents[3] / "docs" / "take_pictures.py"
    take = [
        sys.executable,
        "-c",
        f"import runpy, pathlib; runpy.run_path({str(script)!r})['main'](pathlib.Path('made'))",
    ]
    subprocess.run(take, cwd=tmp_path, check=True, timeout=5 * WAIT_S)
    page = (script.parent / "fleet" / "browser.md").read_text()
    shown = re.findall(r"\]\(pictures/(\w+\.png)\)", page)
    assert shown
    made = {each.name: each.read_bytes() for each in (tmp_path / "made").iterdir()}
    assert set(shown) <= made.keys()
    assert all(each.startswith(b"\x89PNG") for each in made.values())


def test_a_desk_that_is_gone_is_said_on_its_open_pages(browser: Browser, asking: FleetLog) -> None:
    with served([asking.path]) as desk, window(browser, desk) as of:
        page = of.open("/")
        expect(page.locator("body")).not_to_have_class("lost")
        desk.desk.leave()
        expect(page.locator("body")).to_have_class("lost")


def test_a_running_fleet_is_watched_approved_and_survives_its_runner(browser: Browser, tmp_path: Path) -> None:
    """A real fleet: the board moves by itself, work is approved with its diff, and a dead runner is noticed."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2", gates=("plain-1",))
    sandbox.demand("plain-2", 'approval = "merge"', 'depends_on = ["plain-1"]')
    with sandbox.running() as run:
        run.until("plain-1", "IN_PROGRESS")
        with served([sandbox.log]) as desk, window(browser, desk) as of:
            board = of.open("/fleets/sandbox/board")
            expect(board.get_by_role("region", name="running")).to_contain_text("plain-1")
            with sandbox.at_gate("plain-1"):
                pass
            expect(board.get_by_role("region", name="closed")).to_contain_text("plain-1")
            page = of.open("/")
            expect(page.get_by_text("a runner is at work")).to_be_visible()
            page.get_by_text("the work of plain-2").click()
            expect(page.locator("pre.diff .added").first).to_contain_text("plain-2.txt", ignore_case=True)
            run.signal(signal.SIGKILL)
            expect(page.get_by_text("no runner is at work")).to_be_visible()
            page.get_by_role("button", name="Approve").click()
            expect(page.locator("#said")).to_contain_text("plain-2: approved: it is merged next")
    assert json.loads(sandbox.call("tasks", "--json").stdout)[1]["state"] == "DONE"
    assert "2 of 2 tasks closed" in sandbox.run()


def _press(page: Page, key: str) -> None:
    """Press a key once the page listens: its script is there when it has loaded."""
    page.wait_for_load_state()
    page.keyboard.press(key)


def test_a_counterexample_is_stepped_through_by_keys_and_by_links(browser: Browser, tmp_path: Path) -> None:
    report = apart(lambda: report_of(tmp_path, "own", OWN, ["check", "own:machine", "--depth", "4"]))
    with served([], reports=[report]) as desk, window(browser, desk) as of:
        page = of.open("/reports/own-check")
        page.get_by_role("link", name="step by step").click()
        expect(page.get_by_text("before the first of 3 steps")).to_be_visible()
        for state in ("BuildingPrompt", "Spawning", "Running"):
            _press(page, "ArrowRight")
            picture = page.get_by_role("img", name=f"session: {state} is lit")
            expect(picture).to_be_visible()
            page.wait_for_function("image => image.naturalWidth > 0", arg=picture.element_handle())
        _press(page, "ArrowRight")
        _press(page, "ArrowLeft")
        expect(page.get_by_role("img", name="session: Spawning is lit")).to_be_visible()
        expect(page.get_by_role("region", name="Record of session")).to_contain_text("'do it'")
        page.get_by_role("link", name="session: PrepareWorktree reports WorktreeReady()").click()
        expect(page.get_by_text("step 1 of 3")).to_be_visible()
        page.wait_for_load_state()  # before its style is there, a page is as wide as its pictures
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
