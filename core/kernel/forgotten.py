"""What a log has and the present program does not know any more: events, effects, activities and states of old rules.

Each keeps its name and its fields, so that a log can be folded, shown and written again.
"""

from typing import TypeVar

import msgspec

from lifefold.core.kernel.record import Event
from lifefold.effects import Activity, Effect


class ForgottenEvent(Event, frozen=True):
    """An event of a log that no machine of the present program knows: its name, and its fields as JSON."""

    name: str
    fields: str


class ForgottenEffect(Effect, frozen=True):
    """An effect of a log that no machine of the present program requests: its name, and its fields as JSON."""

    name: str
    fields: str


class ForgottenActivity(Activity, frozen=True):
    """An activity of a log that no machine of the present program has: its name, and its fields as JSON."""

    name: str
    fields: str


class ForgottenState(str):
    """The name of a state of a log that the machine has no more. It equals no state of the machine."""

    __slots__ = ()


F = TypeVar("F", ForgottenEvent, ForgottenEffect, ForgottenActivity)


def forgotten(kind: type[F], data: msgspec.Raw) -> F:
    """Return what is forgotten; once it was written again, it is read as it was."""
    name, fields = named(data)
    return msgspec.json.decode(data, type=kind) if name == kind.__name__ else kind(name, fields)


def named(data: msgspec.Raw) -> tuple[str, str]:
    """Return the name of a tagged struct, and all of its JSON. Raises ``msgspec.DecodeError``."""
    return _NAME.decode(data).type, bytes(data).decode()


class _Name(msgspec.Struct):
    type: str = ""


_NAME = msgspec.json.Decoder(_Name)
