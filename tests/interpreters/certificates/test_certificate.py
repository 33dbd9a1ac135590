"""Certificates state the proofs of a code, and are stale for another one."""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lifefold.core.kernel import always
from lifefold.core.lifecycles import approval
from lifefold.interpreters.certificates.certificate import (
    Certificate,
    NoCertificate,
    UnreadableCertificate,
    certify,
    changes,
    differences,
    environment_changes,
    id_of,
    read,
)
from lifefold.interpreters.certificates.code import checker, checker_modules, code_of
from lifefold.interpreters.check import Bounds, CrashBounds, check
from lifefold.interpreters.search.crash_model import Fault
from lifefold.interpreters.targets.check_targets import known, larger, named
from lifefold.interpreters.targets.configurations import CHECK_CONFIGURATIONS, CheckConfiguration
from lifefold.interpreters.targets.target import UnusableTarget

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "docs" / "certificates").glob("*.json"))
SMALL_STATES = 10
"""Of how many states at most a certificate is always made again; a campaign makes all of them."""

LAMPS = """
import wiring
from lifefold.core.kernel import Event, Machine, Record, State, Step, always, replace, row


class Light(State):
    ON = "On"
    OFF = "Off"
    GONE = "Gone"


class Turned(Event, frozen=True):
    pass


class Broken(Event, frozen=True):
    pass


class Lamp(Record, frozen=True):
    state: Light = Light.OFF
    turns: int = 0


def turn(lamp: Lamp, _event: Turned) -> Step[Lamp, object]:
    return Step(replace(lamp, turns=min(wiring.MOST, lamp.turns + 1)))


machine = Machine(
    "lamp",
    Lamp(),
    rows=(
        row(Light.OFF, Turned, Light.ON, turn),
        row(Light.ON, Turned, Light.OFF),
        row((Light.ON, Light.OFF), Broken, Light.GONE),
    ),
    final={Light.GONE},
    properties=(always("it is turned nine times at most", lambda lamp: lamp.record.turns <= 9),),
)
""".replace("Step[Lamp, object]", "Step[Lamp, Never]").replace(
    "import wiring", "from typing import Never\n\nimport wiring"
)

WIRING = "MOST = {}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder with a user's lamp in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _write(3)
    yield tmp_path
    _forget()


def _forget() -> None:
    for name in ("lamps", "wiring"):
        sys.modules.pop(name, None)


def _write(most: int) -> None:
    _forget()
    Path("lamps.py").write_text(LAMPS)
    Path("wiring.py").write_text(WIRING.format(most))


def _certificate(name: str = "lamps:machine", bounds: Bounds | None = None) -> Certificate:
    target = named(name)
    report = check(target.subject, opening=target.opening, bounds=bounds or target.bounds)
    return certify(target, report)


def test_a_certificate_is_the_same_each_time_and_everywhere(folder: Path) -> None:
    """No folder, no hour, no speed stands in it."""
    text = _certificate().encode()
    assert _certificate().encode() == text
    assert str(folder).encode() not in text
    assert b"seconds" not in text


def test_a_certificate_is_read_as_it_was_written(folder: Path) -> None:
    """With everything in it: the counts, the coverage, the properties, the versions."""
    certificate = _certificate()
    path = folder / "lamp.json"
    path.write_bytes(certificate.encode())
    assert read(path) == certificate
    assert certificate.counts.states == 11
    assert (certificate.verdicts.held, certificate.verdicts.open) == (3, ())
    assert certificate.coverage["rows"] == (3, 3)
    assert set(certificate.versions) == {"lifefold", "python", "msgspec", "numpy", "pyrsistent", "returns", "scipy"}


def test_a_certificate_holds_as_long_as_no_module_of_it_changes() -> None:
    """Also one that is only imported counts; that a line ends otherwise does not."""
    certificate = _certificate()
    assert changes(certificate, named("lamps:machine")) == ()
    Path("lamps.py").write_bytes(LAMPS.replace("\n", "\r\n").encode())
    _forget()
    assert changes(certificate, named("lamps:machine")) == ()
    _write(4)
    assert changes(certificate, named("lamps:machine")) == ("wiring has changed",)


PROSE = ("class Light(State):\n", 'class Light(State):\n    """A new docstring."""\n\n    # and a comment\n')
GUARD = ("min(wiring.MOST, lamp.turns + 1)", "min(wiring.MOST, lamp.turns + 2)")


