"""A lamp of a street: off, then on for good; tests give it more rows."""

from typing import Any

from lifefold.core.kernel import Event, Machine, Record, State, row


class Light(State):
    """A lamp's states."""

    OFF = "Off"
    ON = "On"


class Lamp(Record, frozen=True):
    """A lamp."""

    state: Light = Light.OFF


class Switched(Event, frozen=True):
    """The switch was pressed."""


def lamp(*more: Any, action: Any = None, **parts: Any) -> Machine[Lamp]:
    """Return a lamp that can be switched on, with these parts."""
    return Machine("lamp", Lamp(), rows=(row(Light.OFF, Switched, Light.ON, action), *more), final={Light.ON}, **parts)
