"""Values of a fleet file as TOML reads them, and their texts in error messages."""

import datetime as dt
import json
from typing import Final, cast

LONGEST_SHOWN: Final = 60
"""The most characters shown of a value."""
_KINDS: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    list: "an array",
    dict: "a table",
    dt.datetime: "a date and time",
    dt.date: "a date",
    dt.time: "a time of day",
}


class RefusedError(Exception):
    """A key does not accept a value. ``at`` is the path to the wrong part of it."""

    def __init__(self, found: object, accepted: str, *at: int | str) -> None:
        super().__init__(f"found {shown(found)}; accepted: {accepted}")
        self.accepted = accepted
        self.at = at


def shown(value: object) -> str:
    """Return a value on one line, with its kind unless it is a text."""
    if isinstance(value, str):
        return shortened(value)
    kind = _KINDS.get(type(value), type(value).__name__)
    if isinstance(value, list | dict):
        return kind if value else f"an empty {kind.split()[-1]}"
    return f"{_plain(value)}, {kind}"


def shortened(text: str) -> str:
    """Return a text in quotes; a long one is cut."""
    return json.dumps(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…", ensure_ascii=False)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # Python refuses to format an integer of thousands of digits.
    return "a number of very many digits" if isinstance(value, int) and value.bit_length() > 200 else str(value)  # noqa: PLR2004


def as_array(value: object) -> list[object] | None:
    """Return a value as an array, typed; None if it is another kind."""
    return cast("list[object]", value) if isinstance(value, list) else None


def as_table(value: object) -> dict[str, object] | None:
    """Return a value as a table, typed; None if it is another kind."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None