def test_a_changed_docstring_invalidates_no_certificate_and_a_changed_rule_does() -> None:
    """A module counts by its syntax tree without prose."""
    certificate = _certificate()
    _forget()
    Path("lamps.py").write_text(LAMPS.replace(*PROSE))
    assert changes(certificate, named("lamps:machine")) == ()
    _forget()
    Path("lamps.py").write_text(LAMPS.replace(*GUARD))
    assert changes(certificate, named("lamps:machine")) == ("lamps has changed",)


def test_a_property_that_is_named_otherwise_invalidates_no_certificate_and_another_property_does() -> None:
    """The name of a property is prose. The functions that it is made of are its id."""
    certificate = _certificate()
    _forget()
    assert 'always("' in LAMPS
    Path("lamps.py").write_text(LAMPS.replace('always("', 'always("at all times: '))
    assert changes(certificate, named("lamps:machine")) == ()
    _forget()
    Path("lamps.py").write_text(LAMPS.replace("always", "sometimes"))
    assert changes(certificate, named("lamps:machine")) != ()


class Below:
    def __call__(self, _entity: object) -> bool:
        return True


@pytest.mark.parametrize(
    ("holds", "name"),
    [(Below.__call__, "Below.__call__"), (partial(Below.__call__, Below()), "Below.__call__"), (Below(), "Below")],
)
def test_a_property_of_any_callable_has_an_id(holds: Callable[[object], bool], name: str) -> None:
    assert id_of(always("any words", holds)) == name


def test_the_checker_is_all_that_searches() -> None:
    """A certificate is of the search and of the crash model, too: a change there is another checker."""
    assert {"check", "search", "crash"} <= {each.split(".")[2] for each in checker_modules()}


def test_another_checker_or_library_is_named() -> None:
    """What a search is made with is part of what it shows."""
    certificate = _certificate()
    assert environment_changes(certificate) == ()
    other = msgspec.structs.replace(certificate, checker="other", versions={**certificate.versions, "scipy": "0.1"})
    now = certificate.versions["scipy"]
    assert environment_changes(other) == ("the checker has changed", f"scipy is {now}, and was 0.1")


def test_a_property_that_the_target_does_not_declare_is_another_configuration() -> None:
    """Without any search: the names of what is asked are compared with what the target declares."""
    certificate = _certificate()
    made_up = msgspec.structs.replace(certificate.configuration, properties="0" * 32)
    forged = msgspec.structs.replace(certificate, configuration=made_up)
    assert changes(forged, named("lamps:machine")) == (OTHERWISE,)


def test_a_module_that_comes_or_goes_is_named() -> None:
    """What is imported now and was not, and the other way round."""
    before = _certificate()
    _forget()
    Path("lamps.py").write_text(LAMPS.replace("import wiring\n", "").replace("wiring.MOST", "3"))
    assert changes(before, named("lamps:machine")) == ("wiring has gone", "lamps has changed")
    after = _certificate()
    _write(3)
    assert changes(after, named("lamps:machine")) == ("wiring is new", "lamps has changed")


def test_another_search_is_compared_in_every_number() -> None:
    """Which counts, and which verdicts, are not as they were."""
    before = _certificate()
    _write(4)
    told = list(differences(before, _certificate()))
    assert "states: 14, and was: 11" in told
    assert "local states: lamp 14, and was: lamp 11" in told
    assert not list(differences(before, before))


def test_properties_that_come_and_go_are_differences() -> None:
    """The digest of their owners and kinds tells, also if there are as many as before."""
    before = _certificate()
    _forget()
    Path("lamps.py").write_text(LAMPS.replace("always", "sometimes"))
    assert "other properties are checked: 3 in all, and were: 3" in list(differences(before, _certificate()))


def test_a_verdict_that_changes_is_a_difference() -> None:
    """What was cut short has not been proven."""
    before = _certificate()
    told = list(differences(before, _certificate(bounds=Bounds(depth=2))))
    assert "truncated: more than 2 steps deep, and was: no" in told
    assert "lamp: it is turned nine times at most: undecided, and was: holds" in told


