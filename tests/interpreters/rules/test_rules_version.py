"""The version of rules: it changes with what decides, and with nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lifefold.core.fleet import system as fleet
from lifefold.core.fleet.board import intake
from lifefold.core.kernel import alone
from lifefold.core.lifecycles import session
from lifefold.interpreters.rules import cache, rules_version, version

PROGRAM = '''"""A door."""
from lifefold import Event, Machine, Record, State, alone, row
import parts


class Door(State):
    SHUT = "Shut"
    OPEN = "Open"


class Pushed(Event, frozen=True): ...


class Leaf(Record, frozen=True):
    state: Door = Door.SHUT


machine = Machine("door", Leaf(), rows=[row(Door.SHUT, Pushed, Door.OPEN, when=parts.may_open)], final=[Door.OPEN])
system, opening = alone(machine)
'''
PARTS = "def may_open(record, event):\n    return True\n"
MAIN = "if __name__ == '__main__':\n    from lifefold.interpreters import rules\n    print(rules.rules_version(system))"
IMPORTED = "import door; from lifefold.interpreters.rules import rules_version as of; print(of(door.system))"


def version_of(folder: Path, parts: str = PARTS, program: str = PROGRAM, *, script: bool = False) -> str:
    """Return the version that a process computes of a program in a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "parts.py").write_text(parts)
    (folder / "door.py").write_text(program + MAIN)
    call = ["door.py"] if script else ["-c", IMPORTED]
    shown = subprocess.run([sys.executable, *call], cwd=folder, check=True, capture_output=True, text=True)
    return shown.stdout.strip()


def test_a_programs_version_follows_its_code_and_no_prose(tmp_path: Path) -> None:
    """A script has the version of the imported module; so has a copy of it elsewhere."""
    usual = version_of(tmp_path / "a")
    assert version_of(tmp_path / "a", script=True) == usual
    assert version_of(tmp_path / "b", PARTS.replace("    return", "    # why\n    return")) == usual
    assert version_of(tmp_path / "b", program=PROGRAM.replace("A door", "A gate")) == usual
    assert version_of(tmp_path / "b", PARTS.replace("True", "False")) != usual
    assert version_of(tmp_path / "b", program=PROGRAM.replace("Leaf(),", "Leaf(Door.SHUT),")) != usual


def test_systems_of_other_machines_have_other_versions() -> None:
    one, other = alone(intake.machine)[0], alone(session.machine)[0]
    assert len({rules_version(one), rules_version(other), rules_version(fleet)}) == 3
    assert rules_version(alone(intake.machine)[0]) == rules_version(one)


def test_a_cached_version_is_used_only_for_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source, made = tmp_path / "a.py", list[str]()

    def make(_names: list[str]) -> cache.Made:
        data = source.read_bytes()
        made.append(data.decode())
        return cache.Made(f"version {len(made)}", {str(source): cache.digest(data)})

    source.write_text("X = 1")
    assert [cache.kept(["a"], make) for _ in range(2)] == ["version 1"] * 2
    source.write_text("X = 2")
    assert [cache.kept(["a"], make) for _ in range(2)] == ["version 2"] * 2
    assert made == ["X = 1", "X = 2"]
    (kept,) = (tmp_path / "lifefold").iterdir()
    kept.write_bytes(b"{")
    assert cache.kept(["a"], make) == "version 3"


@pytest.mark.parametrize("place", ["/proc/none", "relative", ""])
def test_without_a_cache_the_version_is_computed(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").write_text("no folder")
    assert cache.kept(["a"], lambda _names: cache.Made("computed", {})) == "computed"
    monkeypatch.setattr(version, "_known", {})
    one = alone(intake.machine)[0]
    computed = rules_version(one)
    monkeypatch.setattr(version, "_known", {})
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path / "there"))
    assert [rules_version(one), rules_version(one)] == [computed] * 2
