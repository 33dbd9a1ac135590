"""Systems of one's own: what is wrong with how they begin, and with what their aggregates tell each other."""

import json
import operator
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lifefold.core.kernel import (
    AggregateType,
    Envelope,
    Event,
    Machine,
    Opened,
    Property,
    Record,
    Row,
    State,
    Step,
    System,
    SystemState,
    after,
    always,
    always_step,
    eventually,
    leads_to,
    row,
    rule,
)
from lifefold.effects import Tell
from lifefold.interpreters.check import Bounds, CrashBounds, Report, check
from lifefold.interpreters.cli.app import main


class Guest(State):
    HERE = "Here"
    WAITING = "Waiting"
    FED = "Fed"


class Stove(State):
    COLD = "Cold"
    HOT = "Hot"


class Ordered(Event, frozen=True):
    """A guest orders."""


class Served(Event, frozen=True):
    """A guest gets it."""


class Paid(Event, frozen=True):
    """A guest pays: no table knows what that is."""


class Cook(Event, frozen=True):
    """The stove is to be lit."""


class Ready(Event, frozen=True):
    """It is done."""


class Table(Record, frozen=True):
    state: Guest = Guest.HERE
    spoken: int = 0


class Fire(Record, frozen=True):
    state: Stove = Stove.COLD


TABLE: Final = Machine(
    "table",
    Table(),
    rows=(
        row(Guest.HERE, Ordered, Guest.WAITING),
        row(Guest.WAITING, Served, Guest.FED),
        row(Guest.FED, Ordered, Guest.WAITING),
    ),
    rests=lambda _table: True,
)
STOVE: Final = Machine(
    "stove",
    Fire(),
    rows=(row(Stove.COLD, Cook, Stove.HOT), row(Stove.HOT, Ready, Stove.COLD)),
    during={Stove.HOT: after(1_000, Ready)},
    rests=lambda _stove: True,
)


def system(cook: Tell, serve: Tell, *properties: Any) -> System:
    """Return an inn that sends these at an order, and when it is ready."""

    @rule(on=TABLE)
    def order(_inn: Any, step: Any) -> tuple[Tell, ...]:
        return (cook,) if step.after.state is Guest.WAITING else ()

    @rule(on=STOVE)
    def ready(_kitchen: Any, step: Any) -> tuple[Tell, ...]:
        return (serve,) if isinstance(step.event, Ready) else ()

    commands: Mapping[str, tuple[type[Event], ...]] = {"table": (Ordered,)}
    inn = AggregateType("inn", machines=(TABLE,), rules=(order,), commands=commands)
    kitchen = AggregateType("kitchen", machines=(STOVE,), rules=(ready,), commands={"stove": ()})
    return System("house", inn, kitchen, properties=properties)


COOK: Final = Tell("kitchen", "stove", Cook())
SERVE: Final = Tell("inn", "table", Served())
OPENING: Final = (
    ("inn", Envelope("", Opened({"table": Table()}), 0)),
    ("kitchen", Envelope("", Opened({"stove": Fire()}), 0)),
)


def looked(cook: Tell = COOK, serve: Tell = SERVE, bounds: Bounds | None = None) -> Report:
    """Check an inn."""
    return check(system(cook, serve), opening=OPENING, bounds=bounds)


def test_messages_that_arrive_are_not_spoken_of() -> None:
    """Nothing is in vain."""
    report = looked()
    assert (report.ok, report.messages) == (True, ())
    assert "vain" not in str(report)


@pytest.mark.parametrize(
    ("serve", "why"),
    [
        (Tell("waiter", "table", Served()), "no 'waiter' knows Served for 'table'"),
        (Tell("inn", "chair", Served()), "no 'inn' knows Served for 'chair'"),
        (Tell("inn", "table", Paid()), "no 'inn' knows Paid for 'table'"),
    ],
    ids=["aggregate", "entity", "event"],
)
def test_a_message_without_a_receiver_has_a_line_of_its_own(serve: Tell, why: str) -> None:
    """No such kind, no such entity, no such event: with the shortest trace to where it would be sent."""
    report = looked(serve=serve)
    assert report.ok
    assert report.conclusion().endswith("properties hold; 1 message in vain")
    (message,) = report.messages
    assert (message.sender, message.receiver, message.event) == ("kitchen", serve.aggregate, type(serve.event).__name__)
    assert message.why == f"is not sent: kitchen: {why}"
    lines = str(report).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  ! message     kitchen tells "))
    way = [line.strip() for line in lines[at:] if line.strip()[:2] in {"1.", "2.", "3.", "4."}]
    assert way[-1].startswith("3. kitchen stove: Ready elapses")


