"""A browser for tests of the desk: Debian's Chromium, driven by Playwright, that may ask nothing but the desk."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from web_desk import WAIT_S, Served

T = TypeVar("T")

CHROMIUM: Final = Path("/usr/bin/chromium")
WAIT_MS: Final = WAIT_S * 1_000

_QUIET: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Generator[Browser]:
    """Start the browser; skip the test where it is missing."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(_QUIET))
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A page of a logged-in browser, with what must not happen: foreign requests, dialogs, errors of the page."""

    def __init__(self, page: Page, desk: Served) -> None:
        self.page = page
        self.desk = desk
        self.troubles: list[str] = []
        page.set_default_timeout(WAIT_MS)
        page.on("request", lambda request: self._must_be_own(request.url))
        page.on("dialog", lambda dialog: self.troubles.append(f"dialog: {dialog.message}"))
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", lambda message: self._must_be_quiet(message.type, message.text))

    def _must_be_own(self, url: str) -> None:
        if not url.startswith(f"{self.desk.base}/"):
            self.troubles.append(f"request: {url}")

    def _must_be_quiet(self, kind: str, text: str) -> None:
        if kind == "error" and "Content Security Policy" in text:
            self.troubles.append(text)

    def open(self, path: str) -> Page:
        """Open a page of the desk."""
        self.page.goto(self.desk.base + path)
        return self.page


@contextmanager
def window(
    browser: Browser, desk: Served, *, width: int = 1_200, height: int = 900, dark: bool = False
) -> Generator[Window]:
    """Open a window of an operator who has followed the printed address; nothing strange may happen in it."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    try:
        opened = Window(context.new_page(), desk)
        opened.page.goto(desk.desk.address)
        yield opened
        assert opened.troubles == []
    finally:
        context.close()


def apart(work: Callable[[], T]) -> T:
    """Return what a function returns in a thread of its own: Playwright has an event loop in this one."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]
