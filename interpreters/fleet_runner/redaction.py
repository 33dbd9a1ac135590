"""Which of the values that a fleet's processes may know are secrets, and texts without them.

A variable is taken for a secret by its name. Wherever a record, a prompt or a screen quotes what a process has printed,
the name of the variable stands for its value.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.processes.command import plain

SECRET: Final = (
    "*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*CREDENTIAL*", "*COOKIE*",
    "*_PAT", "*_PWD",
)  # fmt: skip
"""Which variables are secrets, by their names in capitals."""

LEAST_CHARS: Final = 6
"""A shorter value is replaced nowhere: it may be a word, or a digit, that means nothing."""

LEAST_LINE_CHARS: Final = 16
"""The same of a line, where a value has several: of a private key, say."""

_PASSWORD_IN_URL: Final = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")

_PLAIN: Final = re.compile(r"\d{1,9}|enabled|disabled|default|always|required|optional", re.IGNORECASE)
"""Values of variables that are called like secrets, and say how many tokens there may be, or whether there are any."""


def is_secret(name: str, patterns: Iterable[str] = ()) -> bool:
    """Tell whether a variable of this name is a secret: by the usual patterns, or by these ones."""
    return matches(name.upper(), SECRET) or matches(name, patterns)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a variable's name is one of these, or of the form of a glob among them."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class Secrets:
    """The values that no record may have: of the runner's environment, passed or not, and of the fleet file."""

    def __init__(self, variables: Iterable[tuple[str, str]] = (), patterns: Iterable[str] = ()) -> None:
        """Take variables with their values; ``patterns`` name secrets that are not called like one."""
        self._names: Final[dict[str, str]] = {}
        self._found: re.Pattern[str] | None = None
        self.longest_bytes = 0
        self.learn(variables, patterns)

    def learn(self, variables: Iterable[tuple[str, str]], patterns: Iterable[str] = ()) -> None:
        """Take more variables with their values; what was a secret stays one."""
        globs = tuple(patterns)
        for name, value in variables:
            for part in _parts(value) if is_secret(name, globs) else _PASSWORD_IN_URL.findall(value):
                self._names.setdefault(part, name)
        # The longest first: one value may be a part of another.
        ordered = sorted(self._names, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self.longest_bytes = max((len(each.encode("utf-8", "surrogateescape")) for each in ordered), default=0)

    def hidden(self, text: str) -> str:
        """Return a text in which the name of a variable stands for its value."""
        return text if self._found is None else self._found.sub(lambda at: f"[redacted {self._names[at[0]]}]", text)

    def quotable(self, output: bytes, size_bytes: int) -> str:
        """Return the end of an output as a text for people.

        One that has the size that was asked for is a part of a longer one, and may begin with half a value: as much as
        the longest value is left out.
        """
        return self.hidden(plain(output))[self.longest_bytes if len(output) >= size_bytes else 0 :]


def _parts(value: str) -> list[str]:
    """Return what of a secret is looked for: the whole, and each line of one that has several.

    The path of a file that is there is none: the secret is in the file.
    """
    whole = value.strip()
    if _PLAIN.fullmatch(whole) or (whole.startswith("/") and os.path.exists(whole)):  # noqa: PTH110 - never raises
        return []
    lines = [line.strip() for line in whole.splitlines()]
    long = [line for line in lines if len(line) >= LEAST_LINE_CHARS] if len(lines) > 1 else []
    return [*([whole] if len(whole) >= LEAST_CHARS else []), *long]


def secrets_of(fleet: Fleet, around: Mapping[str, str]) -> Secrets:
    """Return the secrets that a fleet's processes may come to know."""
    return Secrets(variables_of(fleet, around), fleet.redact)


def variables_of(fleet: Fleet, around: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables, with their values, of a runner's environment and of a fleet file."""
    tables = (around, fleet.env, *(each.env for each in fleet.agents), *(each.env for each in fleet.services))
    return (variable for table in tables for variable in table.items())


NO_SECRETS: Final = Secrets()
"""Where nothing is a secret."""
