"""Test files that are written for broken properties: each fails on the broken rules, and not on the fixed ones."""

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from unittest import SkipTest

import msgspec
import pytest
from pyrsistent import pmap, pvector

import kiln
from lifefold.core.kernel import Event, Property, Record, System, SystemState, always
from lifefold.core.lifecycles import session
from lifefold.effects import CancelSession
from lifefold.interpreters.certificates.emitted import emitted
from lifefold.interpreters.certificates.source import Names, Unwritable
from lifefold.interpreters.check import Bounds, Outcome, Report, check
from lifefold.interpreters.targets.check_targets import named
from lifefold.interpreters.targets.configurations import CheckConfiguration
from lifefold.interpreters.targets.target import Target

KILNS = """
from collections.abc import Iterator
from typing import Never

from lifefold.core.kernel import (
    Aggregate, AggregateType, Envelope, Event, Machine, Opened, Record, State, Step, System, Transition,
    after, always, always_step, does, leads_to, replace, row, rule, weakly,
)
from lifefold.effects import Activity, Tell


class Heat(State):
    COLD = "Cold"
    FIRING = "Firing"


class Lit(Event, frozen=True):
    degrees: int = 200
    firing: int = 0

    @classmethod
    def examples_for(cls, record: "Kiln") -> "tuple[Lit, ...]":
        return cls(200, record.firings + 1), cls(900, record.firings + 1)


class Fired(Event, frozen=True):
    pass


class GivenUp(Event, frozen=True):
    pass


class Fire(Activity, frozen=True):
    degrees: int


class Kiln(Record, frozen=True):
    identifiers = ("firings",)

    state: Heat = Heat.COLD
    degrees: int = 0
    firings: int = 0


def fire(kiln: Kiln) -> Fire:
    return Fire(kiln.degrees)


def light(kiln: Kiln, event: Lit) -> Step[Kiln, Never]:
    return Step(replace(kiln, degrees=event.degrees, firings=event.firing))


def is_fine(kiln: Kiln, event: Lit) -> bool:
    return event.firing == kiln.firings + 1 and event.degrees < HOTTEST


HOTTEST = 1_000
TIMERS = ()
LATE = ()

machine = Machine(
    "kiln",
    Kiln(),
    rows=(
        row(Heat.COLD, Lit, Heat.FIRING, light, when=is_fine),
        row(Heat.FIRING, Fired, Heat.COLD),
        *LATE,
    ),
    during={Heat.FIRING: (does(fire, last=Fired), *TIMERS)},
    rests=lambda kiln: kiln.state is Heat.COLD,
    properties=(PROPERTY,),
)
"""

