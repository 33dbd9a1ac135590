"""Names of files that were chosen to do harm, in a real browser: they are shown, and run nothing."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from asking_log import at_work
from browsing import WAIT_MS, apart, chromium, window
from fleet_sandbox import Sandbox
from web_desk import served

pytestmark = pytest.mark.browser

TAG = "<img src=x onerror=alert(1)>"
NAMES = (
    f"{TAG}.txt",
    '"><svg onload=alert(2)>.txt',
    "<script>alert(3)</script>",  # a folder and a file in it
    "' onmouseover='alert(4).txt",
    "turned\u202etxt.exe",
    "two\nlines <b>bold<.txt",
    "javascript:alert(5)",
    "{{ 7*7 }}.txt",
    "\x1b]0;title\x07.txt",
)
AGENT = """
import pathlib, sys
for name in {names!r}:
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("content of " + name)
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as browser:
        expect.set_options(timeout=WAIT_MS)
        yield browser


def test_names_of_files_in_a_difference_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """The page of the work, the same work within the page of the task, and the output of its verification."""
    sandbox = Sandbox(tmp_path).prepare("plain-1").demand("plain-1", 'approval = "merge"')
    sandbox.settle('[["test", "-s", "plain-1.txt"]]', '[["ls", "-R"]]')
    (tmp_path / "agent.py").write_text(AGENT.format(names=NAMES))
    sandbox.call("run", str(sandbox.fleet), "--no-live", "--no-wait", code=4)
    with served([sandbox.log]) as desk, window(browser, desk) as of:
        page = of.open("/fleets/sandbox/tasks/plain-1/diff")
        shown = page.locator("pre.diff")
        expect(shown).to_contain_text(TAG)
        expect(shown).to_contain_text("<script>alert(3)</script>")
        expect(shown).to_contain_text("{{ 7*7 }}.txt")
        expect(page.locator("details pre").first).to_contain_text(TAG)
        for path, opens in (
            ("/fleets/sandbox/tasks/plain-1/diff", ""),
            ("/fleets/sandbox/tasks/plain-1", "what it has changed"),
            ("/", "the work of plain-1"),
        ):
            page = of.open(path)
            if opens:
                page.get_by_text(opens).click()
            expect(page.locator("pre.diff")).to_contain_text("content of javascript:alert(5)")
            hostile = page.locator(
                "main img, main script, main b:text-is('bold'), main svg[onload], main [onmouseover]"
            )
            expect(hostile).to_have_count(0)
            text = page.locator("main").inner_text()
            assert "\u202e" not in text
            assert "\x1b" not in text


def test_the_place_of_a_log_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    """The path of a log is on the page of all fleets, and its name is in the addresses of its pages."""
    folder = tmp_path / TAG
    folder.mkdir()
    log = apart(partial(at_work, folder / "\"'><svg onload=alert(6)>.db")).path
    assert sys.getfilesystemencoding() == "utf-8"
    with served([], find=lambda: [log]) as desk, window(browser, desk) as of:
        page = of.open("/")
        expect(page.get_by_text(TAG).first).to_be_visible()
        expect(page.locator("main img, svg[onload]")).to_have_count(0)
        page.get_by_role("heading", name="fleet").get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("fleet")
        for name in ("board", "timeline", "log"):
            page.get_by_role("link", name=name, exact=True).click()
            expect(page.get_by_role("heading", level=1)).to_have_text(name.title())
            expect(page.locator("main img, svg[onload]")).to_have_count(0)


def test_a_task_is_edited_on_its_page(browser: Browser, tmp_path: Path) -> None:
    """What the operator has not touched stays as it is, and a hostile prompt runs nothing."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2")
    sandbox.demand("plain-1", 'approval = "merge"').demand("plain-2", 'depends_on = ["plain-1"]')
    sandbox.call("run", str(sandbox.fleet), "--no-live", "--no-wait", code=4)
    before = sandbox.fleet.read_text()
    with served([sandbox.log]) as desk, window(browser, desk) as of:
        page = of.open("/fleets/sandbox/tasks/plain-2")
        page.get_by_text("edit plain-2").click()
        expect(page.get_by_label("prompt")).to_have_value("Write plain-2.txt")
        page.get_by_label("prompt").fill(f"Write it\n{TAG}")
        page.get_by_role("button", name="Change plain-2 so").click()
        expect(page.locator("#said")).to_contain_text("plain-2: edited; change 1 is accepted, and in force")
        expect(page.locator("dd.text")).to_contain_text(TAG)
        expect(page.locator("main img")).to_have_count(0)
        page.get_by_label("priority").fill("1")
        page.get_by_role("button", name="Change plain-2 so").click()
        expect(page.locator("#said")).to_contain_text("plain-2: edited; change 2 is accepted")
    after = sandbox.fleet.read_text()
    assert f'prompt = """\nWrite it\n{TAG}"""\n' in after
    assert "priority = 1\n" in after
    assert after.count("verify") == before.count("verify")
    assert "max_retries" not in after
