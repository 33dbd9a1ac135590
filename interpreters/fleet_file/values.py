"""What stands in a fleet file, as TOML has read it: how a complaint tells of it."""

import datetime as dt
import json
from typing import Final, cast

LONGEST_SHOWN: Final = 60
"""How much of a long value is shown, in characters."""
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
    """A value is not what its key accepts. ``at`` leads from that value to the part of it that is wrong."""

    def __init__(self, found: object, accepted: str, *at: int | str) -> None:
        super().__init__(f"found {shown(found)}; accepted: {accepted}")
        self.accepted = accepted
        self.at = at


def shown(value: object) -> str:
    """Return what is in the file, short enough for one line, with its kind unless it is a text."""
    if isinstance(value, str):
        return shortened(value)
    kind = _KINDS.get(type(value), type(value).__name__)
    if isinstance(value, list | dict):
        return kind if value else f"an empty {kind.split()[-1]}"
    return f"{_plain(value)}, {kind}"


def shortened(text: str) -> str:
    """Return a text in quotes, cut off if it is long."""
    return json.dumps(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…", ensure_ascii=False)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # Python refuses to write out an integer of thousands of digits.
    return "a number of very many digits" if isinstance(value, int) and value.bit_length() > 200 else str(value)  # noqa: PLR2004


def as_array(value: object) -> list[object] | None:
    """Return an array as what it is for the type checkers; None if the value is none."""
    return cast("list[object]", value) if isinstance(value, list) else None


def as_table(value: object) -> dict[str, object] | None:
    """Return a table as what it is for the type checkers; None if the value is none."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None
