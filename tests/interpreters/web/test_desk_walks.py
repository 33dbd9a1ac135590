"""The desk in a real browser, walked through by an operator: fleets that come, roles, keys, and hostile texts."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from asking_log import LEAVE, at_work
from browsing import WAIT_MS, apart, chromium, window
from lifefold.interpreters.cli.commands.browsing import logs_of_machine
from lifefold.interpreters.desk import registry
from web_desk import served

pytestmark = pytest.mark.browser


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
