"""The stream of events: the new entries of a log, each with its position as its id, and changes of its runner.

A stream holds positions only. The lines are those of the journal, which all streams share, so a slow or a dead browser
costs no memory.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import anyio
import msgspec
from sse_starlette import ServerSentEvent

from lifefold.interpreters.web.followed_log import FollowedLog
from lifefold.interpreters.web.journal import Line

MOST_ENTRIES: Final = 200
"""The most entries in one event."""


class Entries(msgspec.Struct, frozen=True):
    """The event ``entries``: the transitions of new entries of a fleet, up to position ``seq``."""

    fleet: str
    seq: int
    lines: tuple[Line, ...]


class RunnerSeen(msgspec.Struct, frozen=True):
    """The event ``runner``: whether a runner is at work, and why the log cannot be read on, if so."""

    fleet: str
    runs: bool
    trouble: str


class Pulse:
    """Wakes everything that waits for news."""

    def __init__(self) -> None:
        """Begin without news."""
        self._event = anyio.Event()

    def beat(self) -> None:
        """Wake all that wait now."""
        self._event.set()
        self._event = anyio.Event()

    def next(self) -> anyio.Event:
        """Return what is set at the next beat. Take it before looking for news, so that none is missed."""
        return self._event


def parse(text: str, logs: Sequence[FollowedLog]) -> dict[str, int]:
    """Return the position of each log in an id: one number for one log, ``KEY:SEQ,KEY:SEQ`` for several.

    A log without a position begins with its newest entry. Raises ``ValueError``.
    """
    parts = (each.rpartition(":") for each in text.split(",")) if text else ()
    given = {key: number for key, _, number in parts}
    found: dict[str, int] = {}
    for log in logs:
        number = given.get("" if len(logs) == 1 else log.key)
        found[log.key] = log.now.seq if number is None else min(max(int(number), 0), log.now.seq)
    return found


def written(positions: Mapping[str, int]) -> str:
    """Return positions as an id."""
    if len(positions) == 1:
        return str(*positions.values())
    return ",".join(f"{key}:{seq}" for key, seq in positions.items())


async def events(
    logs: Sequence[FollowedLog], positions: dict[str, int], pulse: Pulse
) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of logs after positions, without end."""
    seen: dict[str, tuple[bool, str]] = {}
    while True:
        is_behind, beat = False, pulse.next()
        for log in logs:
            if seen.get(log.key) != (log.runs, log.trouble):
                seen[log.key] = (log.runs, log.trouble)
                yield _event("runner", RunnerSeen(log.key, log.runs, log.trouble), positions)
            after, newest = positions[log.key], log.now.seq
            if after < newest:
                until = min(newest, after + MOST_ENTRIES)
                positions[log.key] = until
                is_behind = is_behind or until < newest
                yield _event("entries", Entries(log.key, until, tuple(log.journal.between(after, until))), positions)
        if not is_behind:
            await beat.wait()


def _event(name: str, data: msgspec.Struct, positions: Mapping[str, int]) -> ServerSentEvent:
    return ServerSentEvent(msgspec.json.encode(data).decode(), event=name, id=written(positions))
