"""A desk without logs of its own: the fleets of the machine are there, come by themselves, and go."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from asking_log import LEAVE, WORDS, at_work
from fleet_log import FleetLog
from fleet_sandbox import Sandbox
from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.cli.commands.browsing import logs_of_machine
from lifefold.interpreters.desk import registry
from lifefold.interpreters.web.shelf import MOST_FLEETS
from web_desk import WAIT_S, Served, served
from web_logs import run_of, written

OVER = run_of(2, 4).entries


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is given in a folder without fleets."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def noted(log: Path) -> Path:
    """Note a log as its runner does."""
    registry.note(log, log.stem, log.with_suffix(".toml"))
    return log


def until(desk: Served, fits: Callable[[Any], bool]) -> Any:
    """Return the page of all fleets when it fits."""
    page: Any = None
    for _ in range(WAIT_S * 10):
        page = desk.json("/index.json")
        if fits(page):
            return page
        threading.Event().wait(0.1)
    raise AssertionError(page)


def keys(page: Any) -> list[str]:
    """Return the keys of the fleets that are not over."""
    return [each["at"]["key"] for each in page["fleets"]]


def test_what_waits_is_first_and_fleets_that_are_over_are_last_in_short(tmp_path: Path) -> None:
    noted(at_work(tmp_path / "waits.db", LEAVE).path)
    noted(FleetLog(tmp_path / "rests.db", TaskPlan("one", "do it")).path)
    noted(written(tmp_path / "over.db", OVER))
    with served([], find=logs_of_machine) as desk:
        page = desk.json("/index.json")
        assert keys(page) == ["waits", "rests"]
        assert [each["key"] for each in page["over"]] == ["over"]
        text = desk.get("/").text
        main = text[text.index("<main") :]
        assert main.index("may it run") < main.index('<h2 id="over">Over</h2>') < main.index('href="/fleets/over"')
        assert desk.json("/fleets/over.json")["is_over"]


def test_a_fleet_appears_is_commanded_and_goes(tmp_path: Path) -> None:
    """An open stream tells both, and a log that comes is read on like any other."""
    with served([], find=logs_of_machine) as desk:
        assert keys(desk.json("/index.json")) == []
        assert "No fleet runs or waits" in desk.get("/").text
        with desk.client.stream("GET", "/events") as answer:
            lines = answer.iter_lines()
            log = noted(at_work(tmp_path / "fleet.db", LEAVE, WORDS).path)
            assert _next(lines, "runner")["fleet"] == "fleet"
            page = until(desk, lambda page: keys(page) == ["fleet"])
            assert len(page["fleets"][0]["waits"]) == 2
            desk.give("fleet", {"command": "answer", "name": "ann/Q2", "text": "blue"})
            assert _next(lines, "entries")["fleet"] == "fleet"
            until(desk, lambda page: len(page["fleets"][0]["waits"]) == 1)
            log.unlink()
            assert _next(lines, "gone") == {"fleet": "fleet"}
        assert keys(desk.json("/index.json")) == []
        assert desk.json("/fleets/fleet.json", status=404)["error"] == "there is no fleet 'fleet'"


def _next(lines: Any, name: str) -> Any:
    """Return the data of the next event of a name."""
    is_it = False
    for line in lines:
        if line.startswith("event:"):
            is_it = line == f"event: {name}"
        elif line.startswith("data:") and is_it:
            return json.loads(line.removeprefix("data:"))
    raise AssertionError(name)


def test_a_log_that_takes_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    """An operator removes a log, and a new run begins another one at its path."""
    log = noted(at_work(tmp_path / "fleet.db", LEAVE).path)
    with served([], find=logs_of_machine) as desk:
        assert desk.json("/fleets/fleet.json")["agents"][0]["status"]["task"] == "T1"
        other = FleetLog(tmp_path / "other.db", TaskPlan("other", "do it")).path
        os.replace(other, log)  # noqa: PTH105 - one step
        until(desk, lambda page: keys(page) == ["fleet"] and not page["fleets"][0]["waits"])
        assert desk.json("/fleets/fleet/board.json")["columns"][0]["tasks"][0]["status"]["id"] == "other"


def test_a_named_log_that_is_gone_is_shown_as_it_was_and_said_to_be_gone(tmp_path: Path) -> None:
    log = at_work(tmp_path / "fleet.db", LEAVE).path
    with served([log]) as desk:
        log.unlink()
        page = until(desk, lambda page: page["fleets"][0]["at"]["trouble"])
        assert page["fleets"][0]["at"]["trouble"] == (
            f"the log {log} was removed or replaced; this is its last state that was read"
        )
        assert page["fleets"][0]["waits"]


def test_a_damaged_log_is_named_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("no log <b>")
    noted(tmp_path / "bad.db")
    noted(at_work(tmp_path / "good.db", LEAVE).path)
    with served([], find=logs_of_machine) as desk:
        page = desk.json("/index.json")
        assert keys(page) == ["good"]
        assert [each["log"] for each in page["unread"]] == [str(tmp_path / "bad.db")]
        assert "is not a lifefold log" in page["unread"][0]["why"]
    (tmp_path / "good.db").unlink()
    with served([], find=logs_of_machine) as desk:
        text = desk.get("/", accept="text/html").text
        assert "is not a lifefold log" in text
        assert "No fleet runs or waits" not in text


def test_there_are_no_more_fleets_than_a_desk_can_hold(tmp_path: Path) -> None:
    log = written(tmp_path / "a.db", OVER)
    every = [tmp_path / f"{number}.db" for number in range(MOST_FLEETS + 3)]
    for each in every:
        each.write_bytes(log.read_bytes())
    with served([], find=lambda: every) as desk:
        page = desk.json("/index.json")
        assert (len(page["over"]), page["hidden"]) == (MOST_FLEETS, 3)


def test_serve_without_a_log_shows_what_has_run_on_this_machine(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    sandbox.run()
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            address = serving.stdout.readline().removeprefix("the desk is at").strip()
            with httpx2.Client(base_url=address.partition("/login")[0], timeout=WAIT_S) as client:
                assert client.get(address).status_code == 303
                while (answer := client.get("/index.json")).is_success and answer.json()["reading"]:
                    threading.Event().wait(0.1)
        finally:
            serving.terminate()
    assert answer.is_success, answer.text
    assert [each["log"] for each in answer.json()["over"]] == [str(sandbox.log)]
