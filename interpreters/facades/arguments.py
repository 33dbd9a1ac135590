"""Checks of arguments that all facades share: texts, words, whole numbers, truth values, functions."""

from enum import Enum
from typing import Final, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

TEXT_CHARACTERS: Final = 10_000
"""The most characters of a reason or a name, where there is a limit."""


def string(name: str, value: object, *, empty: bool = True) -> str:
    """Return any text as a plain ``str``, or raise ``TypeError`` or ``ValueError``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not empty and not value:
        raise ValueError(f"{name} must not be empty")
    return str.__str__(value)


def text(name: str, value: object, *, empty: bool = True) -> str:
    """Return a text that a log can hold, or raise ``TypeError`` or ``ValueError``."""
    plain = string(name, value, empty=empty)
    if len(plain) > TEXT_CHARACTERS:
        raise ValueError(f"{name} must have at most {TEXT_CHARACTERS} characters, not {len(plain)}")
    if any("\ud800" <= character <= "\udfff" for character in plain):
        raise ValueError(f"{name} has half a surrogate pair, which is no character")
    return plain


def whole(name: str, value: object, within: range) -> int:
    """Return a whole number in a range, or raise ``TypeError`` or ``ValueError``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value not in within:
        raise ValueError(f"{name} must be between {within[0]} and {within[-1]}")
    return value


def yes_or_no(name: str, value: object) -> bool:
    """Return a truth value, or raise ``TypeError``."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return value


def instance(kind: type[T], value: object) -> T:
    """Return the value if it is an instance of ``kind``, or raise ``TypeError``."""
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, not {type(value).__name__}")
    return value


def function(name: str, value: T) -> T:
    """Return the value if it is callable, or raise ``TypeError``."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, not {type(value).__name__}")
    return value


def one_of(name: str, kind: type[E], value: object) -> E:
    """Return the member of an enumeration that equals a value, or raise ``ValueError`` with a list of all members."""
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(str(each.value) for each in kind)
        raise ValueError(f"{name} must be one of {known}, not {value!r}") from error
