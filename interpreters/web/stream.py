"""The stream of events: the new entries of a log, each with its position as its id, and changes of its runner.

A stream holds positions only. The lines are those of the journal, which all streams share, so a slow or a dead browser
costs no memory.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

import anyio
import msgspec
from sse_starlette import ServerSentEvent

from lifefold.interpreters.web.agent_page import UnknownName
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
    """The event ``runner``: whether a runner is at work, and why the log cannot be read on, if so.

    It also comes when more of the past of a log is known, and when a host changes.
    """

    fleet: str
    runs: bool
    trouble: str


class FleetGone(msgspec.Struct, frozen=True):
    """The event ``gone``: a fleet of this machine is no longer shown."""

    fleet: str


class Pulse:
    """Wakes everything that waits for news."""

    def __init__(self) -> None:
        """Begin without news."""
        self._event = anyio.Event()
        self.is_over = False
        """Whether the desk ends, and all streams with it."""

    def end(self) -> None:
        """End all streams."""
        self.is_over = True
        self.beat()

    def beat(self) -> None:
        """Wake all that wait now."""
        self._event.set()
        self._event = anyio.Event()

    def next(self) -> anyio.Event:
        """Return what is set at the next beat. Take it before looking for news, so that none is missed."""
        return self._event


def parse(text: str, logs: Sequence[FollowedLog], *, is_one: bool) -> dict[str, int]:
    """Return the position of each log in an id: a number in the stream of one log, else ``KEY:SEQ,KEY:SEQ``.

    A log without a position begins with its newest entry. Raises ``ValueError``.
    """
    parts = (each.rpartition(":") for each in text.split(",")) if text else ()
    given = {unquote(key): int(number) for key, _, number in parts}
    if not is_one and "" in given:
        message = "a position in the stream of all fleets names its fleet"
        raise ValueError(message)
    found: dict[str, int] = {}
    for log in logs:
        number = given.get("" if is_one else log.key)
        found[log.key] = log.now.seq if number is None else min(max(number, 0), log.now.seq)
    return found


def written(positions: Mapping[str, int], *, is_one: bool) -> str:
    """Return positions as an id."""
    if is_one:
        return str(*positions.values())
    return ",".join(f"{quote(key, safe='')}:{seq}" for key, seq in positions.items())


async def events(
    logs: Callable[[], Sequence[FollowedLog]], positions: dict[str, int], pulse: Pulse, *, is_one: bool
) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of logs after positions, until a log that was asked for by its key is gone.

    A log that comes later begins with its newest entry, and with the event of its runner.
    """
    seen: dict[str, tuple[object, ...]] = {}
    while not pulse.is_over:
        is_behind, beat = False, pulse.next()
        try:
            shown = logs()
        except UnknownName:
            return
        for log in shown:
            positions.setdefault(log.key, log.now.seq)
            known = (log.runs, log.trouble, log.told_from, log.of_hosts)
            if seen.get(log.key) != known:
                seen[log.key] = known
                yield _event("runner", RunnerSeen(log.key, log.runs, log.trouble), written(positions, is_one=is_one))
            after = positions[log.key]
            newest = log.now.seq if after >= log.told_from else after  # the journal has no lines of those entries yet
            if after < newest:
                until = min(newest, after + MOST_ENTRIES)
                positions[log.key] = until
                is_behind = is_behind or until < newest
                lines = tuple(log.journal.between(after, until))
                yield _event("entries", Entries(log.key, until, lines), written(positions, is_one=is_one))
        for key in seen.keys() - {log.key for log in shown}:
            del seen[key], positions[key]
            yield _event("gone", FleetGone(key), written(positions, is_one=is_one))
        if not is_behind:
            await beat.wait()


def _event(name: str, data: msgspec.Struct, number: str) -> ServerSentEvent:
    return ServerSentEvent(msgspec.json.encode(data).decode(), event=name, id=number)
