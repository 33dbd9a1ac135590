"""Names that people type: of tasks and of agents. Whoever mistypes one is shown those that are like it."""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from lifefold.interpreters.cli.errors import BadInput

MOST_NAMES: Final = 5
"""How many names are shown to somebody who has mistyped one."""


def must_be_there(what: str, wanted: Iterable[str], names: Collection[str]) -> None:
    """Raise ``BadInput`` with names that are like it for the first of the wanted that is no ``what``."""
    for said in missing(what, wanted, names):
        raise BadInput(said)


def missing(what: str, wanted: Iterable[str], names: Collection[str]) -> Iterator[str]:
    """Say of each of the wanted that is no ``what`` which names are like it."""
    return (f"there is no {what} {each!r}; {known(each, names)}" for each in wanted if each not in names)


def known(name: str, names: Collection[str]) -> str:
    """Say which names there are: those that are like this one, or else some."""
    near = get_close_matches(name, names, n=MOST_NAMES) or list(names)[:MOST_NAMES]
    more = ", ..." if len(names) > len(near) else ""
    return f"there are {', '.join(near)}{more}" if near else "there are none yet"
