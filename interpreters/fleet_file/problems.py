"""What is wrong with a fleet file, said so that it can be put right: file, line and key, what is there, what may be."""

from pathlib import Path
from typing import TypeVar

import msgspec
from returns.result import Failure, Result, Success

from lifefold.interpreters.fleet_file.files import read_text
from lifefold.interpreters.fleet_file.places import KeyPath, key_lines, line_of

T = TypeVar("T")

SHOWN_PROBLEMS = 50
"""How many problems the text of one error lists; ``problems`` has all of them."""


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong.

    ``key`` is its place as people say it, ``agents.coder.grace``, or ``agents[1].grace`` for the first agent if that
    has no usable name; empty for the file as a whole. ``line`` counts from 1; None where there is none to name.
    """

    file: str
    key: str
    line: int | None
    message: str

    def __str__(self) -> str:
        """Return it in the form that editors turn into a link: ``fleet.toml:12: agents.coder.grace: ...``."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


Problems = tuple[Problem, ...]
"""All that is wrong with a file; never empty in a ``Failure``."""


class FleetFileError(Exception):
    """A fleet file cannot be used. ``problems`` has all that is wrong with it, in the order of the file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        """Return one line for each problem."""
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"and {len(self.problems) - SHOWN_PROBLEMS} more")
        return "\n".join(lines)


def place_of(source: Path, table: str, key: str) -> str:
    """Return where a key of a fleet file stands, for what is found out about its value only later."""
    try:
        line = line_of((table, key), key_lines(read_text(source)))
    except (OSError, ValueError):
        line = None
    return str(Problem(str(source), f"{table}.{key}", line, ""))


class Report:
    """Collects what is wrong, and what is only worth a warning, while a file is read."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.warnings: list[str] = []
        self._problems: list[Problem] = []
        self._lines = key_lines(text)

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a value."""
        return line_of(path, self._lines)

    def place(self, path: KeyPath, key: str) -> str:
        """Return where the value at ``path`` stands, as the beginning of what is to be said about it."""
        return f"{Problem(self.file, key, self.line(path), '')}: "

    def problem(self, path: KeyPath, key: str, message: str) -> None:
        """Add a problem with the value at ``path``, which people call ``key``."""
        self._problems.append(Problem(self.file, key, self.line(path), message))

    def warn(self, path: KeyPath, key: str, message: str) -> None:
        """Add a warning."""
        self.warnings.append(str(Problem(self.file, key, self.line(path), message)))

    def outcome(self, value: T) -> Result[T, Problems]:
        """Return the value as ``Success``, or as ``Failure`` all that was found wrong, in the order of the file."""
        if self._problems:
            return Failure(tuple(sorted(self._problems, key=lambda problem: problem.line or 0)))
        return Success(value)
