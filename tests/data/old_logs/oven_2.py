"""The oven as a later version has it: ``python oven_2.py LOG`` goes on with a log, also with one of the first version.

Events, an effect, an activity, a field and a state have other names. A field has another unit, one event was split, one
is gone. A field, a state and a rule are new.
"""

import sys
from pathlib import Path
from typing import Never

import anyio

from lifefold import (
    Activity,
    Effect,
    Engine,
    Event,
    Interpreter,
    Machine,
    Record,
    SqliteStore,
    State,
    Step,
    after,
    alone,
    always,
    does,
    removed,
    renamed,
    renamed_field,
    replace,
    row,
    upcast,
)
from lifefold.interpreters.engine import ActivityContext, EffectContext


class Heat(State):
    """The states of the oven; ``RESTING`` is new."""

    IDLE = "Idle"
    WARM = "Warm"
    RESTING = "Resting"
    DONE = "Done"


class Kindled(Event, frozen=True):
    """The oven was lit for some seconds."""

    seconds: int = 0
    by: str = "nobody"


class Bread(Event, frozen=True):
    """Bread was put in."""


class Cake(Event, frozen=True):
    """Cake was put in."""


class Out(Event, frozen=True):
    """The fire is out."""


class Rested(Event, frozen=True):
    """The oven has rested."""


class Fire(Activity, frozen=True):
    """Burn wood."""

    logs: int = 1


class Chime(Effect, frozen=True):
    """Ring the bell."""


class Oven(Record, frozen=True):
    """The oven; ``uses`` is new."""

    state: Heat = Heat.IDLE
    seconds: int = 0
    uses: int = 0


class FedBefore(Event, frozen=True, tag="Fed"):
    """Something was put in, as the first version has written it."""

    what: str


def in_seconds(minutes: int) -> int:
    """Return the seconds of some minutes."""
    return 60 * minutes


def fed(old: FedBefore) -> Bread | Cake:
    """Return which of both it was."""
    return Cake() if old.what == "cake" else Bread()


def kindle(oven: Oven, event: Kindled) -> Step[Oven, Chime]:
    """Count the seconds and the uses, and ring."""
    return Step(replace(oven, seconds=oven.seconds + event.seconds, uses=oven.uses + 1), (Chime(),))


def go_out(oven: Oven, _event: Out) -> Step[Oven, Never]:
    """Count no less than one use."""
    return Step(replace(oven, uses=max(1, oven.uses)))


def fire(_oven: Oven) -> Fire:
    """Return the fire."""
    return Fire()


machine = Machine(
    "oven",
    Oven(),
    rows=(
        row((Heat.IDLE, Heat.RESTING), Kindled, Heat.WARM, kindle),
        row(Heat.WARM, Out, Heat.RESTING, go_out),
        row(Heat.RESTING, Rested, Heat.IDLE),
        row(Heat.RESTING, Bread, Heat.DONE),
        row(Heat.RESTING, Cake, Heat.DONE),
    ),
    final={Heat.DONE},
    during={Heat.WARM: (does(fire), after(3_600_000, Out)), Heat.RESTING: after(60_000, Rested)},
    postpone={Heat.WARM: (Bread, Cake)},
    properties=(always("an oven is not used a negative number of times", lambda of: of.record.uses >= 0),),
    evolved=(
        renamed("Lit", Kindled),
        renamed_field("minutes", "seconds", by=in_seconds, of=Kindled),
        upcast(fed),
        removed("Poked"),
        renamed("Cooled", Out),
        renamed("Burn", Fire),
        renamed("Ring", Chime),
        renamed("Cold", Heat.IDLE),
        renamed_field("minutes", "seconds", by=in_seconds),
    ),
)
system, opening = alone(machine)


async def perform(_chime: Chime, _context: EffectContext) -> None:
    """Ring no bell."""


async def attend(_fire: Fire, _context: ActivityContext) -> None:
    """Burn until the engine ends it."""
    await anyio.sleep_forever()


async def go_on(log: Path) -> None:
    """Go on with a log until nothing is left to decide, and print what the oven is then."""
    with SqliteStore.open(log) as store:
        engine = Engine(system, store, Interpreter({Chime: perform}, {Fire: attend}))
        await engine.run(until=lambda _engine: True)
        sys.stdout.write(f"{engine.ledger.record('oven', 'oven')}\n")


if __name__ == "__main__":
    anyio.run(go_on, Path(sys.argv[1]))
