"""A real JupyterLab in Chromium: the player with its buttons, and the committed notebooks while not trusted."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, expect

from browsing import WAIT_MS, chromium
from jupyter import FORMAT, Lab, jupyter_lab
from web_desk import WAIT_S

pytest.importorskip("jupyterlab", reason="JupyterLab is missing: pip install 'lifefold[test]'")
pytestmark = pytest.mark.browser

NOTEBOOKS: Final = sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb"))

LOADED: Final = """
%load_ext lifefold.interpreters.notebook
from lifefold.core.lifecycles import session
from lifefold.interpreters.notebook.player import play
from lifefold.interpreters.targets.simulation_targets import named
"""
PLAYED: Final = {
    "machine": (LOADED, "play(session.machine)"),
    "system": (LOADED, 'play(named("fleet").subject, named("fleet").opening)'),
}
"""The cells of notebooks."""

SMALL: Final = "2-your-own-machine"
"""The committed notebook that is always opened."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for all tests."""
    with chromium() as browser, jupyter_lab(browser, tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def run_all(panel: Locator, cells: int) -> None:
    """Run the cells as a user of the keyboard does, one after the other."""
    expect(panel.page.get_by_text(re.compile(r"^Python 3 .*\| Idle$"))).to_be_visible(timeout=WAIT_MS)
    panel.locator(".jp-Cell .cm-content").first.click()
    expect(panel.locator(".jp-Notebook.jp-mod-editMode")).to_be_visible(timeout=WAIT_MS)
    for number in range(1, cells + 1):
        panel.page.keyboard.press("Shift+Enter")
        prompt = panel.locator(".jp-CodeCell .jp-InputPrompt").nth(number - 1)
        expect(prompt).to_have_text(f"[{number}]:", timeout=WAIT_MS)


def drawn(path: Path, *, html: bool = True) -> int:
    """Return the number of pictures that the outputs of a notebook have, with or without those within HTML."""
    cells: Any = FORMAT.read(path, as_version=4).cells
    bundles = [output["data"] for cell in cells for output in cell.get("outputs", ()) if "data" in output]
    return sum(("image/png" in each) + html * each.get("text/html", "").count("<img") for each in bundles)


def test_the_small_notebook_has_pictures_of_both_forms() -> None:
    """So it stands for the others, which only campaigns open."""
    (path,) = (each for each in NOTEBOOKS if each.stem == SMALL)
    assert 0 < drawn(path, html=False) < drawn(path)


@pytest.mark.parametrize("name", ["machine", "system"])
def test_a_play_with_a_branch_is_written_as_a_test_that_passes(lab: Lab, name: str, tmp_path: Path) -> None:
    """Buttons give inputs and step back; the button for the test writes the branch that is shown."""
    panel = lab.write(f"{name}.ipynb", *PLAYED[name])
    run_all(panel, len(PLAYED[name]))
    output = panel.locator(".jp-OutputArea-output").first
    buttons, back = output.get_by_role("button"), output.get_by_role("button", name="← back")
    inputs = output.get_by_role("button", name=re.compile(r"^(?!\W*\d+\.|← back|as test)"))
    expect(back).to_be_disabled(timeout=WAIT_MS)

    inputs.nth(0).click()
    expect(buttons.filter(has_text=re.compile(r"^→\s*1\."))).to_be_visible(timeout=WAIT_MS)
    back.click()
    expect(buttons.filter(has_text=re.compile(r"^→\s*0\."))).to_be_visible(timeout=WAIT_MS)
    inputs.nth(1).click()
    expect(buttons.filter(has_text=re.compile(r"^→\s*2\."))).to_be_visible(timeout=WAIT_MS)
    expect(buttons.filter(has_text=re.compile(r"^\s*1\."))).to_be_visible(timeout=WAIT_MS)
    shown = ".lifefold-chart .box.lit" if name == "machine" else ".lifefold-chart .signal"
    expect(output.locator(shown)).to_have_count(1, timeout=WAIT_MS)
    output.get_by_role("button", name="as test").click()
    expect(output.locator("pre")).to_contain_text("def test_", timeout=WAIT_MS)

    written = tmp_path / "test_played.py"
    written.write_text(output.locator("pre").inner_text())
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(written))
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "path",
    [pytest.param(each, id=each.stem, marks=() if each.stem == SMALL else pytest.mark.campaign) for each in NOTEBOOKS],
)
def test_a_notebook_that_is_not_trusted_shows_all_its_pictures(lab: Lab, path: Path) -> None:
    """As after a clone: nothing has been run, and each picture is an image with its pixels."""
    shutil.copy(path, lab.root)
    panel = lab.open(path.name)
    expect(lab.page.get_by_title("Notebook not trusted")).to_be_visible(timeout=WAIT_MS)
    images = panel.locator(".jp-OutputArea-output img")
    expect(images).to_have_count(drawn(path), timeout=WAIT_MS)
    for image in images.all():
        image.scroll_into_view_if_needed()
        expect(image).to_be_visible(timeout=WAIT_MS)
        assert image.evaluate("async image => { await image.decode(); return image.naturalWidth; }") > 0
    expect(panel.get_by_text("untrusted")).to_have_count(0)