def test_a_message_that_is_refused_whenever_it_comes_has_one_too() -> None:
    """The guest gets a meal without an order; the report has the trace to the first time."""
    report = looked(serve=Tell("inn", "table", Ordered()), bounds=Bounds(commands=1))
    (message,) = report.messages
    assert message.words() == (
        "kitchen tells inn Ordered: is refused whenever it comes: "
        "table: Ordered is not possible in Waiting (possible: Served)"
    )
    assert [line.strip()[:2] for line in message.way() if line.strip()[:1].isdigit()] == ["1.", "2.", "3.", "4."]


def test_a_message_that_is_taken_once_is_not_in_vain() -> None:
    """Who orders again while the stove is hot is refused, and only then."""
    assert looked(serve=Tell("inn", "table", Served())).messages == ()


def test_what_is_refused_is_not_in_vain_if_not_everything_was_looked_at() -> None:
    """It could be accepted later on. A message without a receiver is an error all the same."""
    refused = Tell("inn", "table", Ordered())
    whole = looked(serve=refused, bounds=Bounds(commands=1))
    assert len(whole.messages) == 1
    cut = [looked(serve=refused, bounds=Bounds(commands=1, states=most)) for most in range(1, whole.states)]
    assert all(report.truncated and report.messages == () for report in cut)
    unread = Bounds(commands=1, states=3)
    assert len(looked(serve=Tell("waiter", "table", Served()), bounds=unread).messages) == 1


def test_an_exhausted_command_is_not_part_of_a_trace() -> None:
    """The way keeps to the bounds; what none of them leads to is told without a way."""
    silent = looked(cook=Tell("waiter", "stove", Cook()), bounds=Bounds(commands=0))
    assert [message.trace for message in silent.messages] == [None]
    once = looked(cook=Tell("waiter", "stove", Cook()), bounds=Bounds(commands=1))
    assert [len(message.trace.steps) for message in once.messages if message.trace] == [1]


def test_programs_and_notebooks_are_told_of_messages_in_vain() -> None:
    """As people are."""
    report = looked(serve=Tell("waiter", "table", Served()))
    shown = report._repr_mimebundle_()["text/html"]
    assert "kitchen tells waiter Served: is not sent" in shown
    assert shown.count("the shortest trace") == 1


def test_a_message_to_an_aggregate_that_the_opening_has_not_is_shown_with_the_way() -> None:
    """Its kind is there, it is not; that is a broken property, and nothing else is decided."""
    report = check(system(COOK, Tell("inn/second", "table", Served())), opening=OPENING, crashes=CrashBounds(1, 1, 1))
    (broken,) = report.broken()
    assert (broken.name, report.crashes) == ("every message has a recipient", None)
    assert [" ".join(line.split()) for line in broken.way()][-2:] == [
        "3. kitchen stove: Ready elapses",
        "kitchen sends 'inn/second' a message; the aggregates are inn, kitchen",
    ]


def test_so_is_one_that_is_told_in_the_beginning() -> None:
    """Before anything happens."""
    opening = (("inn", Envelope("", Opened({"table": Table(Guest.WAITING)}), 0)), OPENING[1])
    report = check(system(Tell("kitchen/b", "stove", Cook()), SERVE), opening=opening)
    assert ["inn sends 'kitchen/b' a message" in line for line in report.broken()[0].way()] == [True]


def lonely(told: Tell) -> Report:
    """Check an inn without rules, whose table sends this by its row at an order."""

    def call(record: Table, _event: Ordered) -> Step[Table, Tell]:
        return Step(record, (told,))

    rows: tuple[Row[Table], ...] = (row(Guest.HERE, Ordered, Guest.WAITING, call), TABLE.rows[1])
    machine = Machine("table", Table(), rows=rows, final={Guest.FED}, rests=lambda _table: True)
    inn = AggregateType("inn", machines=(machine,), commands={"table": (Ordered,)})
    kitchen = AggregateType("kitchen", machines=(STOVE,), commands={"stove": ()})
    return check(System("house", inn, kitchen), opening=OPENING)


def test_what_a_row_tells_is_looked_at_as_what_a_rule_tells() -> None:
    """It arrives, or has a line of its own."""
    heard = lonely(COOK)
    assert (heard.ok, heard.messages, heard.components) == (True, (), {"inn": 2, "kitchen": 2})
    unheard = lonely(Tell("waiter", "table", Served()))
    assert (unheard.ok, [message.receiver for message in unheard.messages]) == (True, ["waiter"])


