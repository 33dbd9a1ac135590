"""The page about a program of one's own works as it stands: every block, in its order, in one folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pages import DOCS, blocks, called, lifefold

PAGE = DOCS / "library.md"
NAMES = ("greenhouse", "live", "two", "compressed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files of the page."""
    found = blocks(PAGE, "python")
    assert len(found) == len(NAMES)
    for name, block in zip(NAMES, found, strict=True):
        (tmp_path / f"{name}.py").write_text(block)
    return tmp_path


def declared(name: str, folder: Path) -> str:
    """Return what a file says that it prints."""
    lines = (folder / f"{name}.py").read_text().splitlines()
    return "".join(f"{line.removeprefix('# ')}\n" for line in lines if line.startswith("# "))


@pytest.mark.parametrize("name", ["two", "compressed"])
def test_a_file_prints_what_it_says(folder: Path, name: str) -> None:
    """Two engines in one process; a store that passes the kit."""
    assert called(folder, sys.executable, f"{name}.py") == declared(name, folder)


def test_the_program_begins_resumes_fails_and_is_looked_at(folder: Path) -> None:
    """Every command of the page does what the page shows."""
    shell = {"python": sys.executable, "lifefold": str(Path(sys.executable).with_name("lifefold"))}
    commands = [
        part for block in blocks(PAGE, "console") for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part
    ]
    assert len(commands) == 12
    for part in commands:
        command, _, said = part.partition("\n")
        for name, path in shell.items():
            command = re.sub(rf"^{name} ", f"{path} ", command)
        printed = called(folder, "sh", "-c", command)
        assert printed == said or not said, command
    assert (folder / "greenhouse.otlp.jsonl").exists()


def test_the_program_ends_when_it_is_told_to(folder: Path) -> None:
    """A signal ends it in the ordinary way, and the log is sound."""
    (folder / "celsius").write_text("10")
    with subprocess.Popen(
        (sys.executable, "live.py", "1000000"), cwd=folder, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "it runs\n"
        program.terminate()
        assert program.stdout.read() == "begun Shut stopped\n"
    assert program.returncode == 0
    assert "this run was allowed" in lifefold(folder, "verify", "greenhouse:system", "greenhouse.db")
