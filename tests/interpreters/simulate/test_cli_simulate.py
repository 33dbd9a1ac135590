"""``lifefold simulate``: what it says, what it writes, and with which exit code."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.commands import simulating

DOORS = '''
from lifefold.core.kernel import Event, Machine, Record, State, after, always, leads_to, row


class Door(State):
    OPEN = "Open"
    SHUT = "Shut"


class Opened(Event, frozen=True):
    """The door is opened."""


class AgentFailed(Event, frozen=True):
    """It falls shut."""


class Hall(Record, frozen=True):
    state: Door = Door.SHUT


rows = (row(Door.SHUT, Opened, Door.OPEN), row(Door.OPEN, AgentFailed, Door.SHUT))
PROPERTY = leads_to("it falls shut", lambda e: e.state is Door.OPEN, lambda e: e.state is Door.SHUT)
machine = Machine("door", Hall(), rows=rows, during={Door.OPEN: after(5_000, AgentFailed)}, properties=(PROPERTY,))
broken = Machine("door", Hall(), rows=rows, properties=(PROPERTY,))
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a module of one's own."""
    (tmp_path / "doors.py").write_text(DOORS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "doors", raising=False)
    return tmp_path


def test_what_holds_is_said_with_how_much_was_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0."""
    assert main(["simulate", "doors:machine", "--seeds", "20"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("doors:machine: 20 seeds, ")
    assert "rows 2/2" in said
    assert said.endswith("doors:machine: no property is broken in 20 seeds\n")


def test_what_is_broken_is_shown_small_and_is_a_test(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1; the test fails, and passes when the machine is fixed."""
    arguments = ["simulate", "doors:broken", "--seeds", "40", "--emit-test", "test_found.py"]
    assert main(arguments) == 1
    said = capsys.readouterr().out
    assert "✗ door: it falls shut: broken, first with seed" in said
    assert "operator says Opened()" in said
    assert "written: test_found.py" in said
    run = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_found.py")
    assert subprocess.run(run, cwd=here, capture_output=True, check=False).returncode == 1
    (here / "doors.py").write_text(f"{DOORS}\nbroken = machine\n")
    assert subprocess.run(run, cwd=here, capture_output=True, check=False).returncode == 0


def test_the_real_engine_is_simulated_on_request(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the same properties, other faults, and the same kind of test for what is found."""
    assert main(["simulate", "doors:machine", "--engine", "--seeds", "40", "--hours", "1"]) == 0
    said = capsys.readouterr().out
    assert "killed when waiting" in said
    assert said.endswith("doors:machine: no property is broken in 40 seeds on the real engine\n")
    arguments = [
        "simulate",
        "doors:broken",
        "--engine",
        "--seeds",
        "40",
        "--hours",
        "1",
        "--emit-test",
        "test_found.py",
    ]
    assert main(arguments) == 1
    assert "✗ door: it falls shut: broken, first with seed" in capsys.readouterr().out
    run = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_found.py")
    assert "runner=EngineRunner" in (here / "test_found.py").read_text()
    assert subprocess.run(run, cwd=here, capture_output=True, check=False).returncode == 1


def test_a_program_reads_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Also what was found, as deviations."""
    assert main(["simulate", "doors:broken", "--seeds", "40", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["target"]) == (False, "doors:broken")
    assert told["found"][0]["property"] == "it falls shut"
    names = [name[0] for name, _ in told["found"][0]["deviations"]]
    assert "operators" in names
    assert len(names) <= 2


def test_one_seed_is_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    """By its number, and says the same."""
    assert main(["simulate", "fleet-2x2", "--seed", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == 1
    assert main(["simulate", "fleet-2x2", "--seed", "7", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["simulate", "fleet-2x2", "--seed", "7", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert first["seeds"] == 1
    assert _untimed(first) == _untimed(again)


def _untimed(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is told without the time that it has taken: in seconds, and first of the extent of its page."""
    page = {**told["page"], "extent": told["page"]["extent"][1:]}
    return {**told, "seconds": 0, "page": page}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sesion"], "unknown target 'sesion'; did you mean 'session'"),
        (["fleet-0x3"], "fleet-0x3: a fleet has 1 to 9999 agents and 1 to 99999 tasks here"),
        (["fleet-governed-3x100000"], "fleet-governed-3x100000: a fleet has 1 to 9999 agents"),
        (["session", "--fault", "hangs"], "--fault hangs: accepted is NAME=RATE"),
        (["session", "--fault", "hang=1"], "there is no fault 'hang'; there are: fails"),
        (["session", "--fault", "hangs=7"], "hangs: a rate is between 0 and 1, not 7.0"),
        (["doors:Door"], "doors:Door is a"),
        (["session", "--fault", "fenced=0.1"], "--fault fenced: it happens to the real engine only; add --engine"),
        (["session", "--engine", "--soak", "there"], "--soak and --engine: accepted is one of them"),
        (["session", "--emit-test", "doors.py"], "doors.py is there, and no test that lifefold has written"),
    ],
)
def test_bad_input_is_said_and_nothing_is_tried(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What, where, what is accepted; exit code 2."""
    assert main(["simulate", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_terminal_is_told_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the output, on one line that fits: how many of how many, how quickly, what was found and used."""
    monkeypatch.setattr(simulating, "AGAIN_S", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["simulate", "doors:machine", "--seeds", "10"]) == 0
    *told, last = (each.strip() for each in capsys.readouterr().err.split("\r") if each)
    assert last == ""  # what was told is gone when the report is printed
    assert [each.partition(" seeds")[0] for each in told] == ["doors:machine: 5 of 10", "doors:machine: 10 of 10"]
    assert all("0 found; states 2/2, rows 2/2, guards" in each for each in told)
    assert all(len(each) < 100 for each in told)


def test_an_interrupted_simulation_reports_what_was_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends it with a report and exit code 130."""

    def leave(*_told: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(simulating._Progress, "__call__", leave)
    assert main(["simulate", "fleet-2x3", "--seeds", "1000", "--json"]) == 130
    assert 0 < json.loads(capsys.readouterr().out)["seeds"] < 1_000


def test_only_what_is_named_goes_wrong_beside_none(capsys: pytest.CaptureFixture[str]) -> None:
    """``--fault none`` is what the others are added to, in every run."""
    assert main(["simulate", "fleet-2x2", "--seeds", "5", "--fault", "none", "--fault", "hangs=0.5", "--json"]) == 0
    assert {name for name, count in json.loads(capsys.readouterr().out)["faults"].items() if count} == {"hangs"}


def test_nothing_goes_wrong_if_nothing_is_to(capsys: pytest.CaptureFixture[str]) -> None:
    """With no faults all work is done, in no more time than it takes."""
    assert main(["simulate", "fleet-2x2", "--seeds", "3", "--fault", "none"]) == 0
    said = capsys.readouterr().out
    assert "faults       none" in said
    assert "runners      none has died" in said


def test_a_part_of_an_hour_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    """And what is no number of hours is refused, with what is one."""
    assert main(["simulate", "doors:machine", "--seed", "1", "--hours", "0.25", "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["virtual_ms"] < 3_600_000
    for wrong in ("0", "-1", "1h", "nan", "1e3"):
        with pytest.raises(SystemExit) as refused:
            main(["simulate", "doors:machine", f"--hours={wrong}"])
        assert refused.value.code == 2
        assert f"{wrong!r} is not a number of hours above 0, as 6 or 0.5" in capsys.readouterr().err