def test_an_aggregate_that_tells_itself_something_is_told_what_to_do() -> None:
    """A rule dispatches."""
    (broken,) = lonely(Tell("inn", "table", Served())).broken()
    assert list(broken.way())[-1].strip() == "inn sends itself a message; inside an aggregate a rule uses Dispatch"


def test_one_aggregate_does_not_begin_twice() -> None:
    """Nor does one of no kind, nor one without a receiver."""
    of = system(COOK, SERVE)
    with pytest.raises(ValueError, match="'inn' is in the opening twice; others of its kind are inn/NAME"):
        check(of, opening=(*OPENING, OPENING[0]))
    with pytest.raises(ValueError, match="'tavern' is none of inn, kitchen"):
        check(of, opening=(*OPENING, ("tavern", OPENING[0][1])))
    with pytest.raises(ValueError, match="the opening is empty; the aggregates are inn, kitchen"):
        check(of)


def test_properties_of_a_system_are_properties() -> None:
    """Also those that are asked besides its own."""
    wrong: Any = [OPENING[0]]
    with pytest.raises(TypeError, match=r"^house: several properties where one is accepted"):
        check(system(COOK, SERVE), opening=OPENING, properties=wrong)


def test_what_is_checked_is_a_machine_or_a_system() -> None:
    """A pair, as the command line takes it, is not; nor does a machine have an opening."""
    wrong: Any = (system(COOK, SERVE), OPENING)
    with pytest.raises(TypeError, match=r"^a Machine is accepted, or a System with its opening=; not a tuple$"):
        check(wrong)
    with pytest.raises(ValueError, match=r"^a Machine begins with its record, .*; opening= is for a System$"):
        check(TABLE, opening=OPENING)


def test_an_invariant_need_have_no_name() -> None:
    """It is called what it is."""
    machine = Machine("table", Table(), rows=TABLE.rows, invariants=(partial(operator.ne, None),))
    report = check(machine)
    assert [each.name for each in report.verdicts if "partial" in each.name] == [
        "functools.partial(<built-in function ne>, None)"
    ]


def the_table(system_state: SystemState) -> Any:
    return system_state.aggregates["inn"].record("table")


BEGINNINGS: Final[list[Property[Any]]] = [
    always("no guest is here", lambda system_state: the_table(system_state).state is not Guest.HERE),
    always_step("nobody comes", lambda step: step.before is not None or step.machine != "table"),
    eventually("everybody is fed", lambda system_state: the_table(system_state).state is Guest.FED),
]


@pytest.mark.parametrize("prop", BEGINNINGS, ids=lambda each: each.property_kind)
def test_what_is_broken_in_the_beginning_shows_the_beginning(prop: Any) -> None:
    """Every entity with its record, as there is no step to show."""
    report = check(system(COOK, SERVE, prop), opening=OPENING, bounds=Bounds(commands=0))
    broken = next(each for each in report.broken() if each.name == prop.name)
    assert list(broken.way())[:3] == [
        "     in the beginning:",
        "       inn table: Table(state=<Guest.HERE: 'Here'>, spoken=0)",
        "       kitchen stove: Fire(state=<Stove.COLD: 'Cold'>)",
    ]


def test_a_machine_alone_shows_its_record_in_one_line() -> None:
    """Where it begins, and with what then goes on."""
    properties: tuple[Property[Any], ...] = (
        always("it is spoken to", lambda table: table.record.spoken > 0),
        leads_to("they go", lambda table: table.state is Guest.HERE, lambda table: table.record.spoken > 0),
    )
    for broken in check(TABLE.with_properties(*properties)).broken():
        assert next(iter(broken.way())) == "     in the beginning: Table(state=<Guest.HERE: 'Here'>, spoken=0)"


class Noted(Record, frozen=True):
    opaque = ("notes",)

    state: Guest = Guest.HERE
    notes: tuple[str, ...] = ("none",)


def test_what_cannot_be_opaque_is_named_with_what_can() -> None:
    """The field, its type, and the types that can be."""
    machine = Machine(
        "noted",
        Noted(),
        rows=(row(Guest.HERE, Ordered, Guest.WAITING), row(Guest.WAITING, Served, Guest.FED)),
        final={Guest.FED},
    )
    said = r"^Noted.notes is opaque, and a tuple; texts \(str\) and whole numbers \(int\) can be opaque$"
    with pytest.raises(ValueError, match=said):
        check(machine)


