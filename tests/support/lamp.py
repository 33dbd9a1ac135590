"""A lamp at a crossing: a machine for the tests of how machines are written and checked."""

from typing import Any

import pytest

from lifefold.core.kernel import (
    ANY,
    Event,
    InvalidMachine,
    Machine,
    Pattern,
    Record,
    Row,
    State,
    Step,
    replace,
    row,
)
from lifefold.effects import Activity, Effect
from oven import Ring


class Light(State):
    RED = "Red"
    GREEN = "Green"
    DARK = "Dark"


class Other(State):
    RED = "Red"


class Turned(Event, frozen=True):
    """It turns."""

    by: str = ""


class Failed(Event, frozen=True):
    """It fails."""


class Shaken(Event, frozen=True):
    """The lamp is shaken."""


class Shine(Activity, frozen=True):
    """Give light."""


class Click(Effect, frozen=True):
    """Make a noise."""


class Lamp(Record, frozen=True):
    """A lamp at a crossing."""

    state: Light = Light.RED
    turns: int = 0


def shine(_lamp: Lamp) -> Shine:
    return Shine()


def never(_lamp: Lamp, _event: Event) -> bool:
    return False


def click(lamp: Lamp, _event: Event) -> Step[Lamp, Click | Ring]:
    return Step(replace(lamp, turns=lamp.turns + 1), (Click(),))


GO: Row[Any] = row(Light.RED, Turned, Light.GREEN)
HALT: Row[Any] = row(Light.GREEN, Turned, Light.RED)
BREAK: Row[Any] = row(ANY, Failed, Light.DARK)
RULES: tuple[Row[Any], ...] = (GO, HALT, BREAK)


def lamp(*rows: Row[Any], **parts: Any) -> Machine[Any]:
    """Build a lamp of these rows, or of the usual ones, with other parts."""
    usual: dict[str, Any] = {"final": {Light.DARK}}
    return Machine("lamp", Lamp(), rows=rows or RULES, **(usual | parts))


def is_sound(*rows: Row[Any], **parts: Any) -> bool:
    """Tell whether a lamp of these rows can be built."""
    return lamp(*rows, **parts).name == "lamp"


def what_is_wrong(*rows: Row[Any], **parts: Any) -> tuple[str, ...]:
    """Return the problems of a lamp that must not be built."""
    with pytest.raises(InvalidMachine) as caught:
        lamp(*rows, **parts)
    assert str(caught.value).startswith("machine 'lamp' is not well formed:\n- ")
    assert all(f"- {line}" in str(caught.value) for line in caught.value.problems)
    return caught.value.problems


LEFT: Pattern[Turned] = Pattern(Turned, "left", lambda e: e.by == "left")


class Dimmed(Event, frozen=True):
    """Less light."""


def dim(lamp: Lamp, _event: Dimmed) -> Step[Lamp, Click]:
    return Step(replace(lamp, turns=lamp.turns - 1), (Click(),))
