"""The effects that the kernel itself derives; no row of a table returns one, except for ``Tell``.

``Begin``, ``End``, ``StartTimer`` and ``CancelTimer`` come from the difference between two states, ``Tell`` from a rule
or a row. A *slot* is the place of an activity in its entity: it holds one activity at a time. The *generation* is the
version of the transition that began the activity; every report of the activity carries it.
"""

from typing import Any

from lifefold.effects.base import Activity, Effect


class Begin(Effect, frozen=True):
    """Begin ``activity``; with ``resumed``, adopt the one that survived a crash of the runner, or begin a new one."""

    slot: str
    activity: Activity
    generation: int = 0
    resumed: bool = False


class End(Effect, frozen=True):
    """End the activity of this slot and generation, and confirm with ``ActivityEnded`` once nothing of it is left."""

    idempotent = True

    slot: str
    generation: int = 0


class StartTimer(Effect, frozen=True):
    """Report ``TimerFired`` at ``deadline_ms`` (Unix epoch). A reducer without a clock knows only ``delay_ms``."""

    idempotent = True

    slot: str
    delay_ms: int
    generation: int = 0
    deadline_ms: int = 0


class CancelTimer(Effect, frozen=True):
    """Cancel the timer of this slot and generation. Needs no confirmation: a late firing changes nothing."""

    idempotent = True

    slot: str
    generation: int = 0


class Postpone(Effect, frozen=True):
    """Keep the event for the next state. The kernel handles it; an interpreter never gets it."""

    event: Any


class Tell(Effect, frozen=True):
    """A message to an entity of another aggregate: delivered at least once, in order per pair of aggregates.

    ``ordinal`` counts the messages from the sender to this receiver from 1; the receiver takes each number once.
    """

    idempotent = True

    aggregate: str
    entity: str
    event: Any
    ordinal: int = 0
