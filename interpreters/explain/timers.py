"""The next timer of an entity, for displays."""

from typing import Any

import msgspec

from lifefold.core.kernel import Entity


class Timer(msgspec.Struct, frozen=True):
    """The next event of a timer, and its time (Unix time in milliseconds)."""

    event: str
    deadline_ms: int


def next_timer(entity: Entity[Any], *more: Timer) -> Timer | None:
    """Return the first of an entity's timers, and of more."""
    timers = [Timer(part.slot, part.deadline_ms) for part in entity.running if part.deadline_ms]
    return min((*timers, *more), key=lambda timer: timer.deadline_ms, default=None)
