"""An oven as its first version had it: ``python oven_1.py LOG`` begins a log, and leaves it unfinished."""

import sys
from pathlib import Path
from typing import Never

import anyio

from lifefold import (
    Activity,
    Effect,
    Engine,
    Envelope,
    Event,
    Interpreter,
    Machine,
    Record,
    SqliteStore,
    State,
    Step,
    after,
    alone,
    does,
    replace,
    row,
)
from lifefold.interpreters.engine import ActivityContext, EffectContext


class Heat(State):
    """The states of the oven."""

    COLD = "Cold"
    WARM = "Warm"
    DONE = "Done"


class Lit(Event, frozen=True):
    """The oven was lit for some minutes."""

    minutes: int = 0


class Fed(Event, frozen=True):
    """Something was put in."""

    what: str = "bread"


class Poked(Event, frozen=True):
    """The fire was poked."""


class Cooled(Event, frozen=True):
    """The oven is cold."""


class Burn(Activity, frozen=True):
    """Burn wood."""

    logs: int = 1


class Ring(Effect, frozen=True):
    """Ring the bell."""


class Oven(Record, frozen=True):
    """The oven."""

    state: Heat = Heat.COLD
    minutes: int = 0


def light(oven: Oven, event: Lit) -> Step[Oven, Ring]:
    """Count the minutes, and ring."""
    return Step(replace(oven, minutes=oven.minutes + event.minutes), (Ring(),))


def poke(oven: Oven, _event: Poked) -> Step[Oven, Never]:
    """Change nothing."""
    return Step(oven)


def burn(_oven: Oven) -> Burn:
    """Return the fire."""
    return Burn()


machine = Machine(
    "oven",
    Oven(),
    rows=(
        row(Heat.COLD, Lit, Heat.WARM, light),
        row(Heat.WARM, Poked, Heat.WARM, poke),
        row(Heat.WARM, Cooled, Heat.COLD),
        row(Heat.COLD, Fed, Heat.DONE),
    ),
    final={Heat.DONE},
    during={Heat.WARM: (does(burn), after(3_600_000, Cooled))},
    postpone={Heat.WARM: Fed},
)
system, opening = alone(machine)


async def perform(_ring: Ring, _context: EffectContext) -> None:
    """Ring no bell."""


async def attend(_burn: Burn, _context: ActivityContext) -> None:
    """Burn until the engine ends it."""
    await anyio.sleep_forever()


async def begin(log: Path) -> None:
    """Write a log of an oven that burns, with an event that waits for its end."""
    with SqliteStore.create(log, {}) as store:
        engine = Engine(system, store, Interpreter({Ring: perform}, {Burn: attend}))
        engine.offer("oven", opening["oven"])
        for event in (Lit(5), Poked(), Fed("bread")):
            engine.offer("oven", Envelope("oven", event, 0))
        await engine.run(until=lambda _engine: True)


if __name__ == "__main__":
    anyio.run(begin, Path(sys.argv[1]))
