"""Checks of configured numbers: a value that cannot work is refused, by the name of its field."""

from collections.abc import Iterable

import msgspec


def at_least(least: int, limits: msgspec.Struct, *fields: str) -> None:
    """Raise ``ValueError`` for the first of these fields that is less than ``least``; None means no limit."""
    for field in fields:
        value = getattr(limits, field)
        if value is not None and value < least:
            message = f"{field} must be at least {least}, not {value}"
            raise ValueError(message)


def between(least: float, most: float, limits: msgspec.Struct, field: str) -> None:
    """Raise ``ValueError`` if this field is outside of a range or not a number."""
    value = getattr(limits, field)
    if not least <= value <= most:
        message = f"{field} must be between {least} and {most}, not {value}"
        raise ValueError(message)


def one_of(words: Iterable[str], limits: msgspec.Struct, field: str) -> None:
    """Raise ``ValueError`` unless this field is one of these words."""
    allowed, value = tuple(words), getattr(limits, field)
    if value not in allowed:
        message = f"{field} must be one of {', '.join(allowed)}, not {value!r}"
        raise ValueError(message)
