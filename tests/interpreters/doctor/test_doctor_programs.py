"""What is found of agent programs: version, whether it was tested, and a login that can be seen."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_sandbox import SPEAKER
from lifefold.interpreters.adapters import Login, LoginFile, adapter_of
from lifefold.interpreters.doctor import Verdict
from lifefold.interpreters.doctor import programs as looked_at
from lifefold.interpreters.doctor.finding import ProgramFinding
from lifefold.interpreters.doctor.programs import AgentProgram, examined, seen
from lifefold.interpreters.processes.command import Limits


def found_of(script: str, folder: Path, env: Mapping[str, str] | None = None, **more: Any) -> ProgramFinding:
    """Return what is found of a script in the place of Claude Code."""
    (folder / "claude").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "claude").chmod(0o755)
    around = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), **(env or {})}
    return anyio.run(examined, AgentProgram(adapter_of("claude"), "claude", around, **more))


def test_a_tested_version_with_a_login_is_fine(tmp_path: Path) -> None:
    found = found_of('echo "2.1.330 (Claude Code)"', tmp_path, {"ANTHROPIC_API_KEY": "secret-1"})
    assert (found.verdict, found.version, found.is_tested) == (Verdict.OK, "2.1.330", True)
    assert found.login == "ANTHROPIC_API_KEY is set"
    assert "secret-1" not in repr(found)


def test_another_version_is_a_note_that_names_the_tested_ones(tmp_path: Path) -> None:
    found = found_of("echo 9.9.9", tmp_path, {"ANTHROPIC_API_KEY": "x"})
    assert (found.verdict, found.version, found.is_tested) == (Verdict.NOTE, "9.9.9", False)
    assert "not tested (tested: 2.1.197, 2.1.330)" in found.found


def test_a_login_that_is_not_seen_is_no_missing_login(tmp_path: Path) -> None:
    """The program can have it where nothing else can look."""
    found = found_of("echo 2.1.330", tmp_path)
    assert found.verdict is Verdict.NOTE
    assert "login: cannot tell; none is seen, and it may be in the keychain of macOS" in found.found
    assert not found.fails


def test_the_program_is_asked_for_its_version_as_the_adapter_says(tmp_path: Path) -> None:
    found_of('printf "%s\\n" "$@" > "$HOME"/asked; echo 2.1.330', tmp_path)
    assert (tmp_path / "asked").read_text() == "--version\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo broken >&2; exit 3", "ends with status 3: broken"),
        ("exec sleep 600", "tells no version within"),
        ("kill -9 $$", "ends with status -9"),
    ],
)
def test_a_program_that_tells_no_version_is_missing(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended after its time, and its last line is told."""
    if "sleep" in script:
        monkeypatch.setattr(looked_at, "LIMITS", Limits(timeout_ms=300, grace_ms=100, keep_bytes=100))
    found = found_of(script, tmp_path, agents=("coder",))
    assert (found.verdict, found.fails) == (Verdict.MISSING, True)
    assert words in found.found


def test_the_output_of_a_program_is_bounded_and_can_be_shown(tmp_path: Path) -> None:
    found = found_of(r"yes spam | head -c 5000000 >&2; printf '\033[31mbad\007\n' >&2; exit 1", tmp_path)
    assert found.found.endswith(": bad")
    assert found.found.isprintable()


def test_a_program_that_is_not_there_fails_a_fleet_that_needs_it_only(tmp_path: Path) -> None:
    program = AgentProgram(adapter_of("codex"), "codex", {"PATH": str(tmp_path)})
    needing = AgentProgram(adapter_of("codex"), "codex", {"PATH": str(tmp_path)}, ("coder", "tester"))
    assert anyio.run(examined, program).fails is False
    found = anyio.run(examined, needing)
    assert (found.what, found.fails, found.found) == ("codex (coder, tester)", True, "there is no program codex")


def test_a_login_is_a_variable_with_a_value_or_a_file(tmp_path: Path) -> None:
    """A variable can name the folder of the file; an empty variable is none."""
    login = Login(("KEY",), (), (LoginFile(".agent", "auth.json", "AGENT_HOME"),))
    home = {"HOME": str(tmp_path)}
    assert seen(login, home | {"KEY": ""}) == ""
    assert seen(login, home | {"KEY": "x"}) == "KEY is set"
    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent/auth.json").touch()
    assert seen(login, home) == f"{tmp_path}/.agent/auth.json is there"
    assert seen(login, home | {"AGENT_HOME": str(tmp_path / "other")}) == ""


@pytest.mark.parametrize(
    ("behaviours", "verdict", "words"),
    [
        ((), Verdict.NOTE, "speaker 1.0, not tested (tested: OpenCode 1.18.33, gemini-cli 0.61.0, "),
        (("old",), Verdict.MISSING, "it speaks version 0 of the protocol, and lifefold 1"),
        (("broken",), Verdict.MISSING, "no settings"),
    ],
)
def test_a_program_that_speaks_a_protocol_says_itself_what_it_is(
    tmp_path: Path, behaviours: tuple[str, ...], verdict: Verdict, words: str
) -> None:
    """It gets no prompt, so nothing is spent."""
    pytest.importorskip("acp")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "COUNTS": str(tmp_path)}
    arguments = (str(SPEAKER), *behaviours)
    found = anyio.run(examined, AgentProgram(adapter_of("acp"), sys.executable, env, ("coder",), arguments))
    assert found.verdict is verdict
    assert words in found.found
    assert "session/prompt" not in (tmp_path / "wire.jsonl").read_text()


def test_a_program_that_speaks_no_protocol_does_not_say_what_it_is(tmp_path: Path) -> None:
    pytest.importorskip("acp")
    found = anyio.run(examined, AgentProgram(adapter_of("acp"), "/bin/true", {"HOME": str(tmp_path)}, ("coder",)))
    assert (found.verdict, found.found) == (Verdict.MISSING, "/bin/true does not say what it is")
