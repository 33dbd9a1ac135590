"""A small lifecycle for the kernel's tests: an oven, with everything in it that a lifecycle may have.

- It bakes: an activity that ends by itself, and that can be ended early.
- It cools down: three timers, one for each policy after a crash.
- A visitor may knock: the event is postponed while the oven bakes.
- It may be scrapped.
"""

from typing import Final, Never

from lifefold.core.kernel import ANY, Event, Machine, Record, State, Step, after, does, replace, row
from lifefold.effects import Activity, Effect


class Place(State):
    """Where an oven can be in its life."""

    COLD = "Cold"
    BAKING = "Baking"
    COOLING = "Cooling"
    SCRAPPED = "Scrapped"


class Lit(Event, frozen=True):
    """The fire is lit."""

    degrees: int = 200


class Stirred(Event, frozen=True):
    """The bread was looked at."""


class Baked(Event, frozen=True):
    """The bread is done."""


class Doused(Event, frozen=True):
    """The fire is put out."""


class Knocked(Event, frozen=True):
    """A visitor knocks."""


class Warned(Event, frozen=True):
    """It is time to look whether it is still hot."""


class Swept(Event, frozen=True):
    """It is time to sweep."""


class Cooled(Event, frozen=True):
    """It is cold again."""


class Scrapped(Event, frozen=True):
    """The oven is scrapped."""


class Bake(Activity, frozen=True):
    """Keep the fire."""

    degrees: int


class Ring(Effect, frozen=True):
    """Announce the bread."""

    loaves: int


class Oven(Record, frozen=True):
    """An oven. ``looked_at_ms`` is the time of the last look."""

    state: Place = Place.COLD
    at_ms: int = 0
    degrees: int = 0
    loaves: int = 0
    visitors: int = 0
    looked_at_ms: int = 0
    sweep_ms: int = 300


def heat(oven: Oven, event: Lit) -> Step[Oven, Never]:
    """Set the temperature."""
    return Step(replace(oven, degrees=event.degrees))


def look(oven: Oven, _event: Stirred) -> Step[Oven, Never]:
    """Remember when."""
    return Step(replace(oven, looked_at_ms=oven.at_ms))


def ring(oven: Oven, _event: Baked) -> Step[Oven, Ring]:
    """Count the loaf and tell."""
    return Step(replace(oven, loaves=oven.loaves + 1), (Ring(oven.loaves + 1),))


def welcome(oven: Oven, _event: Knocked) -> Step[Oven, Never]:
    """Count the visitor."""
    return Step(replace(oven, visitors=oven.visitors + 1))


def is_hot(oven: Oven, _event: Knocked) -> bool:
    """No visitor may come in while it bakes, unless the oven is very hot."""
    return oven.degrees > 500


def bake(oven: Oven) -> Bake:
    """Return what goes on while it bakes."""
    return Bake(oven.degrees)


def sweeping(oven: Oven) -> int:
    """Return how long it takes until it must be swept, in milliseconds."""
    return oven.sweep_ms


machine: Final = Machine(
    "oven",
    Oven(),
    about="an oven",
    rows=(
        row(Place.COLD, Lit, Place.BAKING, heat),
        row(Place.BAKING, Stirred, Place.BAKING, look),
        row(Place.BAKING, Baked, Place.COOLING, ring),
        row(Place.BAKING, Doused, Place.COLD),
        row(Place.BAKING, Knocked, Place.COLD, welcome, when=is_hot),
        row(Place.COOLING, Warned, Place.COOLING),
        row(Place.COOLING, Swept, Place.COOLING),
        row(Place.COOLING, Cooled, Place.COLD),
        row((Place.COLD, Place.COOLING), Knocked, Place.COLD, welcome),
        row(ANY, Scrapped, Place.SCRAPPED),
    ),
    final={Place.SCRAPPED},
    during={
        Place.BAKING: does(bake, yields=Stirred, last=Baked),
        Place.COOLING: (
            after(500, Cooled),
            after(200, Warned, restore="remaining"),
            after(sweeping, Swept, restore="restart"),
        ),
    },
    postpone={Place.BAKING: Knocked},
)