class Listed(Record, frozen=True):
    state: Guest = Guest.HERE
    dishes: Any = msgspec.field(default_factory=list[str])


def test_a_record_is_of_values() -> None:
    """A list in it is named, whatever its type says; a search could not tell whether it has met it."""
    machine = Machine(
        "listed",
        Listed(),
        rows=(row(Guest.HERE, Ordered, Guest.WAITING), row(Guest.WAITING, Served, Guest.FED)),
        final={Guest.FED},
    )
    with pytest.raises(ValueError, match=r"^Listed of 'listed' is not a value: unhashable type: 'list'; a record"):
        check(machine)


OWN = """
from test_own_systems import OPENING, SERVE, Tell, Served, system, COOK
from test_own_systems import Noted, Machine, row, Guest, Ordered

nobody = (system(COOK, Tell("waiter", "table", Served())), OPENING)
absent = (system(COOK, Tell("inn/second", "table", Served())), OPENING)
twice = (system(COOK, SERVE), [*OPENING, *OPENING])
noted = Machine("noted", Noted(), rows=(row(Guest.HERE, Ordered, Guest.WAITING), row(Guest.WAITING, Served, Guest.FED)),
                final={Guest.FED})
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a folder with these systems in a module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parent)])
    Path("inns.py").write_text(OWN)
    yield
    sys.modules.pop("inns", None)


@pytest.mark.usefixtures("own")
def test_the_command_line_tells_of_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """In its words, and its exit codes; of who is absent there is no test."""
    assert main(["check", "inns:nobody", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    (message,) = told["messages"]
    assert (message["sender"], message["receiver"], message["event"]) == ("kitchen", "waiter", "Served")
    assert message["trace"][-1].startswith("  3. kitchen stove: Ready elapses")
    assert main(["check", "inns:absent", "--emit-test", "test_x.py"]) == 1
    assert "house: every message has a recipient: the rules go on" in capsys.readouterr().err
    assert main(["check", "inns:twice"]) == 2
    assert "inns:twice: 'inn' is in the opening twice" in capsys.readouterr().err
    assert main(["check", "inns:noted"]) == 2
    assert "inns:noted cannot be checked: Noted.notes is opaque" in capsys.readouterr().err


DRIVER: Final = """
from lifefold import Activity, Event, Machine, Record, State, does, leads_to, row


class Trip(State):
    HOME = "Home"
    AWAY = "Away"


class Begun(Event, frozen=True): ...


class Back(Event, frozen=True): ...


class Drive(Activity, frozen=True): ...


class Driver(Record, frozen=True):
    state: Trip = Trip.HOME


def drive(_driver: Driver) -> Drive:
    return Drive()


driver = Machine(
    "driver",
    Driver(),
    rows=(row(Trip.HOME, Begun, Trip.AWAY), row(Trip.AWAY, Back, Trip.HOME)),
    during={Trip.AWAY: does(drive, last=Back)},
    properties=(leads_to("it comes home", lambda e: e.state is Trip.AWAY, lambda e: e.state is Trip.HOME, GIVEN),),
    rests=lambda record: record.state is Trip.HOME,
)
"""


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (
            "given=()",
            1,
            "         Drive need not end: given=weakly(Drive) assumes it\n         and from then on nothing",
        ),
        ("given=weakly(Drive)", 0, "all 9 properties hold"),
    ],
)
def test_an_activity_that_may_last_for_ever_is_named_with_the_assumption_that_it_ends(  # noqa: PLR0913, PLR0917
    given: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = DRIVER.replace("GIVEN", given).replace("leads_to, row", "leads_to, row, weakly")
    (tmp_path / f"driver_{code}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["check", f"driver_{code}:driver"]) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("    state: Trip", "    stat: Trip", "at wrong.py:29: TypeError: Missing required argument 'state'"),
        ("Back, Trip.HOME)", "Back, Trip.HOME, when='x')", "at wrong.py:27: AttributeError: 'str' object has no"),
    ],
)
def test_an_error_in_a_module_of_ones_own_is_shown_with_its_place(  # noqa: PLR0913, PLR0917 - the cases, and fixtures
    right: str,
    wrong: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "wrong.py").write_text(DRIVER.replace("GIVEN", "given=()").replace(right, wrong))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "wrong", raising=False)
    assert main(["check", "wrong:driver"]) == 2
    assert f"'wrong' cannot be imported, {said}" in capsys.readouterr().err
