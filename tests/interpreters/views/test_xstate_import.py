"""XState in: a module to complete, which imports, passes the laws, and exports what it was made from."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from lifefold.core.kernel import Machine
from lifefold.interpreters import views
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.testing import check_laws
from lifefold.interpreters.views.formats.xstate import configuration
from lifefold.interpreters.views.statechart import UnusableStatechart
from lifefold.interpreters.views.xstate_import import module_of

OVEN: dict[str, Any] = {
    "id": "oven",
    "description": "bakes",
    "initial": "cold",
    "context": {"loaves": 0, "name": "big", "parts": [], "state": "x", "hot": False},
    "states": {
        "cold": {"on": {"SWITCH": {"target": "working", "guard": {"type": "has power"}}}, "exit": "light"},
        "working": {
            "initial": "heating",
            "on": {"oven.off": "cold", "FIRE": {"target": "#broken", "actions": ["ring", {"type": "call help"}]}},
            "states": {
                "heating": {"after": {"5000": "baking", "patience": {"target": "#oven.cold"}}},
                "baking": {
                    "invoke": {
                        "src": "bake",
                        "onDone": {"target": "heating", "actions": "count"},
                        "onError": "#broken",
                    },
                    "on": {"LOOK": {}, "AGAIN": {"target": "baking", "reenter": True}},
                },
            },
        },
        "broken": {"id": "broken", "type": "final"},
    },
}


@pytest.fixture
def modules() -> Iterator[list[ModuleType]]:
    """The modules that a test makes, which are forgotten after it."""
    made: list[ModuleType] = []
    yield made
    for each in made:
        del sys.modules[each.__name__]


def imported(config: object, modules: list[ModuleType]) -> Any:
    """Return the module of a configuration, run as a program imports it."""
    module = ModuleType(f"imported_{len(modules)}")
    sys.modules[module.__name__] = module
    modules.append(module)
    exec(compile(module_of(json.dumps(config)), module.__name__, "exec"), module.__dict__)  # noqa: S102 - that is tested
    return module


def as_sets(value: Any) -> Any:
    """Return a configuration in which the order of effects does not count, since a union of types has none."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: sorted(each) if key == "actions" else as_sets(each) for key, each in fields.items()}
    if isinstance(value, list):
        return [as_sets(each) for each in cast("Sequence[Any]", value)]
    return value


@pytest.mark.parametrize("name", [each for each in views.machines() if each != "task-governed"])
def test_every_shipped_machine_comes_back(name: str, modules: list[ModuleType]) -> None:
    """Exported, imported, and exported again. A machine with rows of a state that nothing leads to loses those."""
    machine = views.machine_named(name)
    try:
        exported = configuration(machine)
    except ValueError:
        pytest.skip("it has no equal in a statechart")
    assert as_sets(configuration(imported(exported, modules).machine)) == as_sets(exported)


def test_a_machine_written_for_xstate_becomes_a_table(modules: list[ModuleType]) -> None:
    """Nested states, delays, actors, guards and actions have their parts of a table."""
    oven = imported(OVEN, modules)
    machine: Machine[Any] = oven.machine
    assert [str(each) for each in machine.states] == ["cold", "heating", "baking", "broken"]
    assert [str(each) for each in machine.final] == ["broken"]
    assert (machine.initial.state, machine.initial.loaves, machine.initial.name) == ("cold", 0, "big")
    assert not hasattr(machine.initial, "parts")
    rows = [str(each) for each in machine.rows]
    assert "row(cold, SWITCH, heating when has_power)" in rows
    assert "row(baking, AGAIN, baking, restart)" in rows
    assert "row(baking, BakeDone, heating)" in rows
    assert "row(baking | heating, OvenOff, cold)" in rows
    assert "row(baking, LOOK, (same))" in rows
    assert oven.OvenOff.__struct_config__.tag == "oven.off"
    (fire,) = (each for each in machine.rows if each.event is oven.FIRE)
    assert [each.__name__ for each in fire.effects] == ["ring", "CallHelp"]
    assert oven.patience(machine.initial) == 1_000
    assert {each.during.slot for each in machine.spans.values()} == {"bake", "HeatingAfter5000", "HeatingAfterPatience"}
    assert "exit of oven.cold: light" in oven.__doc__


def test_an_imported_machine_passes_the_laws(modules: list[ModuleType]) -> None:
    """Before its guards and actions are completed."""
    check_laws(imported(OVEN, modules).machine)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("nonsense", "the configuration of a machine is an object"),
        ({"id": "m"}, "m: it has no states"),
        ({"states": {"a": 1}}, "a: a state is an object, not 1"),
        ({"id": "m", "initial": "b", "states": {"a": {}}}, "m: initial 'b' is none of a"),
        ({"id": "m", "states": {"a": {"type": "parallel"}}}, "m.a: a parallel state"),
        ({"id": "m", "states": {"a": {"type": "history"}}}, "m.a: a history state"),
        ({"id": "m", "states": {"a": {"always": "b"}}}, "m.a: always; a row needs an event"),
        ({"id": "m", "states": {"a": {"on": {"*": "a"}}}}, "m.a: the event *"),
        ({"id": "m", "states": {"a": {"onDone": "a"}}}, "m.a: onDone of a state"),
        ({"id": "m", "states": {"a": {"on": {"E": "b"}}}}, "m.a: there is no state 'b'"),
        ({"id": "m", "states": {"a": {"on": {"E": 1}}}}, "m.a: E: a transition is an object or a target, not 1"),
        ({"id": "m", "states": {"a": {"on": {"E": {"guard": 1}}}}}, "has a name, as a text; found: 1"),
    ],
)
def test_what_no_table_can_say_is_refused_with_its_place(config: object, said: str) -> None:
    """The message names the state."""
    with pytest.raises(UnusableStatechart, match=said.replace("*", r"\*")):
        module_of(json.dumps(config))


def test_the_command_writes_a_module_that_can_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To standard output, or to a file that is not there yet."""
    monkeypatch.chdir(tmp_path)
    Path("oven.json").write_text(json.dumps(OVEN))
    assert main(["import", "xstate", "oven.json"]) == 0
    printed = capsys.readouterr().out
    assert main(["import", "xstate", "oven.json", "--to", "imported_oven.py"]) == 0
    assert Path("imported_oven.py").read_text() == printed
    capsys.readouterr()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert main(["table", "imported_oven:machine"]) == 0
    assert "HeatingAfter5000" in capsys.readouterr().out
    assert main(["import", "xstate", "oven.json", "--to", "imported_oven.py"]) == 2
    assert "imported_oven.py is there" in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "{", '{"states": {}}'])
def test_an_unusable_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None) -> None:
    """Exit code 2, the file, and why."""
    path = tmp_path / "oven.json"
    if text is not None:
        path.write_text(text)
    assert main(["import", "xstate", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"lifefold: {path}: ")
