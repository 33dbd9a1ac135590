"""What a host says of itself to operators, five times within the detection time.

A host is silent while the server of Temporal or the log does not answer. Its sessions have their own heartbeats and
fences; this one is for people only.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator
from typing import Final

import anyio
import msgspec

from lifefold.interpreters.fleet_cluster.host_name import SharedName, must_be_free
from lifefold.interpreters.fleet_cluster.plan_follower import PlanFollower
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.fleet_runner.hosts import HOST, HostSaid, News, Pool, SessionThere
from lifefold.interpreters.processes import SessionError, last_progress_ms
from lifefold.interpreters.store import LogStore, StoreError
from lifefold.interpreters.temporal import Cluster, Host

NEWS_KEPT: Final = 20
"""The number of notices that a host repeats. A reader that is away for longer than these misses the older ones."""


class Presence:
    """Says how a host is, in its row beside the entries of the log."""

    def __init__(self, host: Host, handlers: Handlers, store: LogStore, cluster: Cluster, plan: PlanFollower) -> None:
        """Speak for a host."""
        self._host: Final = host
        self._handlers: Final = handlers
        self._store: Final = store
        self._cluster: Final = cluster
        self._plan: Final = plan
        self._began_ms: Final = _now_ms()
        self._is_mute = False
        self._name: Final = SharedName(host.name, handlers.operator)
        self.warn: Callable[[str], None] = _nothing
        """Called once with the reason why this host cannot speak, and when another process has its name, too."""

    async def begin(self) -> None:
        """Take the name of this host by its first words. Raises ``NameTakenError`` if another process has the name."""
        row, words, is_there = HOST + self._host.name, _words(self._said()), False
        with self._muted():
            while not is_there:
                is_there = await self._store.say_instead(row, words, await must_be_free(self._store, self._host.name))

    async def run(self) -> None:
        """Speak until the call is cancelled."""
        beat_ms = self._cluster.times.beat_ms
        while True:
            await self.say()
            await anyio.sleep(beat_ms / 1_000)

    async def say(self) -> None:
        """Say how this host is, if the server of Temporal answers; follow a changed plan before."""
        if await self._cluster.is_reached(self._cluster.times.beat_ms):
            await self._plan.follow()
            await self._host.empty_rooms()
            await self._write()

    async def end(self) -> None:
        """Remove the row, unless another process writes it, too: the host has left."""
        with contextlib.suppress(StoreError):
            if not self._name.is_shared:
                await self._store.dismiss(HOST + self._host.name)

    async def _write(self) -> None:
        if self._name.is_shared and self._host.is_draining:
            return  # the row is that of the other process, which stays
        said = self._said()
        with self._muted():
            told = self._name.look(said, await self._store.say(HOST + self._host.name, _words(said)))
            if told:
                self.warn(told)

    @contextlib.contextmanager
    def _muted(self) -> Generator[None]:
        """Let a host work that cannot speak."""
        try:
            yield
        except StoreError as error:
            if not self._is_mute:
                self._is_mute = True
                self.warn(f"this host works, and no command shows it: {error}")

    def _said(self) -> HostSaid:
        operator, history = self._handlers.operator, self._handlers.notices
        working = sorted(self._host.working())
        first = max(0, len(history) - NEWS_KEPT)
        return HostSaid(
            machine=socket.gethostname(),
            process=os.getpid(),
            began_ms=self._began_ms,
            detection_ms=self._cluster.times.detection_ms,
            room=self._host.capacity,
            used=len(working),
            pools=tuple(Pool(*each) for each in self._host.pools()),
            agents=tuple(key for key in (name.partition("/")[2] for name in working) if key),
            sessions=tuple(self._sessions()),
            is_draining=self._host.is_draining,
            refuses=self._plan.refusal,
            waits=operator.waits.present,
            standing=tuple(operator.standing()),
            news=tuple(News(number, *each) for number, each in enumerate(history[first:], first + 1)),
        )

    def _sessions(self) -> Iterator[SessionThere]:
        folder, now_ms = self._handlers.folder, _now_ms()
        for agent, (attempt, process) in list(self._handlers.sessions.live.items()):
            with contextlib.suppress(SessionError, OSError):
                last_ms = last_progress_ms(process.directory, folder.heartbeat(agent, attempt))
                if last_ms is not None and process.identity is not None:
                    yield SessionThere(agent, process.identity.pid, max(0, now_ms - last_ms))


def _words(said: HostSaid) -> str:
    return msgspec.json.encode(said).decode()


def _nothing(_why: str) -> None:
    """Do nothing; a command replaces this."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
