"""``completion``: a real bash completes commands, options, and the names of tasks."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet_log import FleetLog
from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.cli.app import main

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")

SCRIPT = """
eval "$(lifefold completion bash)"
COMP_WORDS=({words})
COMP_LINE="${{COMP_WORDS[*]}}"
COMP_POINT=${{#COMP_LINE}}
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_TYPE=9
name=$(complete -p lifefold)
name=${{name#*-F }}
"${{name%% *}}" lifefold
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(folder: Path, *words: str) -> list[str]:
    """Return the candidates of a bash in a folder for the last of these words, without trailing blanks."""
    program = folder / "bin" / "lifefold"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lifefold.interpreters.cli "$@"\n')
    program.chmod(0o700)
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    script = SCRIPT.format(words=" ".join(map(shlex.quote, ("lifefold", *words))))
    command = ["bash", "--norc", "--noprofile", "-c", script]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=200)
    assert done.stderr == ""
    return sorted(line.rstrip() for line in done.stdout.splitlines() if line)


@needs_bash
def test_bash_completes_commands_options_and_names_of_the_log(tmp_path: Path) -> None:
    """Tasks and agents are those of the log in the folder; a fleet file is a file of TOML."""
    (tmp_path / ".lifefold").mkdir()
    FleetLog(tmp_path / ".lifefold" / "fleet.db", TaskPlan("notes", "x"), TaskPlan("index", "x"))
    (tmp_path / "fleet.toml").write_text("")
    (tmp_path / "other.txt").write_text("")
    assert completed(tmp_path, "can") == ["cancel"]
    assert completed(tmp_path, "edit", "--prompt-") == ["--prompt-file"]
    assert completed(tmp_path, "cancel", "no") == ["notes"]
    assert completed(tmp_path, "send", "a") == ["ann"]
    assert completed(tmp_path, "run", "") == [".lifefold/", "bin/", "fleet.toml"]


@needs_bash
def test_without_a_log_no_name_is_completed_and_nothing_is_said(tmp_path: Path) -> None:
    """A message would appear in the line that is typed."""
    assert completed(tmp_path, "cancel", "n") == []


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete"), ("zsh", "compdef"), ("fish", "complete")])
def test_each_shell_gets_a_script_for_lifefold(capsys: pytest.CaptureFixture[str], shell: str, word: str) -> None:
    """The script calls the shell's own completion with the name of the program."""
    assert main(["completion", shell]) == 0
    assert any(word in line and "lifefold" in line for line in capsys.readouterr().out.splitlines())
