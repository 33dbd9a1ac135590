"""The protocol of event stores: keep streams, append to them atomically and durably, and fence off old writers.

A stream belongs to one aggregate. An entry is one accepted input with its outcome; its ``version`` counts from 1
without gaps. ``append`` writes a batch for any number of streams in one transaction. It returns when the batch would
survive a power cut, and no effect is performed before. The writer is the store with the highest *epoch*; an append
with an earlier epoch fails.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import msgspec


class StoreError(Exception):
    """The store has written nothing of the batch. The message says what to do."""


class Busy(StoreError):
    """Another program has locked the store; a later try can succeed."""

    waits: ClassVar[str] = "waiting until it is done"
    """What a waiting writer logs."""


class Full(Busy):
    """The disk is full; a later try can succeed."""

    waits: ClassVar[str] = "waiting until there is room; make some, and the run goes on by itself"


class Fenced(StoreError):
    """Another writer has opened the store since."""


class VersionConflict(StoreError):
    """An entry's version is not the next one of its stream."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One accepted input, and what was decided on it, in the forms of ``lifefold.core.kernel``.

    ``key`` is unique in its stream unless empty. ``at_ms`` is Unix time. ``rules`` is the version of the rules that
    decided (``lifefold.interpreters.rules``); it is empty if the writer did not say it.
    """

    stream: str
    version: int
    at_ms: int
    key: str
    envelope: bytes
    outcome: bytes
    rules: str = ""


class StoredCommand(msgspec.Struct, frozen=True, gc=False):
    """An operator command for an aggregate. ``id`` orders them; ``answer`` is None until the writer has taken it."""

    id: int
    stream: str
    envelope: bytes
    answer: str | None = None


class SnapshotPart(msgspec.Struct, frozen=True, gc=False):
    """The bytes of one entity, or of the head of a stream (``ref`` is empty) as of a version."""

    stream: str
    ref: str
    data: bytes
    is_live: bool = True
    version: int = 0


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """New parts of the snapshot of a store, written with a batch, for the entries before the batch.

    Parts of another ``form`` are removed. Each stream with entries has a head, if only an empty one of version 0.
    """

    form: str
    parts: Sequence[SnapshotPart]


class Batch(msgspec.Struct, frozen=True, gc=False):
    """The contents of one transaction.

    ``performed`` holds, per stream, the version up to which all effects are performed. ``answers`` holds the outcomes
    of operator commands by their number. A store that keeps snapshots (``SnapshotStore``) writes ``snapshot``, too.
    """

    entries: Sequence[Entry] = ()
    performed: Mapping[str, int] = {}
    answers: Mapping[int, str] = {}
    snapshot: Snapshot | None = None


class EventStore(Protocol):
    """A store that is open for writing, or for reading only."""

    async def append(self, batch: Batch) -> None:
        """Write a batch durably. Raises ``Fenced``, ``VersionConflict`` or ``StoreError``; then nothing is written."""
        ...

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return the entries of a stream above version ``after``; for None those of all streams, as written."""
        ...

    async def performed(self) -> Mapping[str, int]:
        """Return, per stream, the version up to which all effects are known to be performed."""
        ...

    async def submit(self, stream: str, envelope: bytes) -> int:
        """Store an operator command for the writer, durably; return its number. Needs no epoch."""
        ...

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Return the operator commands without an answer, or all of them, in order."""
        ...