def test_nothing_is_certified_that_does_not_hold_or_would_not_be_met_again() -> None:
    """Not a broken property, and not a search that the clock has ended."""
    _write(10)
    with pytest.raises(NoCertificate, match="not every property holds"):
        _certificate()
    _write(3)
    target = named("lamps:machine")
    report = check(target.subject, bounds=target.bounds)
    ended = msgspec.structs.replace(report, truncated="more than 1 seconds")
    with pytest.raises(NoCertificate, match="would end elsewhere the next time"):
        certify(target, ended)


def _with_crashes(crashes: CrashBounds) -> Certificate:
    target = named("lamps:machine")
    return certify(target, check(target.subject, bounds=target.bounds, crashes=crashes))


def test_what_was_looked_at_of_crashes_is_certified(folder: Path) -> None:
    """With its own properties, bounds and counts; the next search looks at as much, and is compared in every number."""
    certificate = _with_crashes(CrashBounds(1, 1, 1, states=5_000))
    (folder / "lamp.json").write_bytes(certificate.encode())
    assert read(folder / "lamp.json") == certificate
    assert certificate.crashes is not None
    assert (certificate.crashes.begun, certificate.crashes.inputs) == (3, 1)
    assert certificate.verdicts.held == _certificate().verdicts.held + len(Fault)
    bounds = certificate.crash_bounds()
    assert bounds is not None
    assert not list(differences(certificate, _with_crashes(bounds)))
    more = list(differences(certificate, _with_crashes(CrashBounds(2, 1, 1))))
    assert "crashes, inputs: 2, and was: 1" in more
    assert any(line.startswith("crashes, states: ") for line in more)
    without = list(differences(certificate, _certificate()))
    assert "crashes, inputs: nothing, and was: 1" in without
    assert f"3 properties hold, and were: {3 + len(Fault)}" in without


def test_crashes_that_were_looked_at_in_part_are_not_certified() -> None:
    """Some are not known to do no harm."""
    with pytest.raises(NoCertificate, match="the crash search is not complete: more than 5 states"):
        _with_crashes(CrashBounds(1, 1, 1, states=5))


OTHERWISE = "its opening, its properties or its bounds have changed"


def _within(_record: object) -> bool:
    return True


def test_other_bounds_are_another_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a limit that is a function, another beginning, and more properties."""
    certificate = _certificate("task-approval")
    assert changes(certificate, named("task-approval")) == ()
    narrow = CheckConfiguration(bounds=Bounds(within={"task-approval": _within}))
    monkeypatch.setattr("lifefold.interpreters.targets.check_targets.CHECK_CONFIGURATIONS", {"task-approval": narrow})
    assert changes(certificate, named("task-approval")) == (OTHERWISE,)
    record = approval.machine.initial
    monkeypatch.setattr(
        "lifefold.interpreters.targets.check_targets.CHECK_CONFIGURATIONS",
        {"task-approval": CheckConfiguration(record=record)},
    )
    assert changes(certificate, named("task-approval")) == (OTHERWISE,)
    more = CheckConfiguration(properties=(("lifefold.core.lifecycles.approval", "PROPERTIES"),))
    monkeypatch.setattr("lifefold.interpreters.targets.check_targets.CHECK_CONFIGURATIONS", {"task-approval": more})
    assert changes(certificate, named("task-approval")) == (OTHERWISE,)


@pytest.mark.parametrize("text", [b"", b"{}", b"no", b"\xff"])
def test_a_file_that_is_no_certificate_is_refused(folder: Path, text: bytes) -> None:
    """With its name, and what is wrong with it."""
    path = folder / "x.json"
    path.write_bytes(text)
    with pytest.raises(UnreadableCertificate, match=r"x\.json is not a certificate"):
        read(path)


def test_a_certificate_of_another_format_is_refused(folder: Path) -> None:
    """It says which one this version reads."""
    path = folder / "x.json"
    path.write_bytes(msgspec.structs.replace(_certificate(), format=0).encode())
    with pytest.raises(UnreadableCertificate, match="has format 0; this version of lifefold reads 5"):
        read(path)


def test_the_code_of_a_lifecycle_is_its_own_and_the_kernels() -> None:
    """Another lifecycle may change without its certificate; the kernel and the effects count for all of them."""
    found = code_of(named("turn"))
    assert {"lifefold.core.lifecycles.turn", "lifefold.core.kernel.machine", "lifefold.effects.base"} <= found.keys()
    assert not any("task" in name or "fleet" in name or "interpreters" in name for name in found)
    assert {"lifefold.core.lifecycles.runtime"}.isdisjoint(code_of(named("fleet")))
    assert {"lamps", "wiring"} <= code_of(named("lamps:machine")).keys()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "sesion",
            "unknown target 'sesion'; did you mean 'session' or 'questions'?",
        ),
        ("fleet2x2", "did you mean 'fleet-2x2' or 'fleet-2x3' or 'fleet'?"),
        ("nothing like it", "unknown target 'nothing like it'; `lifefold machines` lists machines and systems; "),
        ("fleet-nope", "; the small fleets are fleet-2x2, fleet-2x3, fleet-aborts, "),
        ("lamps", "unknown target 'lamps'; did you mean lamps:ATTRIBUTE?"),
        ("lamps.py", "did you mean lamps:ATTRIBUTE?"),
        ("lamps.py:machine", "did you mean lamps:machine?"),
        ("lamps:machin", "has no attribute 'machin'; did you mean 'machine'?"),
        ("nowhere:machine", "'nowhere' cannot be imported"),
        ("lamps:nothing", "has no attribute 'nothing'"),
        ("lamps:LATER", "has no attribute 'LATER'"),
        ("lamps:Light", "is a State class; accepted: a Machine"),
        ("lamps:turn", "lamps:turn() fails: TypeError"),
    ],
)
def test_what_cannot_be_checked_is_named_with_what_can(name: str, words: str) -> None:
    """No traceback of a user's module."""
    with pytest.raises(UnusableTarget) as caught:
        named(name)
    assert words in str(caught.value)


