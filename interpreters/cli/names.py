"""Typed names of tasks and agents; an error about an unknown name has similar names."""

from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final

from lifefold.interpreters.cli.errors import BadInput

MOST_NAMES: Final = 5
"""The most names that an error about an unknown name lists."""

MOST_LIKE: Final = 3
"""The most similar names that an error suggests."""

LIKENESS: Final = 0.6
"""The least similarity of a suggested name, from 0 to 1."""


class UnknownName(BadInput):
    """There is no thing of this kind (``what``) and name."""

    def __init__(self, what: str, name: str, names: Collection[str]) -> None:
        """Compose the message, with similar names."""
        super().__init__(f"there is no {what} {name!r}; {known(name, names)}")
        self.what: Final = what
        self.name: Final = name


def must_be_there(what: str, wanted: Iterable[str], names: Collection[str]) -> None:
    """Raise ``UnknownName`` for the first unknown name; ``what`` is the kind of thing named."""
    for unknown in missing(what, wanted, names):
        raise unknown


def missing(what: str, wanted: Iterable[str], names: Collection[str]) -> Iterator[UnknownName]:
    """Yield an error for each unknown name, with similar names."""
    return (UnknownName(what, each, names) for each in wanted if each not in names)


def known(name: str, names: Collection[str]) -> str:
    """Return the similar names as a question, ignoring case; without any, the known names."""
    similar = like(name, names)
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    some = ", ".join(list(names)[:MOST_NAMES])
    match len(names):
        case 0:
            return "there are none yet"
        case 1:
            return f"there is only {some}"
        case count:
            return f"there are {some}{', ...' if count > MOST_NAMES else ''}"


def like(name: str, names: Collection[str]) -> list[str]:
    """Return the most similar names, the nearest first, ignoring case; equally near ones in their order."""
    matcher = SequenceMatcher(b=name.casefold())
    scored: list[tuple[float, str]] = []
    for each in names:
        matcher.set_seq1(each.casefold())
        scored.append((matcher.ratio(), each))
    similar = sorted((each for each in scored if each[0] >= LIKENESS), key=lambda each: -each[0])
    return [each for _, each in similar[:MOST_LIKE]]
