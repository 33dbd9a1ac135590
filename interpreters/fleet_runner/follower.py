"""The handler that follows the output of a running session, and reports the facts in it.

The output is read from its beginning, through the adapter with which the session began. A look costs two calls of
``stat`` while nothing is written. The looks of a session that writes are a second apart, of a silent one up to five
seconds. In one look a bounded part of the output is read and a few events are reported; the rest waits for the next
look.
"""

import time
from collections.abc import Callable
from typing import Final

import anyio
from anyio import to_thread

from lifefold.core.fleet.worker.output import Seen
from lifefold.effects import FollowOutput
from lifefold.interpreters.adapters import Now
from lifefold.interpreters.engine import ActivityContext, handles
from lifefold.interpreters.fleet_runner.facts_seen import FactsSeen
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.fleet_runner.session_facts import adapter_of_start, state_of_start
from lifefold.interpreters.fleet_runner.stall import LOOK_MS, session_of
from lifefold.interpreters.processes.growing_output import GrowingOutput

LONGEST_LOOK_MS: Final = 5 * LOOK_MS
"""The longest time between two looks at a session that writes nothing."""

LOOK_BYTES: Final = 4 << 20
"""The most output that is read in one look."""

PIECE_BYTES: Final = 1 << 18
"""The size of a piece that is read at once."""

MOST_EVENTS: Final = 4
"""After so many events of one look the rest of the output waits for the next look."""


class Follower:
    """Performs ``FollowOutput``."""

    def __init__(self, folder: FleetFolder, kind_of: Callable[[str], str], operator: Notices) -> None:
        """Take the folder of the sessions, a function that returns the kind of an agent, and the notices."""
        self._folder = folder
        self._kind_of = kind_of
        self._operator = operator

    @handles(FollowOutput)
    async def follow_output(self, _activity: FollowOutput, context: ActivityContext) -> None:
        """Report the facts of a session's output until cancelled; there is nothing to clean up."""
        if context.cleanup_only:
            return
        agent, attempt = session_of(context.origin)
        directory = self._folder.last_start(agent, attempt)
        adapter = adapter_of_start(directory, self._kind_of(agent))
        try:
            seen = FactsSeen(adapter, context.origin.entity.record, state_of_start(adapter, directory))
            await follow(GrowingOutput(directory), seen, context)
        except AdapterFailed as error:
            self._operator.tell(agent, f"the output of its session is not followed: {error}")
            await anyio.sleep_forever()


class AdapterFailed(Exception):
    """An adapter raised an error about a line of output."""


async def follow(output: GrowingOutput, seen: FactsSeen, context: ActivityContext) -> None:
    """Report the facts of a growing output until cancelled. Raises ``AdapterFailed``."""
    wait_ms, is_behind = LOOK_MS, False
    signs: tuple[int, ...] = ()
    while True:
        found, wait_ms = output.signs(), min(2 * wait_ms, LONGEST_LOOK_MS)
        if found != signs or is_behind:
            events, is_behind = await to_thread.run_sync(_look, output, seen)
            for event in events:
                await context.report(event)
            signs, wait_ms = found, LOOK_MS
        await anyio.sleep(wait_ms / 1_000)


def _look(output: GrowingOutput, seen: FactsSeen) -> tuple[tuple[Seen, ...], bool]:
    """Return the events of one look, and whether more of the output is left."""
    events: list[Seen] = []
    read_bytes = 0
    while read_bytes < LOOK_BYTES and len(events) < MOST_EVENTS:
        start, piece = output.read(seen.offset, PIECE_BYTES)
        if not piece:
            return (*events, *seen.snapshot()), False
        try:
            events += seen.take(start, piece, _now, MOST_EVENTS)
        except Exception as error:
            raise AdapterFailed(repr(error)) from error
        read_bytes += len(piece)
    return (*events, *seen.snapshot()), True


def _now() -> Now:
    return Now(time.time_ns() // 1_000_000, time.localtime().tm_gmtoff // 60)