COLD = "lambda kiln: kiln.state is Heat.FIRING, lambda kiln: kiln.state is Heat.COLD"
HOTTER = "lambda kiln: kiln.state is Heat.FIRING, lambda kiln: kiln.record.degrees > 950"
COOLER = ("HOTTEST = 1_000", "HOTTEST = 500")
TIMED = ("TIMERS = ()\nLATE = ()", "TIMERS = (after(100, GivenUp),)\nLATE = (row(Heat.FIRING, GivenUp, Heat.COLD),)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder of a user, in which pytest looks for nothing further up."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("kilns", None)


def _written(prop: str, *mended: tuple[str, str], module: str = KILNS) -> None:
    text = module.replace("PROPERTY", prop)
    for fault, cure in mended:
        assert fault in text
        text = text.replace(fault, cure)
    Path("kilns.py").write_text(text)


def _emitted(attribute: str = "machine") -> Report:
    """Check what is in this folder, and write its tests."""
    sys.modules.pop("kilns", None)
    target = named(f"kilns:{attribute}")
    report = check(target.subject, opening=target.opening, bounds=target.bounds)
    text, without = emitted([(target, report)])
    assert without == ()
    Path("test_found.py").write_text(text)
    return report


def _tested() -> tuple[str, str]:
    """Run the one test that was emitted, here; return what came of it, and what it says."""
    sys.modules.pop("kilns", None)
    (test,) = (each for name, each in runpy.run_path("test_found.py").items() if name.startswith("test_"))
    try:
        test()
    except SkipTest as skipped:
        return "skipped", str(skipped)
    except AssertionError as failed:
        return "failed", str(failed)
    return "passed", ""


def _tested_alone(outcome: str) -> str:
    """Run an emitted test with pytest, with only this folder and lifefold; return the output of pytest."""
    command = (sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "test_found.py")
    environment = {name: each for name, each in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert found.stderr == ""
    assert outcome in found.stdout.splitlines()[-1], found.stdout
    return found.stdout


def _test_of(report: Report) -> str:
    assert [each.outcome for each in report.broken()] == [Outcome.BROKEN]
    return Path("test_found.py").read_text()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "prop",
    [
        'always("it is never too hot", lambda kiln: kiln.record.degrees < 500)',
        'always_step("no fire is too hot", lambda step: step.after.record.degrees < 500)',
    ],
)
def test_a_way_to_what_must_not_be_fails_until_its_last_step_is_refused(prop: str) -> None:
    """It fails for the property; on rules that refuse the step that broke it, it passes."""
    _written(prop)
    text = _test_of(_emitted())
    assert "    run.command(Lit(degrees=900, firing=1))  # Cold → Firing\n" in text
    failed = _tested_alone("1 failed")
    assert "AssertionError: what has happened:" in failed
    assert "1. kiln: command Lit(degrees=900, firing=1)  Cold → Firing" in failed
    _written(prop, COOLER)
    _tested_alone("1 passed")


@pytest.mark.usefixtures("folder")
def test_a_run_that_stands_still_fails_until_something_has_to_happen_in_it() -> None:
    """That nothing goes on is no violation any more as soon as a timer must elapse there."""
    _written(f'leads_to("every firing ends", {COLD})')
    text = _test_of(_emitted())
    assert text.count("run.goes_round()") == 1
    outcome, said = _tested()
    assert outcome == "failed"
    assert "and then nothing, for ever" in said
    _written(f'leads_to("every firing ends", {COLD})', TIMED)
    assert _tested()[0] == "passed"


@pytest.mark.usefixtures("folder")
def test_a_run_that_goes_round_is_gone_twice_with_the_numbers_of_each_round() -> None:
    """What refers to a number of the record has another number in the second round."""
    prop = f'leads_to("it gets hotter", {HOTTER}, given=weakly(Lit, Fire))'
    _written(prop)
    text = _test_of(_emitted())
    assert text.count("run.goes_round()") == 2
    assert all(f"firing={number}))" in text for number in (1, 2))
    outcome, said = _tested()
    assert outcome == "failed"
    assert "and then, for ever:" in said
    _written(prop, ("given=weakly(Lit, Fire)", ""), ("degrees > 950", "degrees > 100"))
    assert _tested()[0] == "passed"


@pytest.mark.usefixtures("folder")
def test_a_run_that_goes_round_is_excluded_when_it_cannot_go_on() -> None:
    """Rules that allow one round, and no second one, keep the property on this run."""
    prop = f'leads_to("it gets hotter", {HOTTER}, given=weakly(Lit, Fire))'
    _written(prop)
    _emitted()
    assert _tested()[0] == "failed"
    _written(prop, ("event.firing == kiln.firings + 1", "event.firing == 1"))
    assert _tested()[0] == "passed"


@pytest.mark.usefixtures("folder")
def test_a_way_that_is_lost_before_its_end_is_skipped_and_says_where() -> None:
    """A test that can no longer test anything does not pretend to."""
    prop = 'always("it is not fired twice", lambda kiln: kiln.record.firings < 2)'
    unnumbered = ('identifiers = ("firings",)\n', "\n")
    bounded = ("event.firing == kiln.firings + 1", "event.firing == kiln.firings + 1 < 4")
    _written(prop, unnumbered, bounded)
    assert "run.report(" in _test_of(_emitted())
    assert _tested()[0] == "failed"
    _written(prop, unnumbered, ("event.firing == kiln.firings + 1", "event.firing == 7"))
    assert "the trace is lost after 0 steps, check again:" in _tested_alone("1 skipped")


@pytest.mark.usefixtures("folder")
def test_a_property_that_is_gone_is_skipped_by_name() -> None:
    """The failure of a test names a removed property."""
    _written('always("it is never too hot", lambda kiln: kiln.record.degrees < 500)')
    _emitted()
    _written('always("it is never far too hot", lambda kiln: kiln.record.degrees < 1_000)')
    outcome, said = _tested()
    assert outcome == "skipped"
    assert "kiln does not have this property any more: it is never too hot" in said


@pytest.mark.usefixtures("folder")
def test_what_is_stuck_fails_until_it_can_go_on_or_is_settled() -> None:
    """The checker's own property has a test, too."""
    stuck = ("row(Heat.FIRING, Fired, Heat.COLD)", "row(Heat.FIRING, Fired, Heat.DONE)")
    state = ('    FIRING = "Firing"', '    FIRING = "Firing"\n    DONE = "Done"\n    GONE = "Gone"')
    way = ("*LATE,", "row(Heat.DONE, GivenUp, Heat.GONE, when=lambda _kiln, _event: False), *LATE,")
    final = ("    rests=", "    final={Heat.GONE},\n    rests=")
    prop = 'always("it is a kiln", lambda kiln: True)'
    _written(prop, stuck, state, way, final)
    assert "assert run.can_go_on(), run.story()" in _test_of(_emitted())
    assert _tested()[0] == "failed"
    _written(prop, stuck, state, way, final, ("kiln.state is Heat.COLD", "kiln.state is not Heat.FIRING"))
    assert _tested()[0] == "passed"


POTTERY = (
    KILNS
    + """

class Counting(State):
    OPEN = "Open"
    AWAY = "Away"


class PutAway(Event, frozen=True):
    pass


class Counted(Event, frozen=True):
    pots: int = 1


class Tally(Record, frozen=True):
    state: Counting = Counting.OPEN
    counted: int = 0


def count(tally: Tally, event: Counted) -> Step[Tally, Never]:
    return Step(replace(tally, counted=min(MOST, tally.counted + event.pots)))


MOST = 3

tally = Machine(
    "tally",
    Tally(),
    rows=(row(Counting.OPEN, Counted, Counting.OPEN, count), row(Counting.OPEN, PutAway, Counting.AWAY)),
    final={Counting.AWAY},
    rests=lambda _tally: True,
    properties=(always("two pots at most", lambda tally: tally.record.counted < 3),),
)


@rule(on=machine)
def tell_pots(_kilns: Aggregate, transition: Transition) -> "Iterator[Tell]":
    if isinstance(transition.event, Fired):
        yield Tell("tally", "tally", Counted())


def pottery() -> "tuple[System, list[tuple[str, Envelope]]]":
    system = System(
        "pottery",
        AggregateType("kiln", machines=(machine,), rules=(tell_pots,)),
        AggregateType("tally", machines=(tally,), commands={"tally": ()}),
        properties=(always("messages do not pile up", lambda system_state: len(system_state.in_flight) < 9),),
    )
    records = {"tally": Tally()}, {"kiln": Kiln()}
    names = "tally", "kiln/a"
    return system, [(name, Envelope("", Opened(each), 0)) for name, each in zip(names, records)]
"""
)


@pytest.mark.usefixtures("folder")
def test_messages_of_a_system_are_steps_that_must_be_under_way() -> None:
    """A system is opened by the function that makes it; each message arrives when the way says so."""
    prop = 'always("it is a kiln", lambda kiln: True)'
    _written(
        prop,
        ('"Firing"\n', '"Firing"\n'),
        ("+ 1 and", "+ 1 < 5 and"),
        ('identifiers = ("firings",)\n', "\n"),
        module=POTTERY,
    )
    text = _test_of(_emitted("pottery"))
    assert "    run = Replay(*pottery())\n" in text
    assert '    run.message(Counted(), "kiln/a", "tally")\n' in text
    assert _tested()[0] == "failed"
    _written(prop, ("MOST = 3", "MOST = 2"), module=POTTERY)
    assert _tested()[0] == "passed"
    _written(prop, ("Counted())", "Counted(2))"), module=POTTERY)
    outcome, said = _tested()
    assert outcome == "skipped"
    assert "kiln/a does not tell tally Counted(pots=1)" in said


@pytest.mark.usefixtures("folder")
def test_a_system_without_a_function_is_opened_by_what_is_written() -> None:
    """Each envelope, with the records in it; as many words of operators as were allowed."""
    silent: Property[SystemState] = always("no message is in flight", lambda system_state: not system_state.in_flight)
    system = System("pottery", *kiln.system.aggregates.values(), properties=(silent,))
    bounds = Bounds(commands=1, states=200, depth=4)
    target = Target("pottery", system, tuple(kiln.opened(0)), bounds, ("kiln", "system"), "system")
    report = check(system, opening=target.opening, bounds=bounds)
    (broken,) = (each for each in report.verdicts if each.name == silent.name)
    text, _ = emitted([(target, msgspec.structs.replace(report, verdicts=(broken,)))])
    assert '        ("tally", Envelope(entity="", event=Opened(records={"tally": Tally()})' in text
    assert "    ], commands=1)\n" in text
    Path("test_found.py").write_text(text)
    assert _tested() == ("skipped", "pottery does not have this property any more: no message is in flight")


def test_a_name_that_a_package_exports_is_imported_from_the_package() -> None:
    """The module inside the package, which may move, is not in a written test."""
    names = Names()
    assert names.expression(CancelSession()) == "CancelSession()"
    assert names.lines() == ["from lifefold.effects import CancelSession"]


@pytest.mark.usefixtures("folder")
def test_a_machine_begins_as_it_did_when_it_was_checked() -> None:
    """A starting record that is not the machine's own is written."""
    record = session.Session(name="ann", limits=session.Limits(max_total_errors=2))
    false = session.machine.starting(record).with_properties(
        always("it never builds", lambda found: not found.version > 1)
    )
    bounds = Bounds(states=50, depth=3)
    target = msgspec.structs.replace(named("session"), subject=false, record=record, bounds=bounds)
    text, _ = emitted([(target, check(false, bounds=bounds))])
    began = 'machines()["session"].starting(Session(name="ann", limits=Limits(max_total_errors=2)))'
    assert f"    run = Replay({began})\n" in text
    assert "from lifefold.core.lifecycles.session_model import " in text
    Path("test_found.py").write_text(text)
    assert _tested() == ("skipped", "session does not have this property any more: it never builds")


@pytest.mark.usefixtures("folder")
def test_properties_that_a_configuration_adds_are_in_the_test_that_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are imported from where they are, and the test fails by them."""
    declared = 'always("nobody is launched", lambda each: each.state.name != "SPAWNING")'
    Path("kilns.py").write_text(f"from lifefold.core.kernel import always\n\nMORE = ({declared},)\n")
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    configurations = {"turn": CheckConfiguration(properties=(("kilns", "MORE"),))}
    monkeypatch.setattr("lifefold.interpreters.targets.check_targets.CHECK_CONFIGURATIONS", configurations)
    target = named("turn")
    written, without = emitted([(target, check(target.subject))])
    assert without == ()
    assert 'Replay(machines()["turn"].with_properties(*MORE))' in written
    Path("test_found.py").write_text(written)
    assert _tested()[0] == "failed"


@pytest.mark.usefixtures("folder")
def test_properties_that_a_configuration_adds_to_a_system_are_in_the_test_that_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those of a machine are."""
    declared = 'always("no message is ever in flight", lambda system_state: not system_state.in_flight)'
    Path("kilns.py").write_text(f"from lifefold.core.kernel import always\n\nMORE = ({declared},)\n")
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    shipped = named("fleet")
    bounds = Bounds(commands=0, states=100, compared=0)
    configurations = {
        "fleet": CheckConfiguration(opening=shipped.opening, bounds=bounds, properties=(("kilns", "MORE"),))
    }
    monkeypatch.setattr("lifefold.interpreters.targets.check_targets.CHECK_CONFIGURATIONS", configurations)
    target = named("fleet")
    report = check(target.subject, opening=target.opening, bounds=bounds)
    (broken,) = (each for each in report.verdicts if each.name == "no message is ever in flight")
    written, without = emitted([(target, msgspec.structs.replace(report, verdicts=(broken,)))])
    assert without == ()
    assert 'Replay(systems()["fleet"].with_properties(*MORE), [' in written
    Path("test_found.py").write_text(written)
    assert _tested()[0] == "failed"


class Colour(Enum):
    RED = "red"


class Ash(Record, frozen=True):
    state: Colour = Colour.RED
    pots: int = 0


class Moved(Event, frozen=True):
    ash: Ash = Ash()
    names: tuple[str, ...] = ()


VALUES = [
    Moved(), Moved(Ash(pots=3), ("a", 'b"', "c'd\n")), Colour.RED, ("one",), (1, -20_000), [None, True, 1.5, b"x"],
    {"a": Ash()}, frozenset({2, 1}), pmap({"k": 1}), pvector([Ash(pots=1)]), Ash, int,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_an_expression_makes_the_same_value_again(value: object, tmp_path: Path) -> None:
    """With the imports that are written above it, and nothing else."""
    names = Names()
    expression = names.expression(value)
    file = tmp_path / "made.py"
    file.write_text("\n".join([*names.lines(), f"found = {expression}"]))
    assert runpy.run_path(str(file))["found"] == value


def test_types_of_one_name_are_told_apart() -> None:
    """The second one gets a name of its own."""
    names = Names("run")
    assert [names.of("a", "Done"), names.of("b", "Done"), names.of("a", "Done"), names.of("c", "run")] == [
        "Done", "Done_2", "Done", "run_2",
    ]  # fmt: skip
    assert names.lines() == ["from a import Done", "from b import Done as Done_2", "from c import run as run_2"]


def test_what_cannot_be_imported_or_written_is_named() -> None:
    """A type inside a function, or a value without an expression."""

    class Hidden(Event, frozen=True):
        pass

    with pytest.raises(Unwritable, match="Hidden cannot be imported"):
        Names().expression(Hidden())
    with pytest.raises(Unwritable, match="no expression for a object"):
        Names().expression(object())
