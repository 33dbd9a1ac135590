"""The end of a limit, out of the sentence of an agent: ``resets at 12:30 PM``, ``try again in 2 h 5 m``.

Agents print times of their own zone, so a time without a zone is read with the offset of the moment. A time of day
without a date is the next one, or one just over: programs leave out the seconds, and output can be read late. A time
that cannot be the end of a limit counts as unknown.
"""

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from lifefold.interpreters.adapters.adapter import Now
from lifefold.interpreters.adapters.hostile import integer

LONGEST_MS: Final = 32 * 86_400_000
"""The longest limit that is believed: a month and a day."""

EARLIEST_MS: Final = 86_400_000
"""A limit may have ended a day ago at most; the output may be read late."""

JUST_OVER: Final = timedelta(minutes=10)
"""A time of day that has passed by at most this much is of today, not of the next day."""

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS_OF_EPOCH: Final = 100_000_000_000
"""A larger number is in milliseconds."""

_STAMP: Final = re.compile(r"limit reached\|(\d{10,13})\b")
_DURATION: Final = re.compile(
    r"\b(?:in|after) ((?:(?:about )?\d{1,6}(?:\.\d{1,9})? ?"
    r"(?:days?|hours?|minutes?|seconds?|hrs?|mins?|secs?|ms|[dhms])(?![a-z])[, ]{0,2}(?:and )?){1,4})",
    re.IGNORECASE,
)
_PART: Final = re.compile(r"(\d{1,6}(?:\.\d{1,9})?) ?(ms|[dhms])", re.IGNORECASE)
_PART_MS: Final = {"ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7}
_CLOCK: Final = re.compile(
    r"\b(?:resets?|try again|retry|available(?: again)?|reset)(?: at| on|:)? "
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]{0,6} (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?,? (?:at )?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>[ap]m)?(?: ?\(?(?P<utc>UTC|GMT)\)?)?",
    re.IGNORECASE,
)


def until_of(text: str, now: Now) -> int | None:
    """Return the end of a limit that a sentence names, in milliseconds of the epoch; None without one."""
    if found := _STAMP.search(text):
        return believed(int(found[1]), now)
    if found := _DURATION.search(text):
        parts = _PART.findall(found[1])
        return _near(now.ms + round(sum(float(size) * _PART_MS[unit.lower()] for size, unit in parts)), now)
    for found in _CLOCK.finditer(text):
        if found["half"] or found["minute"]:
            return _at(found, now)
    return None


def believed(stamp: Any, now: Now) -> int | None:
    """Return a time of the epoch, in seconds or milliseconds, as milliseconds; None if no limit can end then."""
    number = integer(stamp)
    if number is None:
        return None
    return _near(number if number > _SECONDS_OF_EPOCH else number * 1000, now)


def _near(ms: int, now: Now) -> int | None:
    return ms if now.ms - EARLIEST_MS <= ms <= now.ms + LONGEST_MS else None


def _at(found: re.Match[str], now: Now) -> int | None:
    """Return the time of a match, the next one from now on if its date or year is missing."""
    try:
        zone = timezone(timedelta(minutes=0 if found["utc"] else now.utc_offset_min))
        here = datetime.fromtimestamp(now.ms / 1000, zone)
        hour = int(found["hour"])
        if found["half"]:
            hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
        at = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            at = at.replace(year=int(found["year"] or here.year), month=month, day=int(found["day"]))
            if not found["year"] and at < here - timedelta(days=1):
                at = at.replace(year=here.year + 1)
        elif at <= here - JUST_OVER:
            at += timedelta(days=1)
        return _near(round(at.timestamp() * 1000), now)
    except (ValueError, OverflowError, OSError):
        return None
