"""The questions of commands that cannot be taken back: asked at a terminal, refused without one."""

import sys

from lifefold.interpreters.cli import outlet
from lifefold.interpreters.cli.errors import BadInput


def has_terminal() -> bool:
    """Tell whether an operator can read a question and answer it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def is_confirmed(question: str) -> bool:
    """Ask on a terminal, where only yes is yes; without a terminal the answer is no."""
    if not has_terminal():
        return False
    outlet.wait_until_written()  # the question is about what was printed before
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def must_be_confirmed(question: str, option: str) -> None:
    """Ask on a terminal. Raises ``BadInput`` after no, and without a terminal, where ``option`` is the answer."""
    if not has_terminal():
        raise BadInput(f"{question} without a terminal, this command needs {option}; nothing has changed")
    if not is_confirmed(question):
        raise BadInput("nothing has changed")
