"""A fleet that runs, in a real browser: its question is answered, its agent is paused and told, its past is forked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browsing import WAIT_MS, chromium, window
from fleet_sandbox import Sandbox
from web_desk import served

pytest.importorskip("mcp")

pytestmark = pytest.mark.browser

ASKS = """
import os

import anyio

from lifefold.interpreters.cli.agent_tools.claim import claim_of
from lifefold.interpreters.cli.agent_tools.server import Tools

if os.environ["LIFEFOLD_TASK"] == "plain-1":
    answer = anyio.run(Tools(claim_of(os.environ)).ask_operator, "Which colour?", ["red", "blue"])
    print("the answer is", answer, flush=True)
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as browser:
        expect.set_options(timeout=WAIT_MS)
        yield browser


def test_a_running_fleet_is_answered_paused_told_and_forked_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    """The agent asks from within its session, the second task gets the message, and the fork has no answer yet."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2", repository=False)
    sandbox.fleet.write_text(f'{sandbox.fleet.read_text()}\n[fleet.questions]\ntimeout = "30m"\n')
    sandbox.demand("plain-2", 'depends_on = ["plain-1"]', 'approval = "merge"')
    agent = tmp_path / "agent.py"
    agent.write_text(ASKS + agent.read_text())
    with sandbox.running() as run:
        run.until("agent asks: Which colour?")
        with served([sandbox.log]) as desk, window(browser, desk) as of:
            page = of.open("/")
            expect(page.get_by_text("agent asks: Which colour?")).to_be_visible()
            asked = desk.json("/fleets/sandbox.json")["at"]["seq"]
            page = of.open("/fleets/sandbox/tasks/plain-2")
            page.get_by_role("textbox", name="text").last.fill("mind the gap")
            page.get_by_role("button", name="Send plain-2 a message").click()
            expect(page.locator("#said")).to_contain_text("plain-2: ")
            page = of.open("/")
            page.get_by_role("textbox", name="text").fill("blue")
            page.get_by_role("button", name="Answer").click()
            expect(page.locator("#said")).to_contain_text("agent/Q1: answered: its agent goes on")
            expect(page.get_by_text("plain-2 is done and waits for your approval")).to_be_visible()
            page = of.open("/fleets/sandbox/agents/agent?session=1")
            expect(page.locator("#printed")).to_contain_text("the answer is blue")
            page.get_by_role("textbox", name="reason").fill("lunch")
            page.get_by_role("button", name="Pause").click()
            expect(page.locator(".three")).to_contain_text("Pause: lunch")
            page.get_by_role("button", name="Resume").last.click()
            expect(page.locator(".three")).not_to_contain_text("Pause")
            page = of.open(f"/fleets/sandbox?at={asked}")
            expect(page.get_by_text("agent asks: Which colour?")).to_be_visible()
            expect(page.get_by_role("button", name="Answer")).to_have_count(0)
            with page.expect_download() as download:
                page.get_by_role("link", name="fork here").click()
            fork = tmp_path / "fork.db"
            download.value.save_as(fork)
            page = of.open("/")
            page.get_by_role("button", name="Approve").click()
            expect(page.locator("#said")).to_contain_text("plain-2: approved")
        assert "2 of 2 tasks closed" in run.rest()
    assert "! agent asks: Which colour?" in sandbox.call("status", "--db", str(fork)).stdout
    assert "mind the gap" in (tmp_path / ".lifefold/sandbox.db.files/worktrees/plain-2/plain-2.txt").read_text()
