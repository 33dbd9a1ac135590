"""The front end of the player in Chromium: its buttons and its tree give the requests that the player answers."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from browsing import WAIT_MS, chromium
from lifefold.core.lifecycles import session
from lifefold.interpreters.notebook import player
from lifefold.interpreters.notebook.play import words
from lifefold.interpreters.notebook.player import Player

SOURCE: Final = Path(player.__file__).with_name("player.js")

_BEGIN: Final = """
const heard = {};
window.model = {
  shown: null,
  get: () => window.model.shown,
  set: (name, value) => { window.model.asked = value; },
  save_changes: () => { window.ask(window.model.asked).then(window.take); },
  on: (name, listener) => { heard[name] = listener; },
};
window.take = (shown) => { window.model.shown = shown; heard["change:shown"](); };
"""


@pytest.fixture(name="shown")
def page_of_a_player() -> Iterator[tuple[Page, Player]]:
    """A page with the front end of a player; a model stands for the connection of a notebook."""
    subject = player.play(session.machine)

    def answer(asked: list[Any]) -> Any:
        subject.asked = asked
        return subject.shown

    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(WAIT_MS)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        untyped: Any = page  # the annotation of this method is incomplete
        untyped.expose_function("ask", answer)
        page.evaluate(f"async () => {{ {_BEGIN} }}")
        page.evaluate(
            """async ([source, shown]) => {
                const front = await import("data:text/javascript," + encodeURIComponent(source));
                window.model.shown = shown;
                front.default.render({ model: window.model, el: document.body });
            }""",
            [SOURCE.read_text(), subject.shown],
        )
        yield page, subject
        assert errors == []


def test_a_button_gives_its_input_and_a_line_of_the_tree_goes_to_its_world(shown: tuple[Page, Player]) -> None:
    page, subject = shown
    begun = subject.play
    first = begun.choices()[0]
    page.get_by_role("button", name=words(first), exact=True).click()
    expect(page.get_by_role("button", name="← back")).to_be_enabled(timeout=WAIT_MS)
    assert subject.play.now != begun.now
    assert [each.world for each in subject.play.nodes] == [each.world for each in begun.give(first).nodes]
    picture = page.locator(".lifefold-picture svg").inner_html()

    page.get_by_role("button", name="← back").click()
    expect(page.get_by_role("button", name="← back")).to_be_disabled(timeout=WAIT_MS)
    assert subject.play.now == begun.now
    assert page.locator(".lifefold-picture svg").inner_html() != picture
    lit = page.locator(".lifefold-chart .box.lit")
    expect(lit).to_have_attribute("data-key", "Initializing", timeout=WAIT_MS)

    page.get_by_role("button", name=re.compile(r"^\W*1\.")).click()
    expect(page.get_by_role("button", name="← back")).to_be_enabled(timeout=WAIT_MS)
    assert page.locator(".lifefold-picture svg").inner_html() == picture
