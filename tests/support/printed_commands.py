"""Commands that run in the process of a test, with all that they print."""

from pathlib import Path

import pytest

from lifefold.interpreters.cli.app import main


def tell(log: Path, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Give a command on a log; return what it prints, its complaint included."""
    assert main([*words, "--db", str(log)]) == code
    printed = capsys.readouterr()
    return printed.out + printed.err
