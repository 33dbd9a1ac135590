"""An error of the rules is a verdict with its trace, and no traceback."""

import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifefold.interpreters.cli.app import main

LAMPS = """
from typing import Never

from lifefold.core.kernel import (
    AggregateType, Envelope, Event, Machine, Opened, Record, State, Step, System, Transition,
    always, leads_to, replace, row, rule, sometimes,
)
from lifefold.effects import Tell


class Light(State):
    ON = "On"
    OFF = "Off"
    GONE = "Gone"


class Turned(Event, frozen=True):
    @classmethod
    def examples_for(cls, record: "Lamp") -> "tuple[Turned, ...]":
        return () if record.turns > EXAMPLES and 1 // 0 else (cls(),)


class Broken(Event, frozen=True):
    pass


class Lamp(Record, frozen=True):
    state: Light = Light.OFF
    turns: int = 0


def turn(lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
    if lamp.turns == ACTION:
        raise RuntimeError("the bulb is <hot>")
    return Step(replace(lamp, turns=min(3, lamp.turns + 1)))


def may_turn(lamp: Lamp, _event: Turned) -> bool:
    return lamp.turns != GUARD or {}["x"]


EXAMPLES = ACTION = GUARD = ALWAYS = LEADS = RESTS = SCENE = RULE = 99

machine = Machine(
    "lamp",
    Lamp(),
    rows=(
        row(Light.OFF, Turned, Light.ON, turn, when=may_turn),
        row(Light.ON, Turned, Light.OFF),
        row((Light.ON, Light.OFF), Broken, Light.GONE),
        row(Light.GONE, Turned, Light.OFF, when=lambda lamp, _event: False),
    ),
    rests=lambda lamp: lamp.state is Light.GONE and 1 // (lamp.turns - RESTS) != 7,
    properties=(
        always("it turns", lambda lamp: 1 // (lamp.record.turns - ALWAYS) != 7),
        leads_to("it ends", lambda lamp: lamp.state is Light.GONE, lambda lamp: 1 // (lamp.record.turns - LEADS) != 7),
    ),
)


@rule(on=machine)
def say(lamps, transition):
    if transition.before is not None and transition.after.record.turns == RULE:
        raise RuntimeError("no listener")
    return ()


def lamps() -> "tuple[System, list[tuple[str, Envelope]]]":
    def shines(system_state):
        return 1 // (system_state.aggregates["lamp"].record("lamp").turns - SCENE) != 7

    kind = AggregateType("lamp", machines=(machine,), rules=(say,))
    system = System("lamps", kind, properties=(sometimes("all of it", lambda found: True), always("shines", shines)))
    return system, [("lamp", Envelope("", Opened({"lamp": Lamp()}), 0))]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder for a user's own lamp."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("lamps", None)


def _write(fault: str) -> None:
    sys.modules.pop("lamps", None)
    name, _, at = fault.partition("=")
    Path("lamps.py").write_text(LAMPS.replace("\n\nmachine =", f"\n{name} = {at}\n\nmachine ="))


TURNS = ("1. operator says Turned() Off → On", "2. operator says Turned() On → Off")
ZERO = "ZeroDivisionError: integer division or modulo by zero"

FLAWS: dict[str, tuple[str, ...]] = {
    "ACTION=1": (*TURNS, "3. operator says Turned()", "raises RuntimeError: the bulb is <hot> (in turn, lamps.py)"),
    "GUARD=1": (*TURNS, "3. operator says Turned()", "raises KeyError: 'x' (in may_turn, lamps.py)"),
    "EXAMPLES=0": (TURNS[0], f"the possible inputs cannot be derived: {ZERO} (in examples_for, lamps.py)"),
    "ALWAYS=1": (TURNS[0], f"the property of lamp, 'it turns', cannot be judged: {ZERO} (in <lambda>, lamps.py)"),
    "LEADS=1": (TURNS[0], f"the property of lamp, 'it ends', cannot be judged: {ZERO} (in <lambda>, lamps.py)"),
}
OF_SYSTEMS: dict[str, tuple[str, ...]] = {
    "SCENE=1": (TURNS[0], f"the property of lamps, 'shines', cannot be judged: {ZERO} (in shines, lamps.py)"),
    "RULE=1": ("1. operator says Turned()", "raises RuntimeError: no listener (in say, lamps.py)"),
}


def _way(target: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, ...]:
    """Return the trace to the error, as programs read it."""
    assert main(["check", target, "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert told["truncated"] == "a flaw in the rules"
    assert told["crashes"] is None
    broken = [each for each in told["properties"] if each["outcome"] == "broken"]
    assert [each["name"] for each in broken] == ["rules and properties raise no error"]
    assert {each["outcome"] for each in told["properties"] if each["kind"] != "sometimes"} == {"broken", "undecided"}
    return tuple(re.sub(r"\.py:\d+", ".py", " ".join(line.split())) for line in broken[0]["trace"])


@pytest.mark.parametrize("fault", FLAWS)
def test_an_error_is_shown_with_its_trace(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In a guard, an action, examples or a property: the error, its place and its step; nothing else is decided."""
    _write(fault)
    assert _way("lamps:machine", capsys) == FLAWS[fault]


