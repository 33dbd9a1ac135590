"""The notebooks: what is committed is what they show."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import nbformat
import pytest

from notebooks import execute

FORMAT: Final[Any] = nbformat
"""It has no types."""

FOLDER: Final = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS: Final = sorted(FOLDER.glob("*.ipynb"))
OF_A_MACHINE: Final = re.compile(r"/(?:home|root|tmp|work|Users|private|var)/|\b0x[0-9a-f]{6,}\b")
"""Paths and addresses of one machine."""


def executed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, str(FOLDER / "execute.py"), *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def test_a_notebook_shows_what_is_committed() -> None:
    """Executed from the beginning, the first has no error and the same texts and pictures; CI executes all of them."""
    ran = executed(NOTEBOOKS[0].name, "--check")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_pictures_with_their_texts_and_nothing_of_one_machine(path: Path) -> None:
    """Its outputs were made in order, name no machine, and can be read without pictures."""
    ran = cells(path)
    assert [cell["execution_count"] for cell in ran] == list(range(1, len(ran) + 1))
    bundles = [output["data"] for cell in ran for output in cell["outputs"] if "data" in output]
    assert any("image/svg+xml" in bundle for bundle in bundles)
    assert all(("image/svg+xml" in bundle) == ("image/png" in bundle) for bundle in bundles)
    assert not any("<svg" in "".join(bundle.get("text/html", ())) for bundle in bundles)
    assert all("".join(bundle["text/plain"]).strip() for bundle in bundles)
    assert not OF_A_MACHINE.search(path.read_text())


def written(folder: Path, source: str, shown: str) -> str:
    """Write a notebook of one cell that has printed something once; return its path."""
    output = {"output_type": "stream", "name": "stdout", "text": shown}
    cell: dict[str, Any] = {
        "cell_type": "code", "id": "one", "metadata": {}, "execution_count": 1, "source": source, "outputs": [output],
    }  # fmt: skip
    path = folder / "one.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return str(path)


def test_what_shows_something_else_is_found_out_and_left_as_it_is(tmp_path: Path) -> None:
    """With ``--check`` a notebook that shows something else fails, and is not written."""
    path = written(tmp_path, "print(2)", "1\n")
    before = Path(path).read_bytes()
    ran = executed(path, "--check")
    assert ran.returncode == 1
    assert ran.stdout.startswith("one.ipynb: shows something else")
    assert Path(path).read_bytes() == before


def test_a_notebook_whose_cell_fails_is_not_written(tmp_path: Path) -> None:
    """The error is shown, and what was shown before stays."""
    path = written(tmp_path, "1 / 0", "1\n")
    before = Path(path).read_bytes()
    ran = executed(path)
    assert ran.returncode == 1
    assert "ZeroDivisionError" in ran.stdout
    assert Path(path).read_bytes() == before


def test_a_notebook_that_needs_more_processor_time_than_its_limit_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if it shows what is committed. The time of a machine that does something else does not count."""
    path = written(tmp_path, "sum(range(10**6)); print(2)", "2\n")
    monkeypatch.setattr(sys, "argv", ["execute.py", path, "--check"])
    assert execute.main() == 0
    monkeypatch.setattr(execute, "BUSY_S", 0)
    assert execute.main() == 1
    assert "at most 0 s are accepted" in capsys.readouterr().out


def test_pixels_are_not_compared_where_there_is_the_svg_of_the_same_picture() -> None:
    """The fonts of a machine make other pixels, and a picture without SVG is compared whole."""

    def shown(**bundle: str) -> str:
        output = FORMAT.v4.new_output(
            "display_data", data={kind.replace("_", "/"): each for kind, each in bundle.items()}
        )
        return execute.shown(FORMAT.v4.new_notebook(cells=[FORMAT.v4.new_code_cell(outputs=[output])]))

    svg = {"image_svg+xml": "<svg/>"}
    assert shown(**svg, image_png="one") == shown(**svg, image_png="other")
    assert shown(**svg, image_png="one") != shown(**svg)
    assert shown(image_png="one") != shown(image_png="other")
