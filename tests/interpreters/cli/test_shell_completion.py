"""``completion``: real shells, bash, zsh and fish, complete commands, options, and the names of tasks."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from fleet_log import FleetLog
from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.cli.app import main
from terminal import Terminal

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


def path_with_lifefold(folder: Path) -> dict[str, str]:
    """Write a program ``lifefold`` into a folder, and return the environment in which shells find it."""
    program = folder / "bin" / "lifefold"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lifefold.interpreters.cli "$@"\n')
    program.chmod(0o700)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(folder)}


def completed(folder: Path, *words: str) -> list[str]:
    """Return the candidates of a bash in a folder for the last of these words, without trailing blanks."""
    env = {**os.environ, **path_with_lifefold(folder)}
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


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes_commands_and_names_of_the_log(tmp_path: Path) -> None:
    (tmp_path / ".lifefold").mkdir()
    FleetLog(tmp_path / ".lifefold" / "fleet.db", TaskPlan("notes", "x"))
    env = {**os.environ, **path_with_lifefold(tmp_path), "TERM": "dumb"}

    def candidates(typed: str) -> list[str]:
        script = f"lifefold completion fish | source; complete -C {shlex.quote(typed)}"
        command = ["fish", "--no-config", "-c", script]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=200)
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    assert candidates("lifefold can") == ["cancel"]
    assert candidates("lifefold cancel no") == ["notes"]
    assert candidates("lifefold edit --prompt-") == ["--prompt-file"]


ZSH: Final = shutil.which("zsh")


@pytest.mark.skipif(ZSH is None, reason="there is no zsh")
def test_zsh_completes_commands_and_names_of_the_log_at_a_terminal(tmp_path: Path) -> None:
    """The tabulator writes the rest of the word into the line."""
    (tmp_path / ".lifefold").mkdir()
    FleetLog(tmp_path / ".lifefold" / "fleet.db", TaskPlan("notes", "x"))
    with Terminal(tmp_path, "-f", "-i", program=(ZSH or "",), env=path_with_lifefold(tmp_path)) as zsh:
        zsh.press(
            "PS1='ready> '; autoload -U compinit; compinit -u -D; eval \"$(lifefold completion zsh)\"; echo lo''aded\n"
        )
        zsh.until("loaded", "ready> ")
        zsh.press("lifefold can\t")
        zsh.until("lifefold cancel")
        zsh.press(" no\t")
        assert "notes" in zsh.until("notes")
        zsh.press("\x15lifefold edit --prompt-\t")
        zsh.until("--prompt-file")


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete"), ("zsh", "compdef"), ("fish", "complete")])
def test_each_shell_gets_a_script_for_lifefold(capsys: pytest.CaptureFixture[str], shell: str, word: str) -> None:
    """The script calls the shell's own completion with the name of the program."""
    assert main(["completion", shell]) == 0
    assert any(word in line and "lifefold" in line for line in capsys.readouterr().out.splitlines())
