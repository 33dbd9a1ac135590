"""Names that people type: of tasks and of agents. Whoever mistypes one is shown those that are like it."""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from lifefold.interpreters.cli.errors import BadInput

MOST_NAMES: Final = 5
"""How many names are shown to somebody who has typed one that is like none of them."""

MOST_LIKE: Final = 3
"""How many are asked about that may have been meant."""


def must_be_there(what: str, wanted: Iterable[str], names: Collection[str]) -> None:
    """Raise ``BadInput`` with names that are like it for the first of the wanted that is no ``what``."""
    for said in missing(what, wanted, names):
        raise BadInput(said)


def missing(what: str, wanted: Iterable[str], names: Collection[str]) -> Iterator[str]:
    """Say of each of the wanted that is no ``what`` which names are like it."""
    return (f"there is no {what} {each!r}; {known(each, names)}" for each in wanted if each not in names)


def known(name: str, names: Collection[str]) -> str:
    """Say which name may have been meant, whatever its case; or which there are, if none is like it."""
    localized = like(name, names)
    if localized:
        return f"did you mean {' or '.join(localized)}?"
    some = ", ".join(list(names)[:MOST_NAMES])
    match len(names):
        case 0:
            return "there are none yet"
        case 1:
            return f"there is only {some}"
        case count:
            return f"there are {some}{', ...' if count > MOST_NAMES else ''}"


def like(name: str, names: Collection[str]) -> list[str]:
    """Return the names that are most like this one, the nearest first; case makes no difference."""
    localized = get_close_matches(name.casefold(), {each.casefold() for each in names}, n=MOST_LIKE)
    return [each for word in localized for each in names if each.casefold() == word]