def test_a_system_needs_its_opening() -> None:
    """A system alone, an empty opening, one of another system, and one that is no envelope are refused."""
    text = "\nfrom lifefold.core.kernel import AggregateType, Envelope, System\n"
    text += "alone = System('lamps', AggregateType('lamp', machines=(machine,)))\n"
    text += (
        "empty = (alone, [])\nstrange = (alone, [('tower', Envelope('', Turned(), 0))])\nodd = (alone, [('lamp', 5)])\n"
    )
    text += "none = (alone, 5)\ntwice = (alone, [('lamp', Envelope('', Turned(), 0))] * 2)\n"
    Path("lamps.py").write_text(LAMPS + text)
    for name, words in {
        "alone": "a System without its opening",
        "empty": "the opening is empty",
        "strange": "'tower' is none of lamp",
        "odd": "is a int, not an Envelope",
        "none": "the opening must be pairs",
        "twice": "'lamp' is in the opening twice; others of its kind are lamp/NAME",
    }.items():
        with pytest.raises(UnusableTarget, match=words):
            named(f"lamps:{name}")


def test_every_configuration_is_about_a_shipped_target() -> None:
    """A name that is mistyped there would be looked at by no one."""
    assert [named(name).name for name in CHECK_CONFIGURATIONS] == list(CHECK_CONFIGURATIONS)


def test_whatever_is_shipped_has_its_certificate() -> None:
    """And nothing else has."""
    assert {path.stem for path in SHIPPED} == {*known(), *larger()}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_certificates_in_the_documentation_are_of_this_code(path: Path) -> None:
    """A changed lifecycle needs another certificate: `make certificates`."""
    certificate = read(path)
    assert certificate.target == path.stem
    assert changes(certificate, named(certificate.target)) == (), "run: make certificates"
    assert certificate.checker == checker(), "run: make certificates"


def _made_again(path: Path) -> Any:
    small = json.loads(path.read_bytes())["counts"]["states"] <= SMALL_STATES
    return pytest.param(path, marks=() if small else pytest.mark.campaign, id=path.stem)


@pytest.mark.parametrize("path", [_made_again(each) for each in SHIPPED if each.stem not in larger()])
def test_the_certificates_in_the_documentation_are_true(path: Path) -> None:
    """The search is done again, and comes to the same."""
    certificate = read(path)
    target = named(certificate.target)
    bounds, crashes = certificate.bounds(target.bounds), certificate.crash_bounds()
    assert crashes is not None
    report = check(target.subject, opening=target.opening, bounds=bounds, crashes=crashes)
    assert list(differences(certificate, certify(target, report))) == []
