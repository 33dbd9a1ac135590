"""What ``--at`` and ``--since`` accept: a position of a log, a time, or a duration before now."""

import re
from datetime import datetime
from typing import Final

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.store import LogStore
from lifefold.interpreters.units import parse_duration_ms

TIME_FORM: Final = "a time, as 2026-11-20T09:30 (local, unless it says its zone)"

SINCE_FORM: Final = f"a duration, as 10m or 1h30m, or {TIME_FORM}"
"""What ``--since`` accepts."""

AT_FORM: Final = f"the position of an entry, as 120; {TIME_FORM}; or a duration before now, as -5m"
"""What ``--at`` accepts."""


def moment_ms(option: str, text: str, now_ms: int, form: str) -> int:
    """Return a time, in Unix milliseconds. Raises ``BadInput``, which names the option and what it accepts."""
    try:
        return now_ms - parse_duration_ms(text.removeprefix("-"))
    except ValueError:
        pass
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1_000)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{option}: found {text!r}; accepted: {form}") from error


def newest_position(store: LogStore) -> int:
    """Return the position of the newest entry of a log, or of the past that it is read as; 0 without entries."""
    return store.position_at(_EVER_MS) if store.past is None else store.past[0]


def position(store: LogStore, text: str, now_ms: int) -> int:
    """Return the position in a log that ``--at`` names. Raises ``BadInput``."""
    newest = store.position_at(_EVER_MS)
    if not newest:
        raise BadInput(f"--at: found {text!r}; {store.path} has no entry yet")
    if re.fullmatch(r"\d{1,15}", text):
        if 1 <= int(text) <= newest:
            return int(text)
        raise BadInput(f"--at: found {text!r}; {store.path} has the positions 1 to {newest}")
    found = store.position_at(moment_ms("--at", text, now_ms, AT_FORM))
    if not found:
        begins = datetime.fromtimestamp((store.time_of(1) or 0) / 1_000).astimezone().isoformat(timespec="seconds")
        raise BadInput(f"--at: found {text!r}; {store.path} begins later, at {begins}")
    return found


_EVER_MS: Final = 1 << 62
"""A time after every entry."""
