"""The work at a task on an open page: it is read again when the task has changed, and kept while it has not."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from asking_log import WORDS, at_work
from browsing import WAIT_MS, apart, chromium, window
from lifefold.core.fleet.worker.question import REF
from lifefold.core.kernel import replace
from lifefold.core.lifecycles import task
from web_desk import served

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as browser:
        expect.set_options(timeout=WAIT_MS)
        yield browser


def test_an_open_difference_is_read_again_when_its_task_has_changed(browser: Browser, tmp_path: Path) -> None:
    """An operator who has rejected work sees the new work, and not the work that was rejected."""
    log = apart(partial(at_work, tmp_path / "fleet.db"))
    with served([log.path]) as desk, window(browser, desk) as of:
        asked: list[str] = []
        of.page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/diff") else None)
        page = of.open("/fleets/fleet/tasks/T1")
        page.get_by_text("what it has changed").click()
        expect(page.locator("#diff")).to_have_attribute("data-loaded", "yes")
        apart(partial(log.happens, "worker/ann", REF, replace(WORDS, id="c", text="Kept?")))
        expect(page.get_by_text("Kept?").first).to_be_visible()
        assert len(asked) == 1
        apart(partial(log.happens, "board", "task:T1", task.Failed(log.task("T1").epoch, "no")))
        expect(page.locator("h1")).to_contain_text("to be retried")
        expect(page.locator("#diff[open]")).to_have_attribute("data-loaded", "yes")
        assert len(asked) == 2


def test_a_difference_that_did_not_arrive_is_asked_for_when_it_is_opened_again(
    browser: Browser, tmp_path: Path
) -> None:
    """The link to its page stays meanwhile."""
    log = apart(partial(at_work, tmp_path / "fleet.db"))
    with served([log.path]) as desk, window(browser, desk) as of:
        page = of.open("/fleets/fleet/tasks/T1")
        page.route("**/diff", lambda route: route.abort())
        work = page.get_by_text("what it has changed")
        with page.expect_event("requestfailed"):
            work.click()
        expect(page.locator("#diff a")).to_be_visible()
        page.unroute("**/diff")
        work.click()
        expect(page.locator("#diff:not([open])")).to_have_count(1)
        work.click()
        expect(page.locator("#diff")).to_have_attribute("data-loaded", "yes")
        expect(page.locator("#diff a")).to_have_count(0)
