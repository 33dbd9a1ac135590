"""``lifefold doctor``: exit code 0 if a fleet could run, 1 if something that it needs is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from lifefold.interpreters.cli.app import main

FLEET = """
[fleet]
name = "doctored"

[[agents]]
name = "coder"
kind = "claude"
program = "./programs/mine"
count = 2
env = { ANTHROPIC_API_KEY = "secret-2" }
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without agent programs, but one in a folder of its own."""
    (tmp_path / "programs").mkdir()
    program = tmp_path / "programs/mine"
    program.write_text("#!/bin/sh\necho 2.1.330\n")
    program.chmod(0o755)
    (tmp_path / "fleet.toml").write_text(FLEET)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def examined(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Give the command with ``--json``, and return its exit code and what it prints."""
    code = main(["doctor", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_without_a_fleet_file_missing_programs_are_told_and_fail_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = examined(capsys)
    assert (code, found["ok"]) == (0, True)
    assert {each["what"] for each in found["programs"]} >= {"claude", "codex", "opencode", "gemini", "aider"}
    assert {each["what"] for each in found["machine"]} == {"python", "sqlite", "git", "log folder"}


def test_a_fleet_is_examined_with_its_own_programs_and_variables(capsys: pytest.CaptureFixture[str]) -> None:
    """Agents with the same program in the same environment are one line; no value of a variable is printed."""
    code, found = examined(capsys, "fleet.toml")
    (program,) = found["programs"]
    assert (code, program["what"], program["verdict"]) == (0, "claude (coder-1, coder-2)", "ok")
    assert program["login"] == "ANTHROPIC_API_KEY is set"
    assert "secret-2" not in json.dumps(found)


def test_a_program_that_the_fleet_needs_and_that_is_not_there_is_exit_code_1(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "programs/mine").unlink()
    code, found = examined(capsys, "fleet.toml")
    (file,) = (each for each in found["machine"] if each["what"] == "fleet file")
    assert (code, found["ok"], file["verdict"]) == (1, False, "missing")
    assert "programs/mine" in file["found"]


def test_a_program_that_cannot_tell_its_version_is_exit_code_1(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "programs/mine").write_text("#!/bin/sh\nexit 1\n")
    code, found = examined(capsys, "fleet.toml")
    assert (code, found["programs"][0]["verdict"]) == (1, "missing")


def test_a_repository_that_a_fleet_cannot_work_with_is_exit_code_1(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "fleet.toml").write_text(FLEET.replace('name = "doctored"', 'name = "doctored"\nrepository = "."'))
    code, found = examined(capsys, "fleet.toml")
    (repository,) = (each for each in found["machine"] if each["what"] == "repository")
    assert (code, repository["verdict"]) == (1, "missing")


def test_a_fleet_file_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "none.toml"]) == 2
    assert "none.toml is no file" in capsys.readouterr().err


def test_the_text_report_has_a_line_for_each_finding_and_a_conclusion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "fleet.toml"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "✓ claude (coder-1, coder-2)  2.1.330, tested; login: ANTHROPIC_API_KEY is set" in shown
    assert shown[-1] == "the fleet doctored can run here"
    assert [line for line in shown if line != line.rstrip()] == []


def test_nothing_is_written_and_no_program_is_left(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(machine.rglob("*"))
    assert main(["doctor", "fleet.toml"]) == 0
    assert sorted(machine.rglob("*")) == before
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "case", [(0, "", "all", True), (0, "1", "all", False), (1000, "", "all", False), (0, "", "edit", False)]
)
def test_permissions_that_a_program_refuses_to_root_are_told_before_a_run(
    case: tuple[int, str, str, bool],
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Claude Code ends at once then, unless a variable says that it is in a sandbox."""
    user, sandbox, permissions, fails = case
    monkeypatch.setattr("os.geteuid", lambda: user)
    text = FLEET.replace("count = 2", f'count = 2\npermissions = "{permissions}"')
    (machine / "fleet.toml").write_text(text.replace("env = { ", f'env = {{ IS_SANDBOX = "{sandbox}", '))
    code, found = examined(capsys, "fleet.toml")
    (program,) = found["programs"]
    assert (code, program["verdict"]) == ((1, "missing") if fails else (0, "ok"))
    assert ("is refused by the program to root" in program["found"]) == fails
