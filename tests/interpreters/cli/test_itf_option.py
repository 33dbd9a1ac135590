"""``--itf`` of ``check`` and ``simulate``: traces of broken properties, which ``itf-py`` reads back."""

import sys
from pathlib import Path
from typing import Any

import pytest

from itf_reader import trace_in, value_of
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.itf_files import world_of
from lifefold.interpreters.report.itf import value
from lifefold.interpreters.targets.check_targets import named

TAP = """
from typing import Never

from lifefold import Event, Machine, Record, State, Step, after, always, leads_to, replace, row


class Tap(State):
    SHUT = "Shut"
    OPEN = "Open"


class Turned(Event, frozen=True):
    pass


class Valve(Record, frozen=True):
    state: Tap = Tap.SHUT
    turns: int = 0


def count(valve: Valve, _event: Turned) -> Step[Valve, Never]:
    return Step(replace(valve, turns=min(3, valve.turns + 1)))


machine = Machine(
    "valve",
    Valve(),
    rows=(
        row(Tap.SHUT, Turned, Tap.OPEN, count, restart=True),
        row(Tap.OPEN, Turned, Tap.SHUT, count, restart=True),
    ),
    during={tuple(Tap): after(1_000, Turned)},
    properties=(
        always("turned once", lambda entity: entity.record.turns < 2),
        leads_to("shut again", lambda entity: entity.state is Tap.OPEN, lambda entity: False),
    ),
)
"""


@pytest.fixture
def tap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a machine with two broken properties; the folder of the test is the present one."""
    name = f"tap_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(TAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return f"{name}:machine"


def read(path: str) -> Any:
    """Return a trace as ``itf-py`` reads it."""
    return trace_in(Path(path).read_text())


def test_a_check_writes_each_broken_property_as_a_trace(tap: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An invariant ends in the state that breaks it; a liveness property has a loop."""
    assert main(["check", tap, "--itf", "tap.itf.json"]) == 1
    assert "written: tap.itf.json\nwritten: tap-2.itf.json\n" in capsys.readouterr().out
    traces = [read("tap.itf.json"), read("tap-2.itf.json")]
    invariant = next(each for each in traces if "turned once" in each.meta["description"])
    first, *_, last = (each.values["aggregates"]["valve"]["valve"] for each in invariant.states)
    assert (first.state, first.record.turns, last.record.turns) == ("Shut", 0, 2)
    assert {type(each.values["input"].event).__name__ for each in invariant.states[1:]} == {"Turned"}
    assert invariant.loop is None
    liveness = next(each for each in traces if "shut again" in each.meta["description"])
    assert liveness.loop is not None
    assert 0 <= liveness.loop < len(liveness.states)
    assert main(["check", tap, "--itf", "tap.itf.json"]) == 1, "it overwrites its own file"


def test_a_simulation_writes_its_shrunk_run(tap: str) -> None:
    """From the empty system on."""
    assert main(["simulate", tap, "--fault", "none", "--seeds", "2", "--hours", "1", "--itf", "run.json"]) == 1
    trace = read("run.json")
    assert trace.states[0].values["aggregates"] == {}
    assert trace.states[-1].values["aggregates"]["valve"]["valve"].record.turns == 2


def test_without_a_trace_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sound machine has none, and the command says so."""
    path = tmp_path / "lease.json"
    assert main(["check", "intake", "--itf", str(path)]) == 0
    assert "no trace is shown" in capsys.readouterr().err
    assert not path.exists()


def test_another_file_is_refused_before_the_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2."""
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    assert main(["check", "intake", "--itf", str(path)]) == 2
    assert "no trace that lifefold has written" in capsys.readouterr().err


def test_a_search_of_a_system_begins_with_its_opening() -> None:
    """Its aggregates are in the first state of a trace."""
    assert "board" in world_of(named("fleet")).aggregates


def test_every_value_has_a_form_that_is_read_back() -> None:
    """Large numbers exactly, None as the empty tuple, a float as a text."""
    given = {"many": 2**60, "few": 3, "yes": True, "none": None, "half": 0.5, "set": frozenset({2, 1}), "list": ("a",)}
    found = value_of(value(given))
    assert (found["many"], found["few"], found["yes"], found["none"]) == (2**60, 3, True, ())
    assert (found["half"].value, found["set"], list(found["list"])) == ("0.5", frozenset({1, 2}), ["a"])
