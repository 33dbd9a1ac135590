"""The three kinds of data that a lifecycle is made of: its states, its events, its record."""

from enum import StrEnum
from typing import Any, ClassVar, Self

import msgspec

replace = msgspec.structs.replace
"""``replace(record, field=value)``: the same record but for the named fields."""


class State(StrEnum):
    """Base of a lifecycle's states. The value is the spelling of the document that defines the lifecycle."""


class Event(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Something that happened, or that somebody asks for. ``opaque`` is the same as that of a ``Record``."""

    opaque: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """A few small values, enough to take every branch: what a world uses that has to make events up."""
        return (cls(),)

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """The examples that matter to this record: what an event must agree with, and what it may differ in.

        Only events that refer to a number of the record need their own; by default they are those for any record.
        """
        del record
        return cls.examples()

    @classmethod
    def label(cls) -> str:
        """The name with its fields, as tables print it: ``PromptReady(prompt)``."""
        fields = ", ".join(cls.__struct_fields__)
        return f"{cls.__name__}({fields})" if fields else cls.__name__


class Record(msgspec.Struct, frozen=True, gc=False):
    """Base of a lifecycle's record: its ``state`` and whatever else decides about the next transition.

    A record that needs the time declares ``at_ms: int = 0``; the kernel sets it to the event's time before any guard or
    action looks at it. There is no other clock.

    What a record means does not depend on all of what is in it, which is what lets a world look at all of its states:
    ``identifiers`` names numbers that only identify (they are counted on and compared for being equal; 0 is none), and
    ``timestamps`` those that are points in time, of which only the distances matter. ``opaque`` names texts and numbers
    that are handed on only: no rule looks at more of them than whether there is anything (see ``opaque`` of events and
    activities, too, and of any other struct that is part of these).
    """

    identifiers: ClassVar[tuple[str, ...]] = ()
    timestamps: ClassVar[tuple[str, ...]] = ()
    opaque: ClassVar[tuple[str, ...]] = ()

    state: Any

    def normal_form(self) -> Self:
        """Return the simplest record that means the same: without what no rule will look at any more."""
        return self

    def pauses_ms(self) -> tuple[int, ...]:
        """Return how long it may take until the next event: a few durations, enough to take every branch."""
        return (0,)

    def horizon_ms(self) -> int:
        """Return how far apart two moments may lie so that a longer time makes no difference: 0 if it always does."""
        return 0
