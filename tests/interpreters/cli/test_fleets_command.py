"""`lifefold fleets`: the fleets of this machine, which of them run, and what waits where."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from desk_sandbox import talking
from fleet_sandbox import Sandbox
from lifefold.interpreters.desk import registry
from lifefold.interpreters.processes import ProcessIdentity, identify
from terminal import Terminal


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runners of a test note their fleets in its folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "lifefold" / "fleets"


def made(tmp_path: Path, name: str, *tasks: str, gates: tuple[str, ...] = ()) -> Sandbox:
    (tmp_path / name).mkdir()
    sandbox = talking(tmp_path / name, *tasks, gates=gates)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('name = "sandbox"', f'name = "{name}"'))
    return sandbox


def test_the_fleets_are_listed_with_what_waits_and_a_dead_runner_is_not_believed(tmp_path: Path, state: Path) -> None:
    """A fleet at work, one that waits without a runner, one that is over; after a kill no runner is said to work."""
    here = made(tmp_path, "works", "one", gates=("one",))
    waits = made(tmp_path, "waits", "asks")
    waits.fleet.write_text(waits.fleet.read_text().replace('id = "asks"', 'id = "asks"\napproval = "merge"'))
    waits.call("run", str(waits.fleet), "--transitions", "--no-wait", code=4)
    over = made(tmp_path, "over", "two")
    over.run()
    with here.running() as run:
        with here.at_gate("one"):
            run.until("task one", "IN_PROGRESS")
            listed = here.call("fleets").stdout
            run.signal(signal.SIGKILL)
            run.rest()
        here.kill_all()
    first, second = listed.split("\n\n")
    assert first.startswith("fleet works: a runner is at work for ")
    assert "0 of 1 tasks closed, 1 running" in first
    assert second.startswith("fleet waits: no runner; the last one began ")
    log = tmp_path / "waits" / ".lifefold" / "waits.db"
    assert f"  ! asks is done and waits for your approval: lifefold approve asks --db {log}, after " in second
    assert f"  to go on: lifefold run {waits.fleet} --db {log}\n" in second
    assert second.endswith("1 fleet is over; lifefold fleets --all\n")
    with Terminal(tmp_path, "fleets") as terminal:
        drawn = terminal.rest().splitlines()
    assert str(log) in {word for line in drawn for word in line.split()}, "a line is cut at spaces only"
    found = here.json("fleets", "--all")
    assert {each["fleet"]: (each["runs"], each["is_over"]) for each in found} == {
        "over": (False, True),
        "waits": (False, False),
        "works": (False, False),
    }
    assert len(list(state.glob("*.json"))) == 3


def test_a_log_that_is_gone_is_dropped_and_a_damaged_one_is_named(tmp_path: Path, state: Path) -> None:
    """The list never fails because of one log; the next runner removes the files of logs that are gone."""
    gone, damaged = made(tmp_path, "gone", "one"), made(tmp_path, "damaged", "two")
    gone.run()
    damaged.run()
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "damaged" / ".lifefold" / "damaged.db").write_bytes(b"not a log")
    (state / "strange.json").write_text("{")
    listed = damaged.call("fleets").stdout
    assert listed.startswith("fleet damaged: its log cannot be read: ")
    assert "fleet gone" not in listed
    made(tmp_path, "next", "three").run()
    assert {each.fleet for each in registry.found()} == {"damaged", "next"}
    assert len(list(state.glob("*"))) == 2


def test_a_runner_is_known_by_its_start_and_not_by_its_pid_alone(tmp_path: Path) -> None:
    """Another process with the pid of a dead runner is no runner."""
    log = tmp_path / "a.db"
    log.touch()
    registry.note(log, "a", tmp_path / "a.toml")
    (noted,) = registry.found()
    assert noted.is_alive
    own = identify(os.getpid())
    assert own is not None
    assert not registry.Noted("", "", "", ProcessIdentity(own.pid, own.start_time + 1, own.boot_id), 0).is_alive


def test_a_folder_that_cannot_be_written_stops_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is a convenience; a fleet runs without it, and an empty list says how to begin."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    sandbox = made(tmp_path, "any", "one")
    sandbox.run()
    assert sandbox.call("fleets").stdout == (
        "no fleet has run on this machine yet, as this user; lifefold run FLEET.toml begins one\n"
    )
