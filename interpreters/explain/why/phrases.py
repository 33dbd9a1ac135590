"""Phrases for sentences: durations, enumerations, reasons in one line."""

from collections.abc import Sequence
from typing import Final

from lifefold.interpreters.explain.plain_reasons import in_plain_words

REASON_CHARACTERS: Final = 200
"""The longest reason within a sentence; the record has all of it."""

MOST_NAMED: Final = 6
"""The most names in a sentence; the rest is counted."""

_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def duration(duration_ms: int) -> str:
    """Return a duration in words: ``12 s``, ``3 min``, ``2 h 10 min``, ``4 days``."""
    duration_ms = max(0, duration_ms)
    if duration_ms < _MIN:
        return f"{duration_ms // _S} s"
    if duration_ms < _H:
        return f"{duration_ms // _MIN} min"
    if duration_ms < 2 * _DAY:
        minutes = duration_ms % _H // _MIN
        return f"{duration_ms // _H} h{f' {minutes} min' if minutes else ''}"
    return f"{duration_ms // _DAY} days"


def in_time(left_ms: int) -> str:
    """Return ``in 12 s``. An overdue event waits for a runner, since a running one delays nothing."""
    return f"in {duration(left_ms)}" if left_ms > 0 else "as soon as a runner is at work"


def count(number: int, thing: str) -> str:
    """Return ``1 retry``, ``2 retries``."""
    if number == 1:
        return f"1 {thing}"
    return f"{number} {thing[:-1]}ies" if thing.endswith("y") else f"{number} {thing}s"


def ordinal(number: int) -> str:
    """Return ``1st``, ``2nd``, ``11th``."""
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def enumerated(things: Sequence[str], word: str = "and") -> str:
    """Return ``T1``, ``T1 and T2``, ``T1, T2 and T3``; some of very many, with the number of the others."""
    if len(things) > MOST_NAMED:
        things = (*things[: MOST_NAMED - 1], f"{len(things) - MOST_NAMED + 1} more")
    return f" {word} ".join(filter(None, (", ".join(things[:-1]), *things[-1:])))


def brief(reason: str) -> str:
    """Return a reason in one line, without its full stop, shortened to ``REASON_CHARACTERS``."""
    line = " ".join(in_plain_words(reason).split())
    return (line if len(line) <= REASON_CHARACTERS else f"{line[: REASON_CHARACTERS - 1]}…").rstrip(".")


def because(reason: str) -> str:
    """Return a colon and the reason, to follow a statement; nothing without a reason."""
    return f": {brief(reason)}" if brief(reason) else ""


def in_brackets(reason: str) -> str:
    """Return a space and the reason in brackets; nothing without a reason."""
    return f" ({brief(reason)})" if brief(reason) else ""
