"""A mistyped name is answered with similar ones, in whole sentences."""

import pytest

from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.names import known

SIX = ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("name", "names", "said"),
    [
        ("repl", ["schema", "reply"], "did you mean reply?"),
        ("repl", ["replay", "schema", "reply"], "did you mean reply or replay?"),
        ("WORKER", ["worker", "Worker", "other"], "did you mean worker or Worker?"),
        ("agent-9", ["agent-1", "agent-2", "agent-3", "agent-4"], "did you mean agent-1 or agent-2 or agent-3?"),
        ("x", ["schema"], "there is only schema"),
        ("x", ["schema", "lint"], "there are schema, lint"),
        ("x", SIX[:5], "there are a, b, c, d, e"),
        ("x", SIX, "there are a, b, c, d, e, ..."),
        ("x", [], "there are none yet"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_those_that_are(name: str, names: list[str], said: str) -> None:
    """With the nearest, whatever their case; with the first few if none is near, and with the number's grammar."""
    assert known(name, names) == said


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["aprove", "docs"], "did you mean lifefold approve or lifefold move?"),
        (["stauts"], "did you mean lifefold status or lifefold task?"),
        (["qwxyz", "--db", "x"], "see lifefold --help"),
    ],
)
def test_a_command_that_is_not_there_is_answered_likewise(
    words: list[str], instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, without all the others."""
    assert main(words) == 2
    assert capsys.readouterr().err == f"lifefold: there is no command {words[0]!r}; {instead}\n"
