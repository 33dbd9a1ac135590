"""Secrets of a fleet's processes, and texts without them.

The name of a variable decides whether it is a secret. Records, prompts and screens quote output with the name of the
variable in place of its value.
"""

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from lifefold.interpreters.processes.command import plain

SECRET: Final = (
    "*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*CREDENTIAL*", "*COOKIE*",
    "*_PAT", "*_PWD",
)  # fmt: skip
"""Globs of the names of secrets, in capitals."""

LEAST_CHARS: Final = 6
"""Shorter values are not replaced, because they may be ordinary words or numbers."""

LEAST_LINE_CHARS: Final = 10
"""The same for a line of a value with several lines, such as a private key."""

_PASSWORD_IN_URL: Final = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")

_PLAIN: Final = re.compile(r"\d{1,9}|enabled|disabled|default|always|required|optional", re.IGNORECASE)
"""Values that are not secret, although their variables have such names: numbers and switches."""


def is_secret(name: str, patterns: Iterable[str] = ()) -> bool:
    """Tell whether a name is that of a secret, by ``SECRET`` or by these patterns."""
    return matches(name.upper(), SECRET) or matches(name, patterns)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a name matches one of these names or globs."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class Secrets:
    """The secret values of the runner's environment, passed on or not, and of the fleet file."""

    def __init__(self, variables: Iterable[tuple[str, str]] = (), patterns: Iterable[str] = ()) -> None:
        """Take variables with their values; ``patterns`` name further secrets."""
        self._names: Final[dict[str, str]] = {}
        self._found: re.Pattern[str] | None = None
        self.longest_bytes = 0
        self.learn(variables, patterns)

    def learn(self, variables: Iterable[tuple[str, str]], patterns: Iterable[str] = ()) -> None:
        """Take more variables with their values; earlier secrets stay secret."""
        globs = tuple(patterns)
        for name, value in variables:
            for part in _parts(value) if is_secret(name, globs) else _PASSWORD_IN_URL.findall(value):
                self._names.setdefault(part, name)
        # Longest first, because one value may be a part of another.
        ordered = sorted(self._names, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self.longest_bytes = max((len(each.encode("utf-8", "surrogateescape")) for each in ordered), default=0)

    def hidden(self, text: str) -> str:
        """Return a text with the names of secrets in place of their values."""
        return text if self._found is None else self._found.sub(lambda at: f"[redacted {self._names[at[0]]}]", text)

    def quotable(self, output: bytes, size_bytes: int) -> str:
        """Return the end of an output as a redacted text.

        An output of the full ``size_bytes`` may begin within a value. So its beginning is left out, as long as the
        longest value.
        """
        return self.hidden(plain(output))[self.longest_bytes if len(output) >= size_bytes else 0 :]


def _parts(value: str) -> list[str]:
    """Return the texts to replace for a secret: its value, and each line of a longer one.

    The path of an existing file is not replaced: the secret is in the file.
    """
    whole = value.strip()
    if _PLAIN.fullmatch(whole) or (whole.startswith("/") and os.path.exists(whole)):  # noqa: PTH110 - never raises
        return []
    lines = [line.strip() for line in whole.splitlines()]
    long = [line for line in lines if len(line) >= LEAST_LINE_CHARS] if len(lines) > 1 else []
    spaced = [whole, " ".join(whole.split())]  # adapters shorten white space before anything is hidden
    return [*(each for each in spaced if len(each) >= LEAST_CHARS), *long]


NO_SECRETS: Final = Secrets()
"""No secrets."""
