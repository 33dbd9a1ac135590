"""One signal is enough to stop a simulation, also within a long seed, and while what was found is shrunk."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleet_sandbox import HANG_S
from lifefold.interpreters.campaign import findings
from lifefold.interpreters.campaign.stopping import SIGNALS, Stopping, unless_stopped, until_stopped
from lifefold.interpreters.cli.app import main

SLOW = '''
from pathlib import Path
from typing import Never

from lifefold.core.kernel import Event, Machine, Record, State, after, always, row, Step


class Tap(State):
    DRY = "Dry"
    WET = "Wet"


class Dripped(Event, frozen=True):
    """It drips."""


class Dried(Event, frozen=True):
    """It dries."""


class Basin(Record, frozen=True):
    state: Tap = Tap.DRY


def wait(basin: Basin, _event: Dripped) -> Step[Basin, Never]:
    """Wait until a process writes into the pipe, and then until it closes the pipe."""
    Path(__file__).with_name("pipe").open().read()
    return Step(basin)


DRIES = row(Tap.WET, Dried, Tap.DRY)
DRIPS = {Tap.DRY: after(5_000, Dripped)}
PROPERTY = always("it is dry", lambda e: e.state is Tap.DRY)
slow = Machine("tap", Basin(), rows=(row(Tap.DRY, Dripped, Tap.WET, wait), DRIES), during=DRIPS)
broken = Machine("tap", Basin(), rows=(row(Tap.DRY, Dripped, Tap.WET), DRIES), during=DRIPS, properties=(PROPERTY,))
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a module of one's own."""
    (tmp_path / "tap.py").write_text(SLOW)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "tap", raising=False)
    return tmp_path


@pytest.mark.parametrize(("number", "jobs"), list(zip(SIGNALS, ("2", "1"), strict=True)))
def test_a_long_seed_is_broken_off_by_one_signal(here: Path, number: signal.Signals, jobs: str) -> None:
    """With the report of the tried seeds, and the exit code of an interrupted command."""
    command = [
        sys.executable,
        "-m",
        "lifefold.interpreters.cli",
        "simulate",
        "tap:slow",
        "--seeds",
        "20",
        "--jobs",
        jobs,
    ]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as simulates:
        pipe = (here / "pipe").open("w")  # waits until the seed has come there
        simulates.send_signal(number)
        said, complained = simulates.communicate(timeout=HANG_S)
        pipe.close()
    assert (simulates.returncode, complained) == (130, "")
    assert said.endswith("tap:slow: no property is broken in 0 seeds\n")


def test_what_was_found_is_named_when_there_is_no_time_to_make_it_small(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the first seed that breaks it."""

    def never(*_given: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("it goes on")

    monkeypatch.setattr(findings, "shrunk", never)
    assert main(["simulate", "tap:broken", "--seeds", "3"]) == 130
    said = capsys.readouterr().out
    assert "tap: it is dry: broken by seed " in said
    assert "it was not shrunk" in said
    assert "one property is broken, in " in said


def test_nothing_begins_after_a_request_to_stop() -> None:
    """And nothing is broken off that may not be."""
    stopping = Stopping()
    assert stopping.unless(lambda: 1) == 1
    stopping.stop()
    assert stopping()
    assert stopping.unless(lambda: 1) is None
    assert unless_stopped(stopping, lambda: 1) is None
    assert unless_stopped(lambda: True, lambda: 1) == unless_stopped(None, lambda: 1) == 1


def test_what_is_done_with_a_result_is_not_broken_off() -> None:
    """Only what makes it."""
    done = list[str]()
    with until_stopped() as is_stopped:
        assert is_stopped.unless(lambda: "made") == "made"
        signal.raise_signal(signal.SIGTERM)
        done.append("kept")
        assert is_stopped()
    assert done == ["kept"]
