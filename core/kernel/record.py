"""The three kinds of data that a lifecycle is made of: its states, its events, its record."""

from enum import StrEnum
from typing import Any, Self

import msgspec

replace = msgspec.structs.replace
"""``replace(record, field=value)``: the same record but for the named fields."""


class State(StrEnum):
    """Base of a lifecycle's states. The value is the spelling of the document that defines the lifecycle."""


class Event(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Something that happened, or that somebody asks for."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """A few small values, enough to take every branch: what a world uses that has to make events up."""
        return (cls(),)

    @classmethod
    def label(cls) -> str:
        """The name with its fields, as tables print it: ``PromptReady(prompt)``."""
        fields = ", ".join(cls.__struct_fields__)
        return f"{cls.__name__}({fields})" if fields else cls.__name__


class Record(msgspec.Struct, frozen=True, gc=False):
    """Base of a lifecycle's record: its ``state`` and whatever else decides about the next transition.

    A record that needs the time declares ``at_ms: int = 0``; the kernel sets it to the event's time before any guard or
    action looks at it. There is no other clock.
    """

    state: Any
