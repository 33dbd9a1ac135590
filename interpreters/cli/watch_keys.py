"""The keys of the command ``watch``: a pure reducer of the cursor, the question under way, and the command to give."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lifefold.core.kernel import replace
from lifefold.interpreters.cli.watch_items import Item, Key

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page up", "page down", "home", "end"
ENTER, ESCAPE, BACKSPACE = "enter", "escape", "backspace"

PAGE: Final = 10
"""The lines that a page key moves the cursor."""

MOST_TYPED: Final = 2_000
"""The longest text that is typed."""

_NAMES: Final = {
    "\x1b[A": UP, "\x1bOA": UP, "k": UP, "\x1b[B": DOWN, "\x1bOB": DOWN, "j": DOWN, "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN, "\x1b[H": HOME, "\x1bOH": HOME, "\x1b[1~": HOME, "g": HOME, "\x1b[F": END, "\x1bOF": END,
    "\x1b[4~": END, "G": END, "\r": ENTER, "\n": ENTER, "\x1b": ESCAPE, "\x7f": BACKSPACE, "\b": BACKSPACE,
}  # fmt: skip

_KEY: Final = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|.", re.DOTALL)


class Screen(msgspec.Struct, frozen=True):
    """What the operator does. ``at`` is the item of the cursor, ``place`` where it was in the list.

    ``asked`` is the key whose question waits for its answer, ``typed`` the text so far. ``said`` is the last answer.
    """

    at: str = ""
    place: int = 0
    asked: Key | None = None
    typed: str = ""
    said: str = ""
    quits: bool = False


class Order(msgspec.Struct, frozen=True):
    """A command to give; ``shows``: it takes the screen until it ends."""

    words: tuple[str, ...]
    shows: bool = False


def keys_of(text: str) -> Iterator[str]:
    """Yield the keys in what a terminal sent: a sequence of an arrow key is one key."""
    return (found[0] for found in _KEY.finditer(text))


def settled(screen: Screen, items: Sequence[Item]) -> Screen:
    """Return the screen with the cursor on its item, wherever that is now; else at the same place of the list."""
    known = [each.id for each in items]
    if not known:
        return replace(screen, at="", place=0)
    place = known.index(screen.at) if screen.at in known else min(screen.place, len(known) - 1)
    return replace(screen, at=known[place], place=place)


def press(screen: Screen, items: Sequence[Item], key: str) -> tuple[Screen, Order | None]:
    """Take a key; return the next screen, and the command to give, if there is one."""
    screen = settled(screen, items)
    if screen.asked is not None:
        return _answer(screen, screen.asked, key)
    name = _NAMES.get(key, key)
    if name in _MOVES and items:
        place = max(0, min(len(items) - 1, screen.place + _MOVES[name]))
        return replace(screen, at=items[place].id, place=place, said=""), None
    if name == "q":
        return replace(screen, quits=True), None
    found = next((each for each in items[screen.place].keys if each.key == name), None) if items else None
    if found is None:
        return screen, None
    if found.asks:
        return replace(screen, asked=found, typed="", said=""), None
    return replace(screen, said=""), Order(found.words, found.shows)


_MOVES: Final = {UP: -1, DOWN: 1, PAGE_UP: -PAGE, PAGE_DOWN: PAGE, HOME: -(10**9), END: 10**9}


def _answer(screen: Screen, asked: Key, key: str) -> tuple[Screen, Order | None]:
    """Take a key of an answer: a text that ends with Enter, or yes; Escape, and any other key than yes, is no."""
    done = replace(screen, asked=None, typed="")
    if not asked.takes_text:
        return (done, Order(asked.words)) if key in {"y", "Y"} else (replace(done, said="nothing is done"), None)
    name = key if key.isprintable() else _NAMES.get(key, "")
    match name:
        case "escape":
            return replace(done, said="nothing is done"), None
        case "enter":
            text = screen.typed.strip()
            return (done, Order((*asked.words, text))) if text else (screen, None)
        case "backspace":
            return replace(screen, typed=screen.typed[:-1]), None
        case _ if key.isprintable() and len(screen.typed) < MOST_TYPED:
            return replace(screen, typed=screen.typed + key), None
        case _:
            return screen, None


def question(screen: Screen) -> str:
    """Return the question under way with the text so far; empty without one."""
    if screen.asked is None:
        return ""
    if screen.asked.takes_text:
        return f"{screen.asked.asks}: {screen.typed}"
    return f"{screen.asked.asks}? y/n"
