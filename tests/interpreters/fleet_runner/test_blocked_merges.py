"""Obstacles of merges are shown in another terminal, with their age, and are in no log."""

import signal
import time
from pathlib import Path

import anyio
import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import FleetFolder, Runner
from lifefold.interpreters.fleet_runner.blocked_merges import Wait, Waits, read_waits
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.fleet_runner.retry_until import patiently


def test_a_merge_that_a_file_is_in_the_way_of_is_found_from_another_terminal(sandbox: Sandbox) -> None:
    """`status` names it with what waits for a person, `why` says it in a sentence; it goes when it is over."""
    sandbox.prepare("plain-1", "plain-2").demand("plain-2", 'depends_on = ["plain-1"]')
    mine = sandbox.folder / "repo" / "plain-1.txt"
    mine.write_text("the user's own\n")
    with sandbox.running() as run:
        run.until("waits to merge plain-1")
        said = sandbox.call("status").stdout
        assert "\n! agent waits to merge plain-1: " in said
        (found,) = sandbox.json("status")["in_the_way"]
        assert found["agent"] == "agent"
        assert "plain-1.txt" in found["said"]
        assert found["since_ms"] <= found["seen_ms"] <= time.time_ns() // 1_000_000
        for task in ("plain-1", "plain-2"):
            history = sandbox.call("why", task).stdout
            assert "\nagent waits to merge plain-1: " in history.partition("How it came there")[0]
            (line,) = sandbox.json("why", task)["in_the_way"]
            assert line.startswith("agent waits to merge plain-1: ")
        mine.unlink()
        run.until("plain-1", "CLOSED")
        assert sandbox.json("status")["in_the_way"] == []
        run.rest()
    assert not list(sandbox.log.with_name("sandbox.db.files").glob("in_the_way*"))
    assert "waits to merge" not in sandbox.call("log").stdout


def test_what_a_runner_that_is_gone_has_found_stays_with_its_age_until_the_next_one_begins(sandbox: Sandbox) -> None:
    """The obstacle may be gone by now; the next runner looks itself."""
    sandbox.prepare("plain-1")
    mine = sandbox.folder / "repo" / "plain-1.txt"
    mine.write_text("the user's own\n")
    with sandbox.running() as run:
        run.until("waits to merge plain-1")
        run.signal(signal.SIGKILL)
        run.rest()
    said = sandbox.call("status").stdout
    assert "no runner" in said
    assert "\n! agent waits to merge plain-1: " in said
    assert " ago)" in said
    mine.unlink()
    sandbox.run()
    assert "waits to merge" not in sandbox.call("status").stdout
    assert "waits to merge" not in sandbox.call("why", "plain-1").stdout


def test_what_is_in_the_way_again_and_again_is_told_once_and_seen_every_time(tmp_path: Path) -> None:
    """Another reason is news; the time since when stays that of the first."""
    file = tmp_path / "deep" / "in_the_way.json"
    people = Notices(Waits(file))
    people.in_the_way("ann", "merge T1", "a file")
    (first,) = read_waits(file)
    people.in_the_way("ann", "merge T1", "a file")
    people.in_the_way("ann", "merge T1", "another file")
    people.in_the_way("bob", "check out T2", "a lock")
    assert people.history == [
        ("ann", "waits to merge T1: a file"),
        ("ann", "waits to merge T1: another file"),
        ("bob", "waits to check out T2: a lock"),
    ]
    second, other = read_waits(file)
    assert (second.agent, second.said, second.since_ms) == ("ann", "waits to merge T1: another file", first.since_ms)
    assert second.seen_ms >= first.seen_ms
    people.out_of_the_way("ann", "merge T1")
    assert read_waits(file) == (other,)
    assert [each[:2] for each in people.standing()] == [("bob", "waits to check out T2: a lock")]
    people.out_of_the_way("bob", "check out T2")
    assert not file.exists()
    people.in_the_way("ann", "merge T1", "another file")
    assert people.history[-1] == ("ann", "waits to merge T1: another file"), "it is news again"


def test_a_folder_that_takes_no_file_hinders_no_agent(tmp_path: Path) -> None:
    """People are told on the runner's own screen all the same."""
    (tmp_path / "file").write_text("")
    people = Notices(Waits(tmp_path / "file" / "in_the_way.json"))
    people.in_the_way("ann", "merge T1", "a file")
    assert [each[:2] for each in people.standing(About.GREETING)] == [("ann", "waits to merge T1: a file")]
    people.out_of_the_way("ann", "merge T1")
    assert people.standing() == []


@pytest.mark.parametrize("text", ["", "[{", '[{"agent": 1}]', "\xff"])
def test_an_unreadable_file_has_no_waits(tmp_path: Path, text: str) -> None:
    """Anybody may have written into the folder."""
    (tmp_path / "in_the_way.json").write_text(text, encoding="latin-1")
    assert read_waits(tmp_path / "in_the_way.json") == ()
    assert read_waits(tmp_path / "nowhere") == ()


def test_a_run_begins_without_what_an_earlier_one_has_found(tmp_path: Path) -> None:
    """Until it has found out itself."""
    file = tmp_path / "in_the_way.json"
    Waits(file).seen("ann", "merge T1", "waits to merge T1: a file")
    assert read_waits(file) == (Wait("ann", "waits to merge T1: a file", *_times(file)),)
    Waits(file).begin()
    assert not file.exists()


@pytest.mark.anyio
async def test_a_new_log_begins_without_what_an_earlier_one_of_its_name_has_left(sandbox: Sandbox) -> None:
    """The log was removed, and not the folder beside it."""
    sandbox.prepare("plain-1", repository=False)
    file = FleetFolder(sandbox.log).waits
    Waits(file).seen("agent", "merge plain-1", "waits to merge plain-1: a file")
    assert read_waits(file)
    runner = await Runner.open(load(sandbox.fleet), sandbox.log)
    runner.close()
    assert not file.exists()


def _times(file: Path) -> tuple[int, int]:
    (found,) = read_waits(file)
    return found.since_ms, found.seen_ms


@pytest.mark.anyio
async def test_every_try_that_fails_is_told() -> None:
    """So that its last one has an age; who tells people tells them once."""
    left, history = [OSError("a"), OSError("a"), OSError("b")], list[str]()

    async def work() -> str:
        if left:
            raise left.pop(0)
        return "done"

    assert await patiently(work, (OSError,), history.append, pause=anyio.lowlevel.checkpoint) == "done"
    assert history == ["a", "a", "b"]
