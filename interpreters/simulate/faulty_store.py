"""The store of a simulated engine: a store in memory that fails as a seed decides.

A write can be refused because another program keeps the log busy, because the disk is full, or because another writer
has taken over. It can take long. The engine can die with it: before it is durable, or after. An error can come back
although the write is durable. That breaks the protocol of stores, and a disk does it all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from lifefold.interpreters.simulate.environment import Chance
from lifefold.interpreters.store import Batch, Busy, Entry, Full, MemoryStore, StoredCommand, StoreError
from lifefold.interpreters.store.memory import Shelf
from lifefold.interpreters.store.snapshot import Resumption

FULL_MS: Final = (1_000, 3_600_000)
"""The time until there is room on the disk again."""


class FaultyStore:
    """A store that is open for writing, for one engine."""

    def __init__(
        self,
        shelf: Shelf,
        chance: Chance,
        life: int,
        written: Callable[[Batch], None],
        looked: Callable[[], None],
    ) -> None:
        """Open the shelf. ``written`` is called after each durable batch, ``looked`` before each look for commands."""
        self.dies_at = ""
        """The fault by which the engine dies now; empty while it lives."""
        self.full_ms = 0
        """The time for which the disk is full."""
        self.is_writing = False
        self.is_dead = False
        """Whether its engine is gone: what that still writes is lost."""
        self.has_dropped = False
        """Whether its engine has dropped a snapshot, although no fault damages one."""
        self._shelf: Final = shelf
        self._inner: Final = MemoryStore(shelf)
        self._chance: Final = chance
        self._life: Final = life
        self._written: Final = written
        self._looked: Final = looked
        self._writes = 0

    async def append(self, batch: Batch) -> None:
        """Write a batch; see ``EventStore``."""
        if self.is_dead:
            await anyio.sleep_forever()
        self.is_writing = True
        self._writes += 1
        place = self._writes
        self._refuse(place)
        await self._wait("before", place)
        if self._strikes("torn write", place):
            await self._die("torn write")
        await self._inner.append(batch)
        self._written(batch)
        if self._strikes("killed when persisted", place):
            await self._die("killed when persisted")
        if self._strikes("unsure write", place):
            raise StoreError("the disk reports an error; nothing of this was written")
        await self._wait("after", place)
        self.is_writing = False

    def _refuse(self, place: int) -> None:
        if self._strikes("store refuses", place):
            raise Busy("another program keeps the log busy; nothing of this was written yet")
        if self._strikes("disk full", place):
            self.full_ms = self._takes_ms(FULL_MS, "disk full", place)
            raise Full("the disk is full; nothing of this was written yet")
        if self._strikes("fenced", place):
            MemoryStore(self._shelf)  # another writer takes over; this one learns it when it writes

    async def _wait(self, when: str, place: int) -> None:
        if self._strikes("slow store", when, place):
            await anyio.sleep(self._takes_ms(self._chance.environment.write_ms, "write", when, place) / 1_000)
        else:
            await checkpoint()

    async def _die(self, fault: str) -> None:
        self.dies_at = fault
        await anyio.sleep_forever()

    def _strikes(self, fault: str, *name: str | int) -> bool:
        return self._chance.strikes(fault, *name, self._life)

    def _takes_ms(self, span_ms: tuple[int, int], *name: str | int) -> int:
        return self._chance.takes_ms(span_ms, *name, self._life)

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return entries; see ``EventStore``."""
        await checkpoint()
        return await self._inner.read(stream, after)

    async def performed(self) -> Mapping[str, int]:
        """Return the performed effects; see ``EventStore``."""
        await checkpoint()
        return await self._inner.performed()

    async def resumed(self, form: str) -> Resumption:
        """Return the newest snapshot; see ``SnapshotStore``."""
        await checkpoint()
        return await self._inner.resumed(form)

    async def drop_snapshot(self) -> None:
        """Remove the snapshot; see ``SnapshotStore``."""
        self.has_dropped = True
        await self._inner.drop_snapshot()

    async def known_keys(self, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the known keys; see ``SnapshotStore``."""
        await checkpoint()
        return await self._inner.known_keys(keys)

    async def submit(self, stream: str, envelope: bytes) -> int:
        """Leave an input for the writer; see ``EventStore``."""
        return await self._inner.submit(stream, envelope)

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Return commands; see ``EventStore``."""
        self._looked()
        await checkpoint()
        return await self._inner.commands(unanswered=unanswered)
