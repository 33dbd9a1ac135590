"""What a service asks of the world: that somebody waits for what triggers it, and says when it comes."""

import msgspec

from lifefold.effects.base import Activity


class Every(msgspec.Struct, frozen=True, tag=True):
    """Time and again: ``every_ms`` after it was due last, and so on from when it was first waited for."""

    every_ms: int


Source = Every
"""What a trigger is."""


class AwaitTrigger(Activity, frozen=True):
    """Wait for ``source``, and say each time that it has come, and that alone: whether anything is run is not for you.

    What was due, or has happened, while nobody waited is said once, however often that was.
    """

    source: Source
