"""The help of the desk's commands: each has examples, and each example is a command that the grammar accepts."""

import pytest

from lifefold.interpreters.cli.grammar import parser

DESK = ("output", "diff", "show", "watch", "fleets")


@pytest.mark.parametrize("word", DESK)
def test_each_example_of_the_help_is_accepted(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An example that does not parse would mislead."""
    with pytest.raises(SystemExit):
        parser().parse_args([word, "--help"])
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert examples
    for example in examples:
        words = example.partition("#")[0].partition(">")[0].split()
        assert words[:2] == ["lifefold", word]
        assert parser().parse_args(words[1:]).command
