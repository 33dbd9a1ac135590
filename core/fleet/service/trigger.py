"""What triggers a service: something that is waited for while the service is up, and happens time and again.

Whoever waits decides nothing. It says ``Triggered``, and the rules of the service say what follows: whether something
is run now, later, or not at all. When a trigger was due last is remembered here, so that it does not depend on the life
of a runner: what was due while nobody waited, because there was no runner or the service was down, has come *once*,
however often it was due (``last_due_ms``). For what is no matter of time there is a *mark*: what was found when it was
last looked at. Whoever looks compares, so that what has changed while nobody did is found as well.
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
    """The service is up: wait for the trigger."""


class Disarmed(Event, frozen=True):
    """The service is down, or goes down: wait no more."""


class Triggered(Event, frozen=True):
    """It has come. It was due at ``at_ms`` (Unix time in milliseconds); ``what`` says so to whoever runs for it."""

    opaque: ClassVar[tuple[str, ...]] = ("at_ms", "what", "mark")

    at_ms: int = 1
    what: str = "it is time"
    mark: str = "new"


class Noticed(Event, frozen=True):
    """It was looked at for the first time, and this is there: nothing has come by that."""

    opaque: ClassVar[tuple[str, ...]] = ("mark",)

    mark: str = "old"


class Trigger(Record, frozen=True):
    """A trigger of a service, and when it was due last: 0 if it never was; ``mark`` is what was found then."""

    opaque: ClassVar[tuple[str, ...]] = ("last_ms", "mark")

    state: State = State.OFF
    source: Source = Every(60_000)
    last_ms: int = 0
    mark: str = ""


def of_service(entities: Mapping[str, Entity[Any]]) -> tuple[Entity[Trigger], ...]:
    """Return the triggers among the parts of a service, in the order of the fleet file."""
    numbered = {int(ref.partition(":")[2]): each for ref, each in entities.items() if ref.startswith(f"{REF}:")}
    return tuple(numbered[number] for number in sorted(numbered))


def notice(t: Trigger, e: Noticed) -> Step[Trigger, Never]:
    """Remember what is there."""
    return Step(replace(t, mark=e.mark))


def remember(t: Trigger, e: Triggered) -> Step[Trigger, Never]:
    """Remember when it was due, and what was found."""
    return Step(replace(t, last_ms=e.at_ms, mark=e.mark))


def wait_for(t: Trigger) -> AwaitTrigger:
    """Return what goes on while the service is up."""
    return AwaitTrigger(t.source)


def next_due_ms(every_ms: int, last_ms: int) -> int:
    """Return when an interval is due that was due, or has begun, at ``last_ms``."""
    return last_ms + every_ms


def last_due_ms(every_ms: int, last_ms: int, now_ms: int) -> int:
    """Return when an interval was due last, of the times between ``last_ms`` and now; ``last_ms`` if it was not.

    It begins anew now if ``last_ms`` is still to come: the clock of the time was ahead.
    """
    begun_ms = min(last_ms, now_ms)
    return begun_ms + (now_ms - begun_ms) // every_ms * every_ms


def remembers_when(step: Transition) -> bool:
    """Say: a trigger that has come is remembered with its time and what was found, and nothing else changes that."""
    if step.before is None:
        return True
    was: Trigger = step.before.record
    now: Trigger = step.after.record
    match step.event:
        case Triggered(at_ms=at_ms, mark=mark):
            return (now.last_ms, now.mark) == (at_ms, mark)
        case Noticed(mark=mark):
            return (now.last_ms, now.mark) == (was.last_ms, mark)
        case _:
            return (now.last_ms, now.mark) == (was.last_ms, was.mark)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("it is remembered when a trigger was due last", remembers_when),
    accepts("whatever comes while it is waited for is heard", {State.WATCHING: (Triggered, Noticed)}),
    leads_where(
        "a trigger is waited for as long as the service is up",
        {
            Armed: (State.WATCHING,),
            Triggered: (State.WATCHING,),
            Noticed: (State.WATCHING,),
            Disarmed: (State.OFF,),
        },
    ),
    goes_on("AwaitTrigger", State.WATCHING),
    *exits_on(State.OFF, Armed),
    *exits_on(State.WATCHING, Disarmed),
)

machine: Machine[Any] = Machine(
    REF,
    Trigger(),
    about="something that triggers a service time and again: waited for, or not",
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
