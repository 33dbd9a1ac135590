"""Who performs what: a handler for every type of effect and of activity.

A handler of an *effect* is called once per committed transition that asks for it, and possibly again after a crash,
with the same ``Asked.identity``; it must make that harmless. A handler of an *activity* runs for as long as the state
holds: it reports what happens with ``activity.report``, returns when it is over, and is cancelled when the state is
left. When it has returned nothing of the activity may be left; until then nothing else begins in its slot. It is also
cancelled when the whole engine goes down; ``activity.ending`` tells the two apart.

After a crash the handler of an activity that goes on is called again, with ``activity.resumed`` set. If the end of the
activity was asked for before the crash, or so soon after it that the handler may not have found what was left, it is
called with ``activity.leftover`` set.

A system is served only by an interpreter that has a handler for everything the system can ask for.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self, TypeVar

import msgspec

from lifefold.core.kernel import Aggregate, Does, Entity, Event, System
from lifefold.effects import Activity, Begin, Effect
from lifefold.interpreters.missing import MissingHandlersError

E = TypeVar("E", bound=Effect)
A = TypeVar("A", bound=Activity)


class Occasion(msgspec.Struct, frozen=True, gc=False):
    """Where an effect comes from: entry ``version`` of the aggregate, place ``index`` in it.

    ``within`` is the aggregate as it was right after, ``ref`` the entity that asked.
    """

    within: Aggregate
    ref: str
    version: int
    index: int

    @property
    def identity(self) -> tuple[str, int, int]:
        """What makes this effect the same one when it is performed again."""
        return self.within.name, self.version, self.index

    @property
    def entity(self) -> Entity[Any]:
        """The entity that asked, as it was right after."""
        return self.within.entities[self.ref]


class Ongoing(ABC):
    """An activity as its handler sees it."""

    __slots__ = ("begin", "ending", "leftover", "occasion")

    def __init__(self, begin: Begin, occasion: Occasion, *, leftover: bool) -> None:
        """Take what began.

        ``occasion`` is where it comes from. ``leftover`` is whether all that is wanted is its end: end what a crash may
        have left, begin nothing, and return. ``ending`` is whether its end has been asked for: a handler that is
        cancelled while it has not may leave its work to whoever takes the activity up after the engine.
        """
        self.begin: Final = begin
        self.occasion: Final = occasion
        self.leftover: Final = leftover
        self.ending = leftover

    @property
    def generation(self) -> int:
        """The version of the transition that began it: unique among the activities of its entity."""
        return self.begin.generation

    @property
    def resumed(self) -> bool:
        """Whether something of it may be there already, from before a crash."""
        return self.begin.resumed

    @abstractmethod
    async def report(self, event: Event) -> bool:
        """Let the entity take an event of this activity. True once it is durably taken, False if it was refused."""


EffectHandler = Callable[[Any, Occasion], Awaitable[None]]
ActivityHandler = Callable[[Any, Ongoing], Awaitable[None]]


class Interpreter:
    """A set of handlers. Compose with ``over``: the left one's handlers go first."""

    def __init__(
        self,
        effects: Mapping[type[Effect], EffectHandler] | None = None,
        activities: Mapping[type[Activity], ActivityHandler] | None = None,
    ) -> None:
        """Take the handlers by the type they handle."""
        self.effects: Final = dict(effects or {})
        self.activities: Final = dict(activities or {})

    def over(self, other: "Interpreter") -> Self:
        """Return an interpreter that uses this one's handlers, and ``other``'s where this one has none."""
        return type(self)(other.effects | self.effects, other.activities | self.activities)

    def must_serve(self, system: System) -> None:
        """Raise ``MissingHandlersError`` unless there is a handler for everything that the system can ask for."""
        effects, activities = wanted(system)
        missing = sorted(t.__name__ for t in (effects - self.effects.keys()) | (activities - self.activities.keys()))
        if missing:
            message = (
                f"no handler for {', '.join(missing)}: the system {system.name!r} can ask for it; register one for each"
            )
            raise MissingHandlersError(message)


def wanted(system: System) -> tuple[set[type[Effect]], set[type[Activity]]]:
    """Return the types of effects and of activities that the system's machines can ask an interpreter for."""
    machines = [machine for aggregate in system.aggregates.values() for machine in aggregate.machines.values()]
    effects = {effect for machine in machines for row in machine.rows for effect in row.effects}
    activities = {
        span.during.activity
        for machine in machines
        for slot, span in machine.spans.items()
        if isinstance(span.during, Does) and slot not in machine.served
    }
    return effects, activities
