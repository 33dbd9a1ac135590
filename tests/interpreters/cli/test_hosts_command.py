"""The hosts of a fleet on several machines, in ``hosts``, ``status`` and ``why``, and in the picture of a terminal."""

import io
import json
import os
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from rich.console import Console

from asking_log import LEAVE, at_work
from lifefold.interpreters.cli import host_lines, logs
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.watch_keys import Screen
from lifefold.interpreters.cli.watch_picture import WatchPicture
from lifefold.interpreters.cli.watched import Followed
from lifefold.interpreters.fleet_runner.blocked_merges import Wait
from lifefold.interpreters.fleet_runner.hosts import HOST, HostSaid, HostStatus, Pool, SessionThere
from lifefold.interpreters.store import SqliteStore, peek_log

SAID = HostSaid("m1.example", 7, 1, 60_000_000, room=4, pools=(Pool("default", 4, 0),))


def speaks(log: Path, name: str, **more: Any) -> None:
    """Let a host say something."""
    said = msgspec.structs.replace(SAID, **more)
    with SqliteStore.peek(log) as store:
        anyio.run(store.say, HOST + name, msgspec.json.encode(said).decode())


@pytest.fixture(name="log")
def _log(tmp_path: Path) -> Path:
    """A fleet whose agent ann has a session that asks something."""
    return at_work(tmp_path / "fleet.db", LEAVE).path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Give a command, and return what it prints."""
    assert not main(words)
    return capsys.readouterr().out


def test_hosts_are_listed_with_room_and_agents(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of their numbers; a program gets the same words."""
    speaks(log, "host-10", used=2, agents=("bob", "ann"), pools=(Pool("large", 3, 1), Pool("small", 1, 1)))
    speaks(log, "host-2", is_draining=True)
    speaks(log, "host-3", refuses="its fleet file is another one")
    head, second, third, tenth, why = said(capsys, "hosts", "--db", str(log)).splitlines()
    assert head.split() == ["HOST", "STATE", "HEARD", "USED", "POOLS", "AGENTS", "MACHINE", "PROCESS"]
    assert second.split()[:2] == ["host-2", "draining"]
    assert "at work, takes no work" in third
    assert [each.strip() for each in tenth.split("  ") if each][3:6] == ["2/4", "large 1/3, small 1/1", "ann, bob"]
    assert why == "host host-3 takes no work: its fleet file is another one"
    (first, *_) = json.loads(said(capsys, "hosts", "--db", str(log), "--json"))
    assert (first["name"], first["state"], first["room"], first["used"]) == ("host-10", "at work", 4, 2)
    assert first["pools"][0] == {"name": "large", "room": 3, "used": 1}


def test_a_fleet_without_hosts_says_so(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program gets an empty list."""
    assert "no host has spoken yet; lifefold host FLEET.toml begins one" in said(capsys, "hosts", "--db", str(log))
    assert json.loads(said(capsys, "hosts", "--db", str(log), "--json")) == []
    assert "HOST" not in said(capsys, "status", "--db", str(log))


def test_the_status_of_a_fleet_has_hosts_and_what_is_in_their_way(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process of an agent is the one on its host, although its files are on another machine."""
    before = json.loads(said(capsys, "status", "--db", str(log), "--json"))
    assert (before["hosts"], before["in_the_way"], before["agents"][0]["process"]) == ([], [], None)
    assert "no process" in said(capsys, "status", "--db", str(log))
    waits = (Wait("ann", "waits to begin its work: another file", 1, 2),)
    speaks(log, "one", used=1, agents=("ann",), sessions=(SessionThere("ann", os.getpid(), 5),), waits=waits)
    text = said(capsys, "status", "--db", str(log))
    assert f"{os.getpid()} alive on one" in text
    assert "no process" not in text
    assert "ann waits to begin its work: another file" in text
    assert any(line.split()[:3] == ["one", "at", "work"] for line in text.splitlines())
    found = json.loads(said(capsys, "status", "--db", str(log), "--json"))
    assert found["agents"][0]["process"]["host"] == "one"
    assert found["hosts"][0]["agents"] == ["ann"]
    assert found["in_the_way"][0]["agent"] == "ann"
    assert "HOST" not in said(capsys, "status", "--db", str(log), "--at", "3")


def test_an_explanation_takes_the_word_of_a_host(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise it would say that the process is not there."""
    owned = json.loads(said(capsys, "status", "--db", str(log), "--json"))["agents"][0]["task"]
    assert "its process is not there" in said(capsys, "why", owned, "--db", str(log))
    speaks(log, "one", sessions=(SessionThere("ann", 1, 5),))
    assert "its process is not there" not in said(capsys, "why", owned, "--db", str(log))


def test_the_picture_has_a_line_of_hosts(log: Path) -> None:
    """Those that need attention say why."""
    speaks(log, "one", used=1)
    speaks(log, "two", is_draining=True)
    with peek_log(log) as store:
        ledger, account, further = logs.begun(store)
        followed = Followed(store, ledger)
        followed.take(further)
        picture = WatchPicture(followed, account)
        out = io.StringIO()
        console = Console(file=out, width=100, height=40)
        console.print(picture.drawn(Screen(), 100, 20))
        console.print(picture.draw(100, 40))
    assert out.getvalue().count("HOSTS  one 1/4  two 0/4 draining") == 2


def test_hosts_in_a_few_words() -> None:
    """A lost host has been silent for some time."""

    def host(name: str, state: str, refuses: str = "") -> HostStatus:
        return HostStatus(name, state, "m", 1, 1, 1, 65_000, 4, 1, (), (), (), refuses)

    every = [host("c", "lost"), host("b", "at work", "another plan"), host("a", "at work")]
    assert host_lines.briefly(every) == [
        ("a 1/4", False),
        ("b 1/4 takes no work", True),
        ("c 1/4 lost for 1m05s", True),
    ]
