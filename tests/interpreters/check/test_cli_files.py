"""``lifefold check`` writes over nothing that it has not written itself, says what it has written, and verifies it."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lifefold.interpreters.cli.app import main

DOOR = """
from lifefold.core.kernel import Event, Machine, Record, State, always, row


class Place(State):
    OPEN = "Open"
    CLOSED = "Closed"


class Opened(Event, frozen=True):
    pass


class Shut(Event, frozen=True):
    pass


class Door(Record, frozen=True):
    state: Place = Place.CLOSED


machine = Machine(
    "door",
    Door(),
    rows=(row(Place.CLOSED, Opened, Place.OPEN), row(Place.OPEN, Shut, Place.CLOSED)),
    properties=(always("it is a door", lambda door: True),),
)
broken = machine.with_properties(always("it is never open", lambda door: door.state is Place.CLOSED))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder with a user's door in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sys.modules.pop("doors", None)
    Path("doors.py").write_text(DOOR)
    yield tmp_path
    sys.modules.pop("doors", None)


CERTIFY = ("doors:machine", "--certificate", "x.out")
EMIT = ("doors:broken", "--emit-test", "x.out")
VERIFY = ("--verify", "--certificate", "x.out")


@pytest.mark.parametrize("arguments", [CERTIFY, EMIT], ids=["certificate", "test"])
@pytest.mark.parametrize("text", ["def test_of_mine(): ...\n", "{}", '"""mine"""', "\udcff"])
def test_a_file_of_another_program_is_not_changed(
    arguments: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is bad input, known before anything is searched, whatever stands in it."""
    mine = text.encode(errors="surrogateescape")
    Path("x.out").write_bytes(mine)
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert "x.out is there, and " in err
    assert "name another file" in err
    assert out == ""
    assert Path("x.out").read_bytes() == mine


@pytest.mark.parametrize("arguments", [CERTIFY, EMIT], ids=["certificate", "test"])
def test_a_file_that_lifefold_wrote_is_overwritten(arguments: tuple[str, ...]) -> None:
    """A certificate replaces a certificate, a test a test, and both an empty file."""
    Path("x.out").touch()
    code = main(["check", *arguments])
    written = Path("x.out").read_bytes()
    assert written
    Path("x.out").write_bytes(written + b"\n")
    assert main(["check", *arguments]) == code
    assert Path("x.out").read_bytes() == written


def test_a_certificate_of_another_format_is_one_all_the_same() -> None:
    """A newer lifefold can write it anew."""
    assert main(["check", *CERTIFY]) == 0
    text = Path("x.out").read_text()
    Path("x.out").write_text(text.replace('"format": 2', '"format": 1'))
    assert main(["check", *CERTIFY]) == 0
    assert Path("x.out").read_text() == text


def test_a_test_is_not_written_over_a_certificate_nor_the_other_way_round() -> None:
    """Each over its own kind only."""
    assert main(["check", *CERTIFY]) == 0
    assert main(["check", *EMIT]) == 2
    Path("x.out").unlink()
    assert main(["check", *EMIT]) == 1
    assert main(["check", *CERTIFY]) == 2


@pytest.mark.parametrize("arguments", [CERTIFY, EMIT], ids=["certificate", "test"])
def test_where_nothing_can_be_written_is_bad_input(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that stands where a folder would have to be; and of a test, a folder."""
    assert main(["check", *arguments[:-1], "doors.py/x.out"]) == 2
    assert "doors.py is no folder" in capsys.readouterr().err
    assert main(["check", *EMIT[:-1], "."]) == 2
    assert ". is a folder; name a file" in capsys.readouterr().err
    for command in (("check", *EMIT[:-1]), ("simulate", "doors:broken", "--emit-test")):
        assert main([*command, "not/there/x.out"]) == 2
        assert "not/there/x.out: there is no folder not/there; make it" in capsys.readouterr().err
        assert not Path("not").exists()


@pytest.mark.parametrize("arguments", [CERTIFY, EMIT], ids=["certificate", "test"])
def test_what_is_written_is_said(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """On a line of its own, which does not come between what programs read."""
    Path("of").mkdir()
    main(["check", *arguments[:-1], "of/x.out"])
    assert capsys.readouterr().out.splitlines()[-1] == "written: of/x.out"
    main(["check", *arguments[:-1], "of/x.out", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)
    assert err.splitlines() == ["written: of/x.out"]


def test_a_certificate_makes_the_folders_on_the_way_to_it_and_a_test_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What hours have proven is not lost for want of a folder, and that is documented."""
    assert main(["check", "doors:machine", "--certificate", "new/deep/"]) == 0
    (written,) = Path("new/deep").iterdir()
    assert f"written: {written}" in capsys.readouterr().out
    assert main(["check", *EMIT[:-1], "other/x.out"]) == 2
    assert not Path("other").exists()


def test_two_targets_do_not_share_a_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where a folder would give both the same name."""
    Path("of").mkdir()
    Path("of/__init__.py").touch()
    Path("of/machines.py").write_text(DOOR)
    assert main(["check", "of.machines:machine", "of:machines.machine", "--certificate", "here/"]) == 2
    assert "one file for 2 targets" in capsys.readouterr().err


def test_a_truncated_search_is_no_proof_that_still_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """Verifying fails and says why, unless what accepts such a search is given."""
    truncated = ("--states", "1", "--accept-truncated")
    Path("doors.py").write_text(DOOR.replace('"door"', '"the-door"'))
    assert main(["check", *CERTIFY, *truncated]) == 0
    capsys.readouterr()
    assert main(["check", *VERIFY]) == 1
    said = capsys.readouterr().out
    assert re.search(r"doors:machine: is not proven: the search ended after .*, and \d undecided", said)
    assert "--accept-truncated" in said
    assert main(["check", *VERIFY, "--accept-truncated"]) == 0
    assert "not searched" in capsys.readouterr().out
    Path("doors.py").write_text(DOOR.replace('"door"', '"the-door"') + "# more\n")
    sys.modules.pop("doors")
    assert main(["check", *VERIFY, "--accept-truncated"]) == 0
    assert main(["check", *VERIFY]) == 1


@pytest.mark.parametrize(
    "option",
    [
        ("--states", "9"),
        ("--depth", "9"),
        ("--seconds", "9"),
        ("--memory", "900"),
        ("--commands", "0"),
        ("--emit-test", "y.py"),
    ],
    ids=" ".join,
)
def test_what_means_nothing_to_verifying_is_refused(
    option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The certificate has its bounds."""
    assert main(["check", *CERTIFY]) == 0
    capsys.readouterr()
    assert main(["check", *VERIFY, *option]) == 2
    out, err = capsys.readouterr()
    assert f"{option[0]} means nothing with --verify" in err
    assert out == ""


def test_verifying_tells_programs_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Which certificate, whether it holds, whether it was searched again, and what is different."""
    assert main(["check", *CERTIFY]) == 0
    capsys.readouterr()
    expected: dict[str, Any] = {"target": "doors:machine", "certificate": "x.out", "holds": True}
    expected |= {"searched": False, "changed": [], "differences": []}
    assert main(["check", *VERIFY, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [expected]
    Path("doors.py").write_text(DOOR.replace("always", "sometimes"))
    sys.modules.pop("doors")
    assert main(["check", *VERIFY, "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert told["holds"] is False
    assert told["searched"] is True
    assert told["changed"] == ["doors has changed", "its opening, its properties or its bounds have changed"]
    assert "other properties are checked: 9 in all, and were: 9" in told["differences"]
