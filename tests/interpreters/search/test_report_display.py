"""A report as a test runner and a notebook show it."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

from lifefold.core.fleet.board import worker_slot
from lifefold.core.kernel import always
from lifefold.interpreters.check import Report, check

SLOTS = """
from lifefold.core.fleet.board import worker_slot
from lifefold.core.kernel import always
from lifefold.interpreters.check import check

kept = worker_slot.machine.with_properties(
    always("no slot is <gone>", lambda entity: entity.state is not worker_slot.State.GONE)
)


def test_ok():
    assert check(kept).ok


def test_broken():
    assert not check(kept).broken()


def test_report():
    report = check(kept)
    assert report.ok, str(report)
"""


KEPT: Final = worker_slot.machine.with_properties(
    always("no slot is <gone>", lambda entity: entity.state is not worker_slot.State.GONE)
)


@cache
def held() -> Report:
    """Return a report in which every property holds."""
    return check(worker_slot.machine)


@cache
def broken() -> Report:
    """Return a report of what does not keep a property."""
    return check(KEPT)


def test_a_test_runner_says_which_property_is_broken(tmp_path: Path) -> None:
    """Without a plugin: an assertion on a report names what is broken, and with the report as text it shows the way."""
    (tmp_path / "test_slots.py").write_text(SLOTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_slots.py")
    by_hand = {name: value for name, value in os.environ.items() if name not in {"CI", "BUILD_NUMBER"}}
    ran = subprocess.run(command, cwd=tmp_path, env=by_hand, capture_output=True, text=True, timeout=120, check=False)
    assert "3 failed" in ran.stdout
    assert f"where False = <worker_slot: {broken().conclusion()}, ✗ no slot is <gone>: broken>.ok" in ran.stdout
    assert "assert not (<✗ always: worker_slot: no slot is <gone>: broken>,)" in ran.stdout
    words = " ".join(word for line in ran.stdout.splitlines() for word in line.removeprefix("E").split())
    way = words.partition("1. operator says ")[2]
    assert way.startswith("WorkerGone(")
    assert way.partition("Away")[2].startswith(" → Gone")


class Tags(HTMLParser):
    """Sees whether every element ends, and whether anything comes from somewhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "img"}
        assert {name for name, _ in attrs} <= {"style", "open"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("checked", [broken, held])
def test_a_notebook_shows_all_of_it(checked: Callable[[], Report]) -> None:
    """As text, and as HTML that stands alone: every property, what came of it, and the way to where it is broken."""
    report = checked()
    shown = report._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/plain"] == str(report)
    tags = Tags()
    tags.feed(shown["text/html"])
    assert tags.open == []
    assert all(verdict.words(of="worker_slot") in tags.text for verdict in report.verdicts)
    assert report.conclusion() in tags.text
    assert ("operator says" in tags.text) is not report.ok
