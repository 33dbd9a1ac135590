"""A check and a simulation name the rules that never asked for anything, and keep the list short unless asked."""

import json
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Dispatch,
    Envelope,
    Event,
    Machine,
    Opened,
    Record,
    Rule,
    State,
    System,
    Transition,
    row,
    rule,
)
from lifefold.interpreters.campaign import trial
from lifefold.interpreters.check import Report, check
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.report.report import UNUSED_SHOWN
from lifefold.interpreters.targets.simulation_targets import named


class Lamp(State):
    DARK = "Dark"
    BRIGHT = "Bright"
    BROKEN = "Broken"


class Switched(Event, frozen=True):
    """An operator switches the lamp."""


class Dropped(Event, frozen=True):
    """No operator may send this event, and no rule does."""


class Light(Record, frozen=True):
    state: Lamp = Lamp.DARK


lamp: Final = Machine(
    "lamp",
    Light(),
    rows=(
        row(Lamp.DARK, Switched, Lamp.BRIGHT),
        row(Lamp.BRIGHT, Switched, Lamp.DARK),
        row(Lamp.DARK, Dropped, Lamp.BROKEN),
    ),
    final={Lamp.BROKEN},
)


@rule(on=lamp, event=Created)
def begin(_room: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Switch the lamp on at the beginning."""
    yield Dispatch(transition.entity, Switched())


@rule(on=lamp, enters=Lamp.BRIGHT)
def save(_room: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Ask for nothing: the lamp is never dropped."""
    if transition.after.state is Lamp.BROKEN:
        yield Dispatch(transition.entity, Switched())


def repair(number: int) -> Rule:
    """Return a rule on broken lamps, which no input breaks."""

    def mend(_room: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
        yield Dispatch(f"lamp:{number}", Switched())

    mend.__name__ = f"repair_{number}"
    return rule(on=lamp, enters=Lamp.BROKEN)(mend)


REPAIRS: Final = UNUSED_SHOWN + 3


def room() -> tuple[System, list[tuple[str, Envelope]]]:
    """Return a room with a lamp."""
    rules = (begin, save, *(repair(number) for number in range(REPAIRS)))
    commands = {"lamp": (Switched,)}
    system = System(
        "house",
        AggregateType("room", machines=(lamp,), rules=rules, commands=commands),
    )
    return system, [("room", Envelope("", Opened({"lamp:0": Light()}), 0))]


def checked() -> Report:
    system, opening = room()
    return check(system, opening=opening)


NEVER: Final = [
    "room: rule save on lamp: is triggered, and never answers",
    *(f"room: rule repair_{number} on lamp: never triggered" for number in range(REPAIRS)),
]


def test_a_check_names_the_rules_that_never_answer() -> None:
    """Those that no step triggers, and those that are triggered and ask for nothing; also a rule of the opening."""
    report = checked()
    assert list(report.unused_rules) == NEVER
    assert report.coverage["rules"] == (1, len(NEVER) + 1)


def test_a_report_shows_a_few_of_the_unused_rules_and_counts_the_others() -> None:
    """With ``shows_unused`` it shows all of them."""
    text = "\n".join(checked().lines(200))
    assert [line in text for line in NEVER] == [place < UNUSED_SHOWN for place, _ in enumerate(NEVER)]
    assert f"and {len(NEVER) - UNUSED_SHOWN} more, in `unused_rules` (--unused)" in text
    every = "\n".join(checked().lines(200, shows_unused=True))
    assert all(line in every for line in NEVER)
    assert "--unused" not in every


def test_a_kind_whose_rules_were_not_triggered_is_named_once() -> None:
    """As a service in a fleet without services."""
    unused = check_of_two_rooms().unused_rules
    assert "cellar: none of its 2 rules is triggered" in unused
    assert not any(line.startswith("cellar: rule") for line in unused)


def check_of_two_rooms() -> Report:
    system = System(
        "house",
        AggregateType("room", machines=(lamp,), rules=(begin,), commands={"lamp": (Switched,)}),
        AggregateType("cellar", machines=(lamp,), rules=(begin, save)),
    )
    return check(system, opening=[("room", Envelope("", Opened({"lamp:0": Light()}), 0))])


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of this system for the command line."""
    monkeypatch.setitem(sys.modules, "used_rules_here", sys.modules[__name__])
    return "used_rules_here:room"


def test_a_simulation_names_the_rules_and_rows_that_were_not_used(target: str) -> None:
    """As text and in JSON."""
    report = trial(named(target), range(3))
    assert report.facts()["unused_rules"] == NEVER
    assert "lamp: never taken: row(Dark, Dropped, Broken)" in report.facts()["missing"]
    text = "\n".join(report.lines(200))
    assert NEVER[0] in text
    assert NEVER[-1] not in text
    assert NEVER[-1] in "\n".join(report.lines(200, shows_unused=True))


@pytest.mark.parametrize("command", [["check"], ["simulate", "--seeds", "2"]])
def test_the_command_line_prints_all_on_request(
    command: list[str], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--unused``; without it the last one is only counted, and JSON has all of them anyway."""
    verb, *options = command
    for given, expected in ((options, False), ([*options, "--unused"], True)):
        main([verb, target, *given])
        assert (f"repair_{REPAIRS - 1} " in capsys.readouterr().out) is expected
    main([verb, target, *options, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told[0] if isinstance(told, list) else told)["unused_rules"] == NEVER
