"""The stream of events: each entry once, with its position as its id, soon after it is in the log."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.web.followed_log import FollowedLog
from lifefold.interpreters.web.stream import parse, written
from web_desk import WAIT_S, Served, served
from web_logs import go_on, run_of
from web_logs import written as written_log

ENTRIES = run_of(2, 4).entries
HALF = len(ENTRIES) // 2


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """The first half of a log."""
    return written_log(tmp_path / "fleet.db", ENTRIES[:HALF])


def events(answer: httpx2.Response) -> Iterator[tuple[str, str, Any]]:
    """Yield the events of a stream: name, id, data."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(":")
        if not line and "data" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}
        elif name:
            fields[name] = value.removeprefix(" ")


def take(of: Iterator[tuple[str, str, Any]], name: str) -> tuple[str, Any]:
    """Return the next event of a name."""
    return next((number, data) for each, number, data in of if each == name)


def test_new_entries_arrive_with_their_positions_and_soon(half: Path) -> None:
    with served([half]) as desk, desk.client.stream("GET", f"/events?fleet=fleet&after={HALF}") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        stream = events(answer)
        assert take(stream, "runner")[1] == {"fleet": "fleet", "runs": False, "trouble": ""}
        go_on(half, ENTRIES[HALF:])
        began = time.monotonic()
        seen: list[Any] = []
        while not seen or seen[-1]["seq"] < len(ENTRIES):
            number, data = take(stream, "entries")
            assert number == str(data["seq"])
            seen.append(data)
        assert time.monotonic() - began < WAIT_S
        lines = [line for data in seen for line in data["lines"]]
        expected = [line for line in lines_of(desk) if line["seq"] > HALF]
        assert lines == expected


def lines_of(desk: Served) -> list[Any]:
    """Return every transition of the log."""
    return [json.loads(line) for line in desk.get("/fleets/fleet/log.ndjson").text.splitlines()]


def test_a_browser_that_comes_back_gets_what_it_has_missed_once(half: Path) -> None:
    go_on(half, ENTRIES[HALF:])
    with served([half]) as desk:
        headers = {"last-event-id": str(HALF)}
        with desk.client.stream("GET", "/events?fleet=fleet&after=1", headers=headers) as answer:
            _, data = take(events(answer), "entries")
        assert data["lines"] == [line for line in lines_of(desk) if line["seq"] > HALF]


def test_a_stream_tells_when_a_runner_comes_and_goes(half: Path) -> None:
    with served([half]) as desk, desk.client.stream("GET", "/events?fleet=fleet") as answer:
        stream = events(answer)
        assert not take(stream, "runner")[1]["runs"]
        with SqliteStore.open(half):
            assert take(stream, "runner")[1]["runs"]
            assert desk.json("/fleets/fleet.json")["at"]["runner"] == "at work"
        assert not take(stream, "runner")[1]["runs"]
        assert desk.json("/fleets/fleet.json")["at"]["runner"] in {"over", "gone"}


def test_ten_streams_get_the_same_events(half: Path) -> None:
    with served([half]) as desk:
        found: list[Any] = []

        def listen() -> None:
            with desk.client.stream("GET", f"/events?fleet=fleet&after={HALF}") as answer:
                stream = events(answer)
                lines: list[Any] = []
                while not lines or lines[-1]["seq"] < len(ENTRIES):
                    lines += take(stream, "entries")[1]["lines"]
                found.append(lines)

        threads = [threading.Thread(target=listen) for _ in range(10)]
        for each in threads:
            each.start()
        go_on(half, ENTRIES[HALF:])
        for each in threads:
            each.join(WAIT_S)
        assert len(found) == 10
        assert all(each == found[0] for each in found)


def test_an_id_of_several_fleets_names_each(tmp_path: Path) -> None:
    paths = [written_log(tmp_path / f"{name}.db", ENTRIES[:HALF]) for name in ("a", "b")]
    with FollowedLog("a", paths[0]) as first, FollowedLog("b,c", paths[1]) as second:
        first.take()
        second.take()
        assert parse("a:3,b%2Cc:5", [first, second], is_one=False) == {"a": 3, "b,c": 5}
        assert parse("a:999", [first, second], is_one=False) == {"a": HALF, "b,c": HALF}
        assert parse("a:7", [first], is_one=False) == {"a": 7}
        assert parse("7", [first], is_one=True) == {"a": 7}
        assert written({"a": 3, "b,c": 5}, is_one=False) == "a:3,b%2Cc:5"
        assert written({"a": 7}, is_one=False) == "a:7"
        assert written({"a": 7}, is_one=True) == "7"
        with pytest.raises(ValueError, match="invalid literal"):
            parse("a:x", [first, second], is_one=False)
        with pytest.raises(ValueError, match="names its fleet"):
            parse("7", [first], is_one=False)
