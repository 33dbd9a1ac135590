"""``lifefold upgrade``: what this version makes of a log of another one, in sentences; and the record of the change."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from lifefold.core.fleet import system as fleet
from lifefold.core.kernel import ENGINE, Envelope, Property, TimerFired, alone, always
from lifefold.core.kernel.evolution import old_name
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.engine import Decision, Ledger, LogMismatchError
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Entry, SqliteStore
from lifefold.interpreters.web.followed_log import FollowedLog
from old_logs import FLEETS, FOLDER, OVENS, copied, program


def entries_of(log: Path) -> list[Entry]:
    """Return the entries of a log."""
    with SqliteStore.peek(log) as store:
        return list(anyio.run(store.read))


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command line find the programs of the oven: it looks in the current folder first."""
    monkeypatch.chdir(FOLDER)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("log", OVENS, ids=lambda log: log.stem)
def test_an_oven_in_the_middle_of_its_work_is_upgraded_and_goes_on(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An event was renamed, one split, one removed; a field, a rule and a state are new. The new rules end it."""
    path, oven = copied(log, tmp_path), program("oven_2")
    before = entries_of(path)
    assert main(["upgrade", "oven_2:system", str(path), "--dry-run"]) == 0
    said = capsys.readouterr().out
    for line in (
        "Lit as Kindled (1 entry)", "Fed as Bread or Cake (1 entry)", "Poked, which is gone (1 entry)",
        "the field minutes of the record is read as seconds (2 entries)", "the state Cold as Idle (1 entry)",
        "their properties hold of its present state", "Nothing was changed.",
    ):  # fmt: skip
        assert line in said
    assert entries_of(path) == before
    assert main(["upgrade", "oven_2:system", str(path)]) == 0
    assert "Recorded: the change from the rules" in capsys.readouterr().out
    assert [each.stream for each in entries_of(path)[len(before) :]] == [ENGINE]

    anyio.run(partial(oven.go_on, path))
    assert "seconds=300, uses=0" in capsys.readouterr().out
    ledger: Any = Ledger(oven.system)
    for _ in ledger.fold(entries_of(path)):
        pass
    (timer,) = (each for each in ledger.aggregates["oven"].entities["oven"].running if each.slot == "Out")
    out = Envelope("oven", TimerFired("Out", timer.generation), timer.deadline_ms, "engine")
    decision = ledger.decide("oven", out)
    assert isinstance(decision, Decision)
    assert [str(step.after.state) for step in decision.reaction.transitions] == ["Resting", "Done"]
    assert ledger.record("oven", "oven").uses == 1

    assert main(["upgrade", "oven_2:system", str(path)]) == 0
    assert "There is nothing to upgrade." in capsys.readouterr().out


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (("Cold", "minutes", "Fed"), ("the activity Burn of oven, oven", "the timer Cooled of oven, oven")),
        (("Cold", "minutes", "Burn", "Cooled"), ("the postponed event Fed of oven, oven",)),
    ],
)
def test_what_the_rules_cannot_take_is_named_and_nothing_is_recorded(
    kept: tuple[str, ...],
    said: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It exits with 2; so does a start, and the log stays as it is."""
    path, oven = copied(OVENS[-1], tmp_path), program("oven_2")
    evolved = tuple(each for each in oven.machine.evolved if old_name(each) in kept)
    naive = alone(oven.machine._but(evolved=evolved))[0]
    monkeypatch.setattr(oven, "naive", naive, raising=False)
    before = entries_of(path)
    assert main(["upgrade", "oven_2:naive", str(path)]) == 2
    told = capsys.readouterr().out
    assert all(line in told for line in said)
    assert "A start is refused, and nothing is changed." in told
    monkeypatch.setattr(oven, "system", naive)
    with pytest.raises(LogMismatchError, match="no longer know what it still needs; nothing was changed"):
        anyio.run(partial(oven.go_on, path))
    assert entries_of(path) == before


@pytest.mark.usefixtures("programs")
def test_a_log_with_an_unknown_field_of_a_record_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, oven = copied(OVENS[-1], tmp_path), program("oven_2")
    monkeypatch.setattr(oven, "naive", alone(oven.machine._but(evolved=oven.machine.evolved[:-1]))[0], raising=False)
    assert main(["upgrade", "oven_2:naive", str(path)]) == 2
    told = capsys.readouterr().err
    assert "oven, entry 1" in told
    assert "Oven has no field 'minutes'; an old name is declared by renamed_field() or removed_field()" in told


@pytest.mark.usefixtures("programs")
def test_a_property_that_does_not_hold_of_the_present_state_is_named_and_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, oven = copied(OVENS[-1], tmp_path), program("oven_2")
    used: Property[Any] = always("an oven is used", lambda of: of.record.uses > 0)
    monkeypatch.setattr(oven, "strict", alone(oven.machine.with_properties(used))[0], raising=False)
    before = entries_of(path)
    assert main(["upgrade", "oven_2:strict", str(path)]) == 2
    told = capsys.readouterr().out
    assert "These properties do not hold of the present state:\n  oven, oven: an oven is used\n" in told
    assert entries_of(path) == before


@pytest.mark.parametrize("log", FLEETS, ids=lambda log: log.stem)
def test_a_fleets_old_log_is_shown_verified_and_upgraded(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands that only read show it as it is; the first one that writes records the change of the rules."""
    path = copied(log, tmp_path)
    for command in ("status", "tasks", "log"):
        assert main([command, "--db", str(path)]) == 0
    assert "index" in capsys.readouterr().out
    ledger = Ledger(fleet, rules=rules_version(fleet))
    assert len(list(ledger.verify(entries_of(path)))) == ledger.only_folded == 8
    assert main(["upgrade", str(path), "--dry-run"]) == 0
    assert "A start records the change from the rules" in capsys.readouterr().out
    assert main(["send", "ann", "hello", "--db", str(path)]) == 0
    assert [each.stream for each in entries_of(path)[8:]] == [ENGINE, "worker/ann"]
    capsys.readouterr()
    assert main(["log", "--db", str(path)]) == 0
    assert f"to {rules_version(fleet)}; the past stays as it was decided" in " ".join(capsys.readouterr().out.split())
    assert main(["log", "--all", "--db", str(path)]) == 0
    assert "RulesChanged" in capsys.readouterr().out
    with FollowedLog("fleet", path) as followed:
        assert followed.take()
        assert followed.now.seq == 10
        assert "the rules" in [each.about for each in followed.journal.story]
    assert main(["log", "--task", "index", "--db", str(path)]) == 0
    assert "the past stays" not in capsys.readouterr().out


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["oven_2:system"], "needs a log after it: lifefold upgrade oven_2:system LOG"),
        (["a", "b", "c"], "takes one log, and before it at most one system"),
        (["oven_2:nothing", str(FLEETS[-1])], "nothing"),
        (["oven_2:Heat", str(FLEETS[-1])], "accepted: a System"),
        (["missing.db"], "there is no such log"),
    ],
)
def test_a_command_that_names_no_log_or_no_system_is_bad_input(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upgrade", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_log_of_another_system_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied(OVENS[0], tmp_path)
    assert main(["upgrade", str(path)]) == 2
    assert "this is not a log of 'fleet'; its aggregates are oven" in capsys.readouterr().err


def test_an_empty_log_has_nothing_to_upgrade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SqliteStore.create(tmp_path / "new.db", {}).close()
    assert main(["upgrade", str(tmp_path / "new.db")]) == 0
    assert capsys.readouterr().out == "The log has no entries.\n"
