"""The three kinds of data of a lifecycle: its states, its events, its record."""

from enum import StrEnum
from typing import Any, ClassVar, Self

import msgspec

replace = msgspec.structs.replace
"""``replace(record, field=value)``: the same record with other values of the named fields."""


class State(StrEnum):
    """Base of a lifecycle's states. The value is the spelling of the lifecycle's document.

    >>> from lifefold import State
    >>> class Door(State):
    ...     OPEN = "Open"
    ...     SHUT = "Shut"
    >>> print(Door.OPEN)
    Open
    """


class Event(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Something that happened, or a request. ``opaque`` has the meaning that it has for a ``Record``.

    >>> from lifefold import Event
    >>> class Opened(Event, frozen=True):
    ...     by: str = "a visitor"
    >>> Opened("ann")
    Opened(by='ann')
    """

    opaque: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """A few small values, enough to take every branch, for checks and simulations that make up events."""
        return (cls(),)

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """The examples for this record, with numbers that agree with it and numbers that differ from it.

        Only events that refer to a number of the record need their own. The default is ``examples``.
        """
        del record
        return cls.examples()

    @classmethod
    def label(cls) -> str:
        """The name with its fields, as tables print it: ``PromptReady(prompt)``."""
        fields = ", ".join(cls.__struct_fields__)
        return f"{cls.__name__}({fields})" if fields else cls.__name__


class Record(msgspec.Struct, frozen=True, gc=False):
    """Base of a lifecycle's record: its ``state`` and all other data that decide about the next transition.

    A record that needs the time declares ``at_ms: int = 0``. The kernel sets it to the event's time before any guard or
    action reads it. There is no other clock.

    Parts of a record do not affect its meaning, so a search can treat many records as one. ``identifiers`` names the
    numbers that only identify: they are incremented and compared for equality, and 0 means none. ``timestamps`` names
    the points in time, of which only the distances matter. ``opaque`` names texts and numbers that are only handed on:
    a rule reads of them only whether they are empty. Events, activities and structs within these can have ``opaque``,
    too.

    >>> from lifefold import Record, State, replace
    >>> class Door(State):
    ...     OPEN = "Open"
    ...     SHUT = "Shut"
    >>> class Lobby(Record, frozen=True):
    ...     state: Door = Door.SHUT
    ...     visitors: int = 0
    >>> print(replace(Lobby(), visitors=1).visitors)
    1
    """

    identifiers: ClassVar[tuple[str, ...]] = ()
    timestamps: ClassVar[tuple[str, ...]] = ()
    opaque: ClassVar[tuple[str, ...]] = ()

    state: Any

    def normal_form(self) -> Self:
        """Return the simplest record with the same meaning: without data that no rule will read again."""
        return self

    def pauses_ms(self) -> tuple[int, ...]:
        """Return possible times until the next event: a few durations, enough to take every branch."""
        return (0,)

    def horizon_ms(self) -> int:
        """Return the distance of two timestamps beyond which a longer one makes no difference; 0 if it always does."""
        return 0
