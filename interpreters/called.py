"""The name of a value for an error message about its type: ``a Record class``, ``an int``."""

from enum import EnumMeta
from inspect import isclass
from typing import Any, Final

from lifefold.core.kernel import Event, Machine, Record, State, System
from lifefold.effects import Activity, Effect

BASES: Final = (Machine, System, Record, Event, State, Effect, Activity)
"""The usual base classes of a user's class."""


def called(given: Any) -> str:
    """Return the name of a value with its article; a class by its base."""
    if given is None:
        return "None"
    if not isclass(given):
        return _with_article(type(given).__name__)
    bases = (each.__name__ for each in BASES if issubclass(given, each))
    return _with_article(f"{next(bases, 'Enum' if isinstance(given, EnumMeta) else '')} class".strip())


def unaccepted(given: Any, accepted: str) -> TypeError:
    """Return the error with the given and the accepted type."""
    what = f"{given.__name__} is {called(given)}" if isclass(given) else f"{called(given)} is given"
    return TypeError(f"{what}; accepted: {accepted}")


def must_be(given: Any, kinds: type | tuple[type, ...], accepted: str) -> None:
    """Raise that error unless a value is of one of these kinds."""
    if not isinstance(given, kinds):
        raise unaccepted(given, accepted)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
