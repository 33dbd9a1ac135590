"""The form of a ``repr``: one short line between angle brackets, for a log, a debugger or a failed assertion."""

from collections.abc import Iterable
from typing import Final

LINE: Final = 160
"""The most characters of a ``repr``; a longer one is cut and ends with an ellipsis."""


def shown(text: str) -> str:
    """Return a text in angle brackets, on one line of at most ``LINE`` characters."""
    line = " ".join(text.split())
    return f"<{line}>" if len(line) + 2 <= LINE else f"<{line[: LINE - 3].rstrip()}…>"


def counted(count: int, noun: str) -> str:
    """Return a number of things in words: ``1 row``, ``2 rows``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Iterable[str], most: int = 4) -> str:
    """Return the first names, separated by commas, and the number of the others."""
    every = list(names)
    more = [f"{len(every) - most} more"] if len(every) > most else []
    return ", ".join([*every[:most], *more])
