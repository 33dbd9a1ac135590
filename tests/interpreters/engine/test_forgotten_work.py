"""A log that owes work without a type of today: a runner refuses to start, and nothing is lost."""

from collections.abc import Iterator
from typing import Any, Never

import pytest

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Event,
    Machine,
    Step,
    System,
    Transition,
    does,
    row,
    rule,
)
from lifefold.effects import Activity, Effect, Tell
from lifefold.interpreters.engine import (
    ActivityContext,
    EffectContext,
    Engine,
    Interpreter,
    Ledger,
    LogMismatchError,
    LogWriter,
    WallClock,
)
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.store import MemoryStore, Shelf
from street_lamp import Lamp, Light, Switched, lamp

pytestmark = pytest.mark.anyio


class Rung(Event, frozen=True):
    """The bell has rung."""


class Burnt(Event, frozen=True):
    """The lamp is at its end."""


class Ring(Effect, frozen=True):
    """Ring a bell."""


class Burn(Activity, frozen=True):
    """Give light."""


def ring(lamp: Lamp, _event: Switched) -> Step[Lamp, Ring]:
    """Ring."""
    return Step(lamp, (Ring(),))


def stay(lamp: Lamp, _event: Rung) -> Step[Lamp, Never]:
    """Change nothing."""
    return Step(lamp)


def burn(_lamp: Lamp) -> Burn:
    """Return the work of a lamp that is on."""
    return Burn()


PLAIN = lamp()


@rule(on=PLAIN)
def tell_hall(_room: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Tell the hall of every lamp that is on."""
    if transition.entered is Light.ON:
        yield Tell("hall", "lamp", Rung())


def street(of: Machine[Lamp], *rules: Any, hall: Machine[Lamp] = PLAIN) -> System:
    """Return a system of a room and a hall."""
    return System("street", AggregateType("room", machines=(of,), rules=rules), AggregateType("hall", machines=(hall,)))


async def ring_bell(_effect: Ring, _context: EffectContext) -> None:
    """Do nothing: no run comes so far."""


async def give_light(_activity: Burn, _context: ActivityContext) -> None:
    """Do nothing: no run comes so far."""


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (street(lamp(action=ring)), "the effect Ring"),
        (
            street(
                lamp(
                    row(Light.ON, Burnt, Light.ON),
                    during={Light.ON: does(burn, yields=(Burnt,))},
                )
            ),
            "the activity Burn of room, lamp",
        ),
        (street(PLAIN, tell_hall, hall=lamp(row(Light.OFF, Rung, Light.OFF, stay))), "the message Rung to hall"),
    ],
    ids=["effect", "activity", "message"],
)
async def test_no_runner_starts_on_a_log_that_owes_what_it_has_forgotten(before: System, said: str) -> None:
    """The message names it; the version that wrote the log starts."""
    shelf = Shelf()
    writer = LogWriter(Ledger(before), MemoryStore(shelf), WallClock())
    await writer.commit([Input("room", Envelope("lamp", event, 1)) for event in (Created(Lamp()), Switched())])
    with pytest.raises(LogMismatchError, match=rf"nothing was changed:\n  {said}"):
        await Engine(street(PLAIN), MemoryStore(shelf), Interpreter()).load()
    known = Interpreter({Ring: ring_bell}, {Burn: give_light})
    await Engine(before, MemoryStore(shelf), known).load()
