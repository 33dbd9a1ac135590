"""The desk in a real browser, walked through by an operator: fleets that come, roles, keys, and hostile texts."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from asking_log import LEAVE, at_work
from browsing import WAIT_MS, apart, chromium, window
from lifefold.interpreters.cli.commands.browsing import logs_of_machine
from lifefold.interpreters.desk import registry
from web_desk import Served, served

pytestmark = pytest.mark.browser

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as browser:
        expect.set_options(timeout=WAIT_MS)
        yield browser


def test_a_fleet_that_begins_appears_on_the_open_page_and_is_answered_there(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served([], find=logs_of_machine) as desk, window(browser, desk) as of:
        page = of.open("/")
        expect(page.get_by_text("No fleet runs or waits.")).to_be_visible()
        log = apart(partial(at_work, tmp_path / "fleet.db", LEAVE)).path
        registry.note(log, "shop", tmp_path / "shop.toml")
        expect(page.get_by_role("heading", name="fleet")).to_be_visible()
        page.get_by_role("button", name="Approve").click()
        expect(page.locator("#said")).to_contain_text("ann/Q1: approved")
        log.unlink()
        expect(page.get_by_text("No fleet runs or waits.")).to_be_visible()


def test_an_operator_adds_a_task_that_waits_for_another_and_runs_nothing_of_its_texts(
    browser: Browser, tmp_path: Path
) -> None:
    log = apart(lambda: at_work(tmp_path / "fleet.db", LEAVE)).path
    with served([log]) as desk, window(browser, desk) as of:
        page = of.open("/fleets/fleet/board")
        expect(page.get_by_role("region", name="running")).to_contain_text("looked up")
        page.get_by_text("add a task").click()
        page.get_by_label("id", exact=True).fill("T2")
        page.get_by_label("prompt").fill(EVIL)
        page.get_by_label("after these tasks").fill("T1\n")
        page.get_by_role("button", name="Add").click()
        expect(page.locator("#said")).to_contain_text("T2: ")
        expect(page.get_by_role("region", name="not begun")).to_contain_text("waits for T1 running")
        page.get_by_label("id", exact=True).fill("T2")
        page.get_by_label("prompt").fill("again")
        page.get_by_role("button", name="Add").click()
        expect(page.locator("#said")).to_contain_text("--id: there is a task T2 already; accepted: another id")
        page = of.open("/fleets/fleet/tasks/T2")
        expect(page.get_by_text("onerror=alert(2)").first).to_be_visible()
        expect(page.locator("main img, main script")).to_have_count(0)


NAMELESS = re.compile(
    r"^\s*- (button|link|textbox|combobox|region|table|slider|navigation|img|checkbox)(:| \[|$)", re.MULTILINE
)


@pytest.fixture(name="desk")
def desk_of_asking(browser: Browser, tmp_path: Path) -> Iterator[Served]:
    """The desk of a log with a permission that waits."""
    del browser
    with served([apart(lambda: at_work(tmp_path / "fleet.db", LEAVE)).path]) as desk:
        yield desk


@pytest.mark.parametrize(
    "path",
    ["/", "/fleets/fleet", "/fleets/fleet?at=4", "/fleets/fleet/board", "/fleets/fleet/agents/ann",
     "/fleets/fleet/tasks/T1", "/fleets/fleet/timeline", "/fleets/fleet/log", "/machines", "/machines/session"],
)  # fmt: skip
def test_the_accessibility_tree_has_one_heading_and_a_name_for_each_role(
    browser: Browser, desk: Served, path: str
) -> None:
    with window(browser, desk) as of:
        page = of.open(path)
        expect(page.get_by_role("main")).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page.get_by_role("navigation", name="Fleets")).to_have_count(1)
        assert NAMELESS.findall(page.locator("body").aria_snapshot()) == []


def test_the_keyboard_alone_reaches_a_decision_and_takes_it(browser: Browser, desk: Served) -> None:
    with window(browser, desk) as of:
        page = of.open("/")
        for _ in range(60):
            page.keyboard.press("Tab")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", page.evaluate("document.activeElement.outerHTML")
            if page.evaluate("document.activeElement.textContent") == "Approve":
                break
        page.keyboard.press("Enter")
        expect(page.locator("#said")).to_contain_text("ann/Q1: approved")


@pytest.mark.parametrize(
    "what", ["main a:text('T1')", "[name=reason]", "[role=region]", "button:text('Reject')", "main"]
)
def test_a_page_that_is_brought_up_to_date_keeps_the_focus(browser: Browser, desk: Served, what: str) -> None:
    with window(browser, desk) as of:
        page = of.open("/")
        part = page.locator(what).first
        part.focus()
        before = part.element_handle()
        page.evaluate("refresh()")
        page.wait_for_function("part => !part.isConnected", arg=before)
        expect(part).to_be_focused()


def test_a_page_of_the_past_is_forked_by_its_link(browser: Browser, desk: Served) -> None:
    with window(browser, desk) as of:
        page = of.open("/fleets/fleet/tasks/T1?at=4")
        with page.expect_download() as download:
            page.get_by_role("link", name="fork here").click()
        assert download.value.suggested_filename == "fleet-at-4.db"
        assert Path(download.value.path()).read_bytes().startswith(b"SQLite format 3")
