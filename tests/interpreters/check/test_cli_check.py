"""``lifefold check`` as users and programs rely on it: exit codes, what is said, files that are written or not."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lifefold.interpreters.certificates.certificate import read
from lifefold.interpreters.check import Progress
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.reports import in_words

LAMPS = """
from typing import Never

from lifefold.core.kernel import (
    AggregateType, Envelope, Event, Machine, Opened, Record, State, Step, System, Transition,
    always, leads_to, replace, row, rule,
)


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


def turn(lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
    return Step(replace(lamp, turns=min(MOST, lamp.turns + 1)))


MOST = 3

machine = Machine(
    "lamp",
    Lamp(),
    rows=(
        row(Light.OFF, Turned, Light.ON, turn),
        row(Light.ON, Turned, Light.OFF),
        row((Light.ON, Light.OFF), Broken, Light.GONE),
    ),
    final={Light.GONE},
    properties=(always("it is turned three times at most", lambda lamp: lamp.record.turns <= 3),),
)

burning = machine.with_properties(leads_to("light goes out", lambda lamp: lamp.state is Light.ON, lambda lamp: False))


def strange() -> "tuple[System, list[tuple[str, Envelope]]]":
    system = System("lamps", AggregateType("lamp", machines=(machine,)))
    return system, [("lamp", Envelope("", Opened({"x": Lamp()}), 0))]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder with a user's lamp in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _write()
    yield tmp_path
    sys.modules.pop("lamps", None)


def _write(*changes: tuple[str, str]) -> None:
    sys.modules.pop("lamps", None)
    text = LAMPS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path("lamps.py").write_text(text)


MORE = ("MOST = 3", "MOST = 4")


def test_what_holds_exits_with_0_and_says_so_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """How much was looked at, what was used, each property, the sum; nothing wider than 80 characters."""
    assert main(["check", "lamps:machine"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"lamp: 11 states, 14 steps, 6 deep, in 0\.\d s \([\d,]+ states/s\)", lines[0])
    assert "  ✓ always      it is turned three times at most" in lines
    assert lines[-1] == "lamp: all 9 properties hold"
    assert max(map(len, lines)) <= 80


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The whole report of its first example, but for how fast that was."""
    page = (Path(__file__).parents[3] / "docs" / "check.md").read_text()
    assert main(["check", "task-approval"]) == 0
    first, rest = capsys.readouterr().out.split(", in 0.", 1)
    shown, after = page.split(first, 1)[1].split("```", 1)[0].split(")\n", 1)
    assert re.fullmatch(r", in 0\.\d s \([\d,]+ states/s", shown)
    assert after == rest.split(")\n", 1)[1]


def test_what_is_broken_exits_with_1_and_shows_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    """Each step on a line, with what it moves; what is broken comes last."""
    _write(MORE)
    assert main(["check", "lamps:machine"]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("  ✗ always      it is turned three times at most: broken")
    assert lines[at + 1 : at + 8] == [
        *(f"      {n}. operator says Turned()   {'Off → On' if n % 2 else 'On → Off'}" for n in range(1, 8)),
    ]
    assert lines[-1] == "lamp: 8 of 9 properties hold, 1 broken"


def test_one_broken_target_of_several_is_enough_for_1(capsys: pytest.CaptureFixture[str]) -> None:
    """All are checked; each says its own."""
    assert main(["check", "lamps:burning", "lamps:machine"]) == 1
    said = capsys.readouterr().out
    assert "and from then on nothing happens any more" in said
    assert "lamp: all 9 properties hold" in said


@pytest.mark.parametrize("limit", [("--states", "4"), ("--depth", "2")], ids=" ".join)
def test_a_search_that_was_cut_short_fails_unless_it_is_accepted(
    limit: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """And never says that anything holds that it has not looked at."""
    assert main(["check", "lamps:machine", *limit]) == 1
    said = capsys.readouterr().out
    assert "undecided" in said
    assert "the search ended after more than" in said
    assert main(["check", "lamps:machine", *limit, "--accept-truncated"]) == 0


def test_what_is_broken_fails_also_in_a_search_that_was_cut_short() -> None:
    """``--accept-truncated`` accepts nothing else."""
    _write(MORE)
    assert main(["check", "lamps:machine", "--depth", "8", "--accept-truncated"]) == 1


def test_json_has_all_of_it_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Whole traces, whatever their length; nothing else on the output."""
    _write(MORE)
    assert main(["check", "lamps:machine", "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["target"], told["ok"], told["truncated"], told["local_states"]) == (
        "lamps:machine", False, "", {"lamp": told["states"]},
    )  # fmt: skip
    broken = next(each for each in told["properties"] if each["outcome"] == "broken")
    assert (broken["kind"], broken["name"]) == ("always", "it is turned three times at most")
    assert len(broken["trace"]) == 7
    assert told["conclusion"] == "8 of 9 properties hold, 1 broken"
    assert told["said"]["looked at"] == "everything with 2 events postponed at most"
    assert (told["bounds"]["postponed"], told["bounds"]["commands"], told["led_out"]) == (2, None, 0)
    assert told["compared"] == {"states": 3_000, "depth": 1_500, "renumbered": []}
    notes = {each["name"]: each["note"] for each in told["properties"]}
    assert notes["what is late or comes twice changes nothing"] == f"{told['refused']} refused"
    crashes = told["crashes"]
    assert crashes["said"] == told["said"]["crashes"]
    assert (crashes["begun"], crashes["inputs"], crashes["crashes"], crashes["truncated"]) == (3, 2, 1, "")
    assert crashes["states"] > 100
    assert [each["outcome"] for each in told["properties"] if each["owner"] == "crashes"] == ["holds"] * 6


BAD: dict[tuple[str, ...], str] = {
    (): "check what?",
    ("sesion",): "did you mean 'session'",
    ("nowhere:machine",): "'nowhere' cannot be imported",
    ("lamps:Light",): "accepted: a Machine, a pair (System, opening)",
    ("lamps:strange",): "lamp has no machine for 'x'",
    ("lamps:machine", "lamps:burning", "--certificate", "x.json"): "one file for 2 targets; name a folder",
    ("--verify",): "--verify needs --certificate",
    ("lamps:machine", "--search"): "--search means nothing without --verify",
    ("--verify", "--certificate", "x.json"): "x.json: No such file",
    ("--verify", "--certificate", "lamps.py"): "lamps.py is not a certificate",
    ("--verify", "--certificate", "."): "no certificate of anything; there are: none",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_input_is_named_exits_with_2_and_writes_nothing(
    arguments: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What, where, what is accepted."""
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert BAD[arguments] in err
    assert "Traceback" not in err
    assert out == ""
    assert [path.name for path in folder.iterdir()] == ["lamps.py"]


@pytest.mark.parametrize("limit", [("--states", "0"), ("--depth", "-1"), ("--commands", "some"), ("--memory", "1.5")])
def test_a_limit_that_is_no_number_is_bad_input(limit: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """With the option that it was for."""
    with pytest.raises(SystemExit) as left:
        main(["check", "lamps:machine", *limit])
    assert left.value.code == 2
    assert f"argument {limit[0]}" in capsys.readouterr().err


WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from lifefold.interpreters.cli.app import main
sys.exit(main(["check", "session"]))
"""


@pytest.mark.parametrize("missing", ["numpy", "scipy"])
def test_without_the_libraries_it_says_which_extra_to_install(missing: str) -> None:
    """It is no error of ours, so there is no traceback."""
    ran = subprocess.run([sys.executable, "-c", WITHOUT, missing], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    told = (
        f"lifefold: lifefold check needs NumPy and SciPy, and {missing} is not installed: pip install 'lifefold[check]'"
    )
    assert ran.stderr.splitlines() == [told]


def test_a_certificate_is_written_and_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At once while the code is the same; after a change by another search, which must come to the same."""
    path = folder / "of" / "lamp.json"
    assert main(["check", "lamps:machine", "--certificate", str(path)]) == 0
    verify = ["check", "--verify", "--certificate", str(path)]
    assert main(verify) == 0
    assert "lamps:machine: not searched; code, checker, libraries and configuration are as" in capsys.readouterr().out
    assert main([*verify, "--search"]) == 0
    assert "lamps:machine: nothing has changed: searching again" in capsys.readouterr().out
    _write(("MOST = 3", "MOST = 3  # at most"))
    assert main(verify) == 0
    assert "lamps:machine: not searched" in capsys.readouterr().out
    _write(("MOST = 3", "MOST = 2 + 1"))
    assert main(verify) == 0
    said = capsys.readouterr().out
    assert "lamps:machine: lamps has changed: searching again" in said
    assert "lamps:machine: holds: the search comes to the same" in said
    _write(("MOST = 3", "MOST = 2"))
    assert main(verify) == 1
    said = capsys.readouterr().out
    assert "  states: 8, and was: 11" in said
    assert "lamps:machine: the search comes to something else" in said
    _write(MORE)
    assert main(verify) == 1
    assert "lamp: it is turned three times at most: broken" in capsys.readouterr().out


def test_a_certificate_that_was_edited_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A property more and a thousand million states are no proof: the content's digest tells."""
    path = folder / "lamp.json"
    assert main(["check", "lamps:machine", "--certificate", str(path)]) == 0
    capsys.readouterr()
    content = json.loads(path.read_bytes())
    content["verdicts"]["held"] += 1
    content["counts"]["states"] = 10**9
    path.write_text(json.dumps(content, indent=2))
    assert main(["check", "--verify", "--certificate", str(path)]) == 2
    assert f"{path} was changed after it was written" in capsys.readouterr().err


def test_a_forged_certificate_is_found_out_by_a_search(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A digest is no signature: a forged one is found only by `--search`."""
    path = folder / "lamp.json"
    assert main(["check", "lamps:machine", "--certificate", str(path)]) == 0
    proven = read(path)
    counts = msgspec.structs.replace(proven.counts, states=10**9)
    path.write_bytes(msgspec.structs.replace(proven, counts=counts).encode())
    capsys.readouterr()
    assert main(["check", "--verify", "--certificate", str(path)]) == 0
    assert "not searched" in capsys.readouterr().out
    assert main(["check", "--verify", "--search", "--certificate", str(path)]) == 1
    assert "states: 11, and was: 1,000,000,000" in capsys.readouterr().out


def test_a_folder_takes_the_certificates_of_several_targets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file each; verified all together, or by name."""
    assert main(["check", "lamps:machine", "task-approval", "--certificate", "of/"]) == 0
    assert sorted(path.name for path in (folder / "of").iterdir()) == ["lamps.machine.json", "task-approval.json"]
    capsys.readouterr()
    assert main(["check", "--verify", "--certificate", "of"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["check", "task-approval", "--verify", "--certificate", "of"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["check", "turn", "--verify", "--certificate", "of"]) == 2
    assert "no certificate of turn; there are: lamps:machine, task-approval" in capsys.readouterr().err


def test_what_does_not_hold_gets_no_certificate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does a truncated search without an accepted record."""
    assert main(["check", "lamps:machine", "--depth", "2", "--certificate", "x.json"]) == 1
    _write(MORE)
    assert main(["check", "lamps:machine", "--certificate", "x.json"]) == 1
    assert not (folder / "x.json").exists()
    assert "lamps:machine gets no certificate" in capsys.readouterr().err


def test_a_test_file_is_written_for_what_is_broken_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One test for each broken property, of all targets together; without one there is no file."""
    assert main(["check", "lamps:machine", "--emit-test", "test_x.py"]) == 0
    assert not (folder / "test_x.py").exists()
    assert "test_x.py is not written" in capsys.readouterr().err
    _write(MORE)
    assert main(["check", "lamps:machine", "lamps:burning", "--emit-test", "test_x.py"]) == 1
    found = re.findall(r"^def (\w+)\(\) -> None:$", (folder / "test_x.py").read_text(), re.MULTILINE)
    assert found == [
        "test_lamps_machine_it_is_turned_three_times_at_most",
        "test_lamps_burning_it_is_turned_three_times_at_most",
        "test_lamps_burning_light_goes_out",
    ]


def test_a_search_that_contradicts_itself_fails_and_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that calls a count a mere identity is found out, and nothing is certified."""
    path = str(folder / "lamp.json")
    assert main(["check", "lamps:machine", "--certificate", path]) == 0
    late = ("Broken, Light.GONE)", "Broken, Light.GONE, when=lambda lamp, _event: lamp.turns > 2)")
    _write(late, ("    turns: int = 0\n", '    turns: int = 0\n    identifiers = ("turns",)\n'))
    assert main(["check", "lamps:machine"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "the reduced search takes the steps of the unreduced rules: unsound" in shown
    assert "turns is" in shown
    assert "by the rules and" in shown
    assert main(["check", "lamps:machine", "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["target"], told["ok"]) == ("lamps:machine", False)
    assert main(["check", "--verify", "--certificate", path]) == 1
    assert "the reduced search takes the steps of the unreduced rules: unsound" in capsys.readouterr().out


def test_progress_is_one_line() -> None:
    """States, states to search, depth, rate, time; it fits into 80 characters."""
    told = in_words("session-in-fleet", Progress(12_345_678, 234_567, 99_999_999, 123, 61.5))
    assert told == "session-in-fleet: 12,345,678 states, 234,567 to search, 123 deep, 200,743/s, 1m01s"
    assert in_words("x", Progress(0, 0, 0, 0, 0.0)) == "x: 0 states, 0 to search, 0 deep, 0/s, 0s"


def test_a_terminal_gets_colours_and_is_left_as_it_was() -> None:
    """The line of progress is gone in the end, the cursor is there, and what is broken is red."""
    _write(MORE)
    ours, theirs = pty.openpty()
    command = (sys.executable, "-m", "lifefold.interpreters.cli", "check", "lamps:machine")
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b"".join(_read(ours)).decode()
        assert process.wait(60) == 1
    os.close(ours)
    assert "\x1b[1;31m  ✗ always      it is turned three times at most: broken" in said
    assert "\x1b[1;31mlamp: 8 of 9 properties hold, 1 broken" in said
    assert said.rfind("\x1b[?25h") > said.rfind("\x1b[?25l") >= 0


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            yield os.read(terminal, 65_536)
        except OSError:  # the program has ended
            return
