"""What a service asks of the world: that somebody waits for what triggers it, and says when it comes."""

import msgspec

from lifefold.effects.base import Activity


class Every(msgspec.Struct, frozen=True, tag=True):
    """Time and again: ``every_ms`` after it was due last, and so on from when it was first waited for."""

    every_ms: int


class Cron(msgspec.Struct, frozen=True, tag=True):
    """At the times of a cron expression of five fields, by the clock of a time zone (a name as ``Europe/Berlin``)."""

    expression: str
    timezone: str = "UTC"


class Changed(msgspec.Struct, frozen=True, tag=True):
    """When a file changes, comes or goes: the one of this path, one in the folder of this path, or one of this glob.

    The path is relative to the folder that the service runs in.
    """

    path: str


Source = Every | Cron | Changed
"""What a trigger is."""


class AwaitTrigger(Activity, frozen=True):
    """Wait for ``source``, and say each time that it has come, and that alone: whether anything is run is not for you.

    What was due, or has happened, while nobody waited is said once, however often that was.
    """

    source: Source
