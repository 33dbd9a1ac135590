"""The help of the commands: each has examples, and each example is a command that the grammar accepts."""

import shlex
from pathlib import Path

import pytest

from lifefold.interpreters.cli.grammar import parser

COMMANDS = (*(each for each in parser().get_default("known") if each != "task"), "task add")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_example_of_the_help_is_accepted(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An example that does not parse would mislead."""
    typed = command.split()
    with pytest.raises(SystemExit):
        parser().parse_args([*typed, "--help"])
    lines = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    examples = [shlex.split(line.partition("#")[0].partition(">")[0]) for line in lines]
    assert examples[0][: len(typed) + 1] == ["lifefold", *typed]
    for words in examples:
        assert words[0] == "lifefold"
        assert parser().parse_args(words[1:]).command


@pytest.mark.parametrize("command", ["run", "plan", "unit"])
def test_a_command_without_its_fleet_file_names_those_that_are_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or the command that writes one. The file of a Python project is none."""
    monkeypatch.chdir(tmp_path)
    for names, said in (
        ([], "lifefold init writes one"),
        (["b.toml", "a.toml", "pyproject.toml"], "here: a.toml, b.toml"),
    ):
        for name in names:
            Path(name).touch()
        with pytest.raises(SystemExit):
            parser().parse_args([command])
        assert capsys.readouterr().err.endswith(f"required: FLEET.toml; {said}\n")
