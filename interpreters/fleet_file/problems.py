"""Errors of a fleet file: file, line and key, the value found, and what is accepted."""

from pathlib import Path
from typing import TypeVar

import msgspec
from returns.result import Failure, Result, Success

from lifefold.interpreters.fleet_file.files import read_text
from lifefold.interpreters.fleet_file.places import KeyPath, key_lines, line_of

T = TypeVar("T")

SHOWN_PROBLEMS = 50
"""The most errors in the text of an exception; ``problems`` has all."""


class Problem(msgspec.Struct, frozen=True):
    """One error.

    ``key`` is its place: ``agents.coder.grace``, or ``agents[1].grace`` for the first agent if that has no usable name;
    empty for the file as a whole. ``line`` counts from 1; None without a line.
    """

    file: str
    key: str
    line: int | None
    message: str

    def __str__(self) -> str:
        """Return the error in the form that editors turn into a link: ``fleet.toml:12: agents.coder.grace: ...``."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


Problems = tuple[Problem, ...]
"""All errors of a file; never empty in a ``Failure``."""


class FleetFileError(Exception):
    """A fleet file is unusable. ``problems`` has all its errors, in the order of the file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        """Return a line for each error."""
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"and {len(self.problems) - SHOWN_PROBLEMS} more")
        return "\n".join(lines)


def place_of(source: Path, table: str, key: str) -> str:
    """Return the place of a key in a fleet file, for an error found later."""
    try:
        line = line_of((table, key), key_lines(read_text(source)))
    except (OSError, ValueError):
        line = None
    return str(Problem(str(source), f"{table}.{key}", line, ""))


class Report:
    """Collects errors and warnings while a file is read."""

    def __init__(self, file: str, text: str, lines: dict[KeyPath, int] | None = None) -> None:
        """Report about a text of TOML, or of another form with the ``lines`` of its values."""
        self.file = file
        self.warnings: list[str] = []
        self._problems: list[Problem] = []
        self._lines = key_lines(text) if lines is None else lines

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a value."""
        return line_of(path, self._lines)

    def place(self, path: KeyPath, key: str) -> str:
        """Return the place of the value at ``path``, as the beginning of a message."""
        return f"{Problem(self.file, key, self.line(path), '')}: "

    def problem(self, path: KeyPath, key: str, message: str) -> None:
        """Add an error of the value at ``path``, whose name is ``key``."""
        self._problems.append(Problem(self.file, key, self.line(path), message))

    def warn(self, path: KeyPath, key: str, message: str) -> None:
        """Add a warning."""
        self.warnings.append(str(Problem(self.file, key, self.line(path), message)))

    def outcome(self, value: T) -> Result[T, Problems]:
        """Return the value as ``Success``, or all errors as ``Failure``, in the order of the file."""
        if self._problems:
            return Failure(tuple(sorted(self._problems, key=lambda problem: problem.line or 0)))
        return Success(value)
