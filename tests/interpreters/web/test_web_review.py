"""A review in a browser while the fleet runs: bad work is rejected and seen better, and a wrong plan is corrected."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browsing import WAIT_MS, chromium, window
from fleet_sandbox import Sandbox
from web_desk import served

pytestmark = pytest.mark.browser

REASON = "it has to name its author"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as browser:
        expect.set_options(timeout=WAIT_MS)
        yield browser


def test_work_is_rejected_and_seen_better_and_a_plan_is_edited_while_it_runs(browser: Browser, tmp_path: Path) -> None:
    """The operator opens no document, and types no command."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2")
    sandbox.demand("plain-1", 'approval = "merge"').demand("plain-2", 'depends_on = ["plain-1"]')
    sandbox.settle('verify = [["test", "-s", "plain-2.txt"]]', 'verify = [["test", "-s", "no-such-file"]]')
    with sandbox.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        with served([sandbox.log]) as desk, window(browser, desk) as of:
            page = of.open("/")
            page.get_by_text("the work of plain-1").click()
            expect(page.locator("pre.diff .added").first).to_contain_text("Write plain-1.txt")
            page.get_by_role("textbox", name="reason").fill(REASON)
            page.get_by_role("button", name="Reject").click()
            expect(page.locator("#said")).to_contain_text("plain-1: rejected: it is tried again")
            page = of.open("/fleets/sandbox/tasks/plain-2")
            page.get_by_text("edit plain-2").click()
            page.get_by_label("verified by these commands").fill("test -s plain-2.txt")
            page.get_by_role("button", name="Change plain-2 so").click()
            expect(page.locator("#said")).to_contain_text("plain-2: edited; change 1 is accepted")
            page = of.open("/fleets/sandbox/tasks/plain-1")
            expect(page.get_by_role("button", name="Approve")).to_be_visible()
            expect(page.get_by_role("region", name="Attempts")).to_contain_text(f"rejected: {REASON}")
            page.get_by_role("region", name="Attempts").get_by_role("link", name="1", exact=True).click()
            expect(page.locator("pre.diff")).not_to_contain_text(REASON)
            page.get_by_role("link", name="what has changed since attempt 1").click()
            expect(page.locator("pre.diff .added").last).to_contain_text(REASON)
            page.get_by_role("button", name="Approve").click()
            expect(page.locator("#said")).to_contain_text("plain-1: approved")
        assert "2 of 2 tasks closed" in run.rest()
    assert sandbox.agents_of("plain-1") == ["agent", "agent"]
