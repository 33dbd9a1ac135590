"""Values out of the lines of an agent, bounded: an agent may print any text, number and nesting."""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Final, TypeVar, cast

import msgspec

from lifefold.interpreters.adapters.adapter import MAX_LINE_BYTES
from lifefold.interpreters.adapters.facts import NAME_CHARS, TEXT_CHARS

MOST_TOKENS: Final = 2**53 - 1
"""The largest integer that all JSON readers read exactly."""

MOST_USD: Final = 1_000_000
"""The greatest amount of money that is accepted; a greater one counts as missing."""

MOST_ITEMS: Final = 100
"""The most items of a list, and the most keys of a table, that are read."""

_USD_DECIMALS: Final = 6
_UPWARDS: Final = Context(prec=28, rounding=ROUND_CEILING, traps=[])
_NEAREST: Final = Context(prec=28, traps=[])
_NOISE: Final = Decimal("1e-12")
_NONE: Final = Decimal(0)
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

Line = TypeVar("Line", bound=msgspec.Struct)


def decoder(kind: type[Line]) -> "msgspec.json.Decoder[Line]":
    """Return a decoder of lines; amounts of money stay texts, so that no fraction is lost."""
    return msgspec.json.Decoder(kind, float_hook=str)


def decoded(reader: "msgspec.json.Decoder[Line]", line: bytes) -> Line | None:
    """Return the object of a line; None for a line that has no such object, or is too long."""
    text = line.strip()
    if len(text) > MAX_LINE_BYTES or not text.startswith(b"{"):
        return None
    try:
        return reader.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def plain(line: bytes) -> str:
    """Return a line as text for people, without escape sequences; empty for a line that is too long."""
    return "" if len(line) > MAX_LINE_BYTES else sentence(line.decode(errors="replace"))


def sentence(said: Any, most_chars: int = TEXT_CHARS) -> str:
    """Return a text on one line, cut; empty if the value is no text."""
    if not isinstance(said, str):
        return ""
    shown = _ESCAPE.sub("", said[: 4 * most_chars])
    if not shown.isprintable():
        shown = "".join(each if each.isprintable() else " " for each in shown)
    shown = " ".join(shown.split())
    return shown if len(shown) <= most_chars else f"{shown[: most_chars - 1]}…"


def name(said: Any) -> str:
    """Return an identifier; empty if the value is no text, or a text too long to be one."""
    found = sentence(said)
    return found if len(found) <= NAME_CHARS else ""


def table(said: Any) -> dict[str, Any]:
    """Return a table with its first keys; empty if the value is none."""
    if not isinstance(said, dict):
        return {}
    found = cast("dict[str, Any]", said)
    return found if len(found) <= MOST_ITEMS else dict(list(found.items())[:MOST_ITEMS])


def items(said: Any) -> list[object]:
    """Return the first items of a list; empty if the value is none."""
    found = cast("list[object]", said) if isinstance(said, list) else []
    return found[:MOST_ITEMS]


def count(said: Any) -> int:
    """Return a number of tokens; 0 if the value is none that can be."""
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= MOST_TOKENS else 0


def integer(said: Any) -> int | None:
    """Return an integer of ordinary size; None if the value is none."""
    return said if isinstance(said, int) and not isinstance(said, bool) and abs(said) <= MOST_TOKENS else None


def microusd(said: Any, less: Iterable[Any] = ()) -> int | None:
    """Return an amount of US dollars in millionths, rounded up; None if the value is none that can be.

    Amounts of ``less`` are subtracted before the rounding, but no difference is below zero.
    """
    amount = _dollars(said)
    if amount is None:
        return None
    for each in less:
        amount = _NEAREST.subtract(amount, _dollars(each) or _NONE)
    exact = _NEAREST.quantize(max(amount, _NONE), _NOISE)  # agents add binary fractions: 0.00041700000000000005
    return int(exact.scaleb(_USD_DECIMALS, _UPWARDS).to_integral_value(context=_UPWARDS))


def _dollars(said: Any) -> Decimal | None:
    if isinstance(said, str):
        amount = _UPWARDS.create_decimal(said[:NAME_CHARS])
    elif integer(said) is not None:
        amount = _UPWARDS.create_decimal(said)
    else:
        return None
    return amount if amount.is_finite() and 0 <= amount <= MOST_USD else None


def subject(used: Any) -> str:
    """Return what a tool is used on, from its input: a command, a file, a place, or a question; empty if unknown."""
    given = table(used)
    return first(sentence(given.get(key), NAME_CHARS) for key in _SUBJECTS)


_SUBJECTS: Final = ("command", "file_path", "filePath", "path", "pattern", "url", "query", "description")
"""The keys of a tool's input that say what it is used on, the most telling one first."""


def first(texts: Iterable[str]) -> str:
    """Return the first text that is not empty; empty if all are."""
    return next((each for each in texts if each), "")
