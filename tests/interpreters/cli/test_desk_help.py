"""The help of the commands: each has examples, and each example is a command that the grammar accepts."""

import shlex

import pytest

from lifefold.interpreters.cli.grammar import parser

COMMANDS = (*(each for each in parser().get_default("known") if each != "task"), "task add")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_example_of_the_help_is_accepted(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An example that does not parse would mislead."""
    typed = command.split()
    with pytest.raises(SystemExit):
        parser().parse_args([*typed, "--help"])
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert examples
    for example in examples:
        words = shlex.split(example.partition("#")[0].partition(">")[0])
        assert words[: len(typed) + 1] == ["lifefold", *typed]
        assert parser().parse_args(words[1:]).command