@pytest.mark.parametrize("fault", OF_SYSTEMS)
def test_an_error_of_a_system_is_shown_with_its_trace(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In a rule between entities, and in a property of the system."""
    _write(fault)
    assert _way("lamps:lamps", capsys) == OF_SYSTEMS[fault]


def test_an_error_in_the_opening_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A property that raises an error in the opening."""
    _write("ALWAYS=0")
    (said,) = _way("lamps:machine", capsys)
    assert said.startswith("the property of lamp, 'it turns', cannot be judged: ZeroDivisionError")


def test_what_may_rest_is_judged_with_the_way_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The question whether a lamp may rest is asked of what is left in the end."""
    _write("RESTS=0")
    assert main(["check", "lamps:machine"]) == 1
    said = capsys.readouterr().out
    assert "✗ always      what is not settled can go on: broken" in said
    assert "1. operator says Broken()   Off → Gone" in said
    assert "ZeroDivisionError" in said


def test_the_report_fits_a_screen_and_no_traceback_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Eighty columns, and what is broken at the end."""
    _write("ACTION=1")
    assert main(["check", "lamps:machine"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert "the search ended after a flaw in the rules" in " ".join(out.split())
    assert main(["check", "lamps:machine", "--accept-truncated"]) == 1


@pytest.mark.parametrize(("fault", "error"), [("ACTION=1", RuntimeError), ("ALWAYS=1", ZeroDivisionError)])
def test_a_test_is_written_that_raises_the_error_until_it_is_fixed(fault: str, error: type[Exception]) -> None:
    """The trace, and then the step or the property that raises the error."""
    _write(fault)
    assert main(["check", "lamps:machine", "--emit-test", "test_x.py"]) == 1
    name = "test_lamps_machine_rules_and_properties_raise_no_error"
    with pytest.raises(error):
        runpy.run_path("test_x.py")[name]()
    _write("ACTION=99")
    runpy.run_path("test_x.py")[name]()


def test_of_what_is_no_step_there_is_no_test(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """What may happen next is no step; why there is no test is said."""
    _write("EXAMPLES=0")
    assert main(["check", "lamps:machine", "--emit-test", "test_x.py"]) == 1
    assert "no test of lamp: rules and properties raise no error: the possible inputs" in capsys.readouterr().err
    assert not (folder / "test_x.py").exists()


@pytest.mark.parametrize("says", ["", " -> Step", " -> Lamp", " -> Step[Lamp, Unheard]"])
@pytest.mark.parametrize("command", ["check", "table", "simulate"])
def test_an_action_that_does_not_say_what_it_returns_is_named_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, says: str
) -> None:
    """By every command alike, before any of its rows is taken: other answers could not be explained."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    lamps = LAMPS.replace(
        "def turn(lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:", f"def turn(lamp, _event){says}:"
    )
    name = f"mute_{command}_{len(says)}"
    (tmp_path / f"{name}.py").write_text(f"from __future__ import annotations\n{lamps}")
    assert main([command, f"{name}:machine"]) == 2
    told = capsys.readouterr().err
    assert re.search(r"  row\(Off, Turned, On.*\): turn\n", told)
    assert "accepted: a function with a return annotation: -> Step[RECORD, EFFECT" in told
