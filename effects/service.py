"""The activity of a service that waits for its trigger."""

import msgspec

from lifefold.effects.base import Activity


class Every(msgspec.Struct, frozen=True, tag=True):
    """Repeatedly, ``every_ms`` after the previous due time, counted from the first wait."""

    every_ms: int


class Cron(msgspec.Struct, frozen=True, tag=True):
    """At the times of a cron expression of five fields, in the clock of a time zone, such as ``Europe/Berlin``."""

    expression: str
    timezone: str = "UTC"


class Changed(msgspec.Struct, frozen=True, tag=True):
    """When a file changes, appears or disappears: the file of this path, one in this folder, or one of this glob.

    The path is relative to the folder of the service.
    """

    path: str


Source = Every | Cron | Changed
"""The kinds of triggers."""


class AwaitTrigger(Activity, frozen=True):
    """Wait for ``source``, and report each occurrence; the rules decide whether anything is run.

    Occurrences during a time without a watcher are reported as one.
    """

    source: Source
