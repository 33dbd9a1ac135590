"""A trigger of a service: a recurring event that is watched while the service is up.

The watching activity decides nothing. It reports ``Triggered``, and the rules of the service decide about a run. The
record has the time when the trigger was last due, so that it outlives a runner. A trigger that was due several times
without a watcher fires *once* (``last_due_ms``). A trigger that does not depend on time has a *mark*: what the last
look found. The activity compares the mark with the present, so that it also finds changes that no watcher saw.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    Entity,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always_step,
    anywhere,
    does,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on, goes_on, leads_where
from lifefold.effects import AwaitTrigger, Every
from lifefold.effects.service import Source

REF: Final = "trigger"
"""A service has several, ``trigger:1`` and so on, in the order of the fleet file."""


class State(AnyLifecycleState):
    """The two states of a trigger."""

    OFF = "Off"
    WATCHING = "Watching"


class Armed(Event, frozen=True):
    """The service is up: watch the trigger."""


class Disarmed(Event, frozen=True):
    """The service is down or goes down: watch no longer."""


class Triggered(Event, frozen=True):
    """The trigger has fired. It was due at ``at_ms`` (Unix time in milliseconds); ``what`` is the text for its run."""

    opaque: ClassVar[tuple[str, ...]] = ("at_ms", "what", "mark")

    at_ms: int = 1
    what: str = "it is time"
    mark: str = "new"


class Noticed(Event, frozen=True):
    """The first look has found ``mark``; it is no change."""

    opaque: ClassVar[tuple[str, ...]] = ("mark",)

    mark: str = "old"


class Trigger(Record, frozen=True):
    """A trigger of a service. ``last_ms`` is the time it was last due, 0 for never; ``mark`` is what was found then."""

    opaque: ClassVar[tuple[str, ...]] = ("last_ms", "mark")

    state: State = State.OFF
    source: Source = Every(60_000)
    last_ms: int = 0
    mark: str = ""


def of_service(entities: Mapping[str, Entity[Any]]) -> tuple[Entity[Trigger], ...]:
    """Return the triggers among the entities of a service, in the order of the fleet file."""
    numbered = {int(ref.partition(":")[2]): each for ref, each in entities.items() if ref.startswith(f"{REF}:")}
    return tuple(numbered[number] for number in sorted(numbered))


def notice(t: Trigger, e: Noticed) -> Step[Trigger, Never]:
    """Record what was found."""
    return Step(replace(t, mark=e.mark))


def remember(t: Trigger, e: Triggered) -> Step[Trigger, Never]:
    """Record the due time, and what was found."""
    return Step(replace(t, last_ms=e.at_ms, mark=e.mark))


def wait_for(t: Trigger) -> AwaitTrigger:
    """Return the activity of a watched trigger."""
    return AwaitTrigger(t.source)


def next_due_ms(every_ms: int, last_ms: int) -> int:
    """Return the next due time of an interval that was due, or began, at ``last_ms``."""
    return last_ms + every_ms


def last_due_ms(every_ms: int, last_ms: int, now_ms: int) -> int:
    """Return the last due time of an interval between ``last_ms`` and now; ``last_ms`` if there was none.

    The interval begins now if ``last_ms`` is in the future, because the clock was ahead.
    """
    begun_ms = min(last_ms, now_ms)
    return begun_ms + (now_ms - begun_ms) // every_ms * every_ms


def remembers_when(step: Transition) -> bool:
    """Only a look at the trigger changes its mark, and only its firing changes the due time."""
    was: Trigger = step.was
    now: Trigger = step.after.record
    match step.event:
        case Triggered(at_ms=at_ms, mark=mark):
            return (now.last_ms, now.mark) == (at_ms, mark)
        case Noticed(mark=mark):
            return (now.last_ms, now.mark) == (was.last_ms, mark)
        case _:
            return (now.last_ms, now.mark) == (was.last_ms, was.mark)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a trigger remembers when it was due last", remembers_when, on=Event),
    accepts("a watched trigger can fire", {State.WATCHING: (Triggered, Noticed)}),
    leads_where(
        "a trigger is watched while the service is up",
        {Armed: (State.WATCHING,), Triggered: (State.WATCHING,), Noticed: (State.WATCHING,), Disarmed: (State.OFF,)},
    ),
    goes_on("AwaitTrigger", State.WATCHING),
    *exits_on(State.OFF, Armed),
    *exits_on(State.WATCHING, Disarmed),
)

machine: Machine[Any] = Machine(
    REF,
    Trigger(),
    about="a recurring trigger of a service: off, or watched",
    rows=(
        row(State.OFF, Armed, State.WATCHING),
        row(State.WATCHING, Triggered, State.WATCHING, remember),
        row(State.WATCHING, Noticed, State.WATCHING, notice),
        row(State.WATCHING, Disarmed, State.OFF),
    ),
    during={State.WATCHING: does(wait_for, yields=(Triggered, Noticed))},
    properties=PROPERTIES,
    rests=anywhere,
)
