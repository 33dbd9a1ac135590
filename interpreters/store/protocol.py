"""What an event store must do: keep streams, append to them atomically and durably, and fence off old writers.

A stream belongs to one aggregate. An entry is one accepted input with what it came to; its ``version`` counts from 1
without gaps. ``append`` takes a batch for any number of streams in one transaction and returns when it would survive a
power cut; no effect may leave before. Whoever holds the highest *epoch* is the writer; an append of an earlier one
fails.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import msgspec


class StoreError(Exception):
    """The store did not do what it was asked; nothing of the batch is in it. The message says what to do."""


class Busy(StoreError):
    """Another program has kept the store to itself for a while; later it can be done."""

    waits: ClassVar[str] = "waiting until it is done"
    """What a writer says that waits for it."""


class Full(Busy):
    """There is no room left on the disk; when there is, it can be done."""

    waits: ClassVar[str] = "waiting until there is room; make some, and the run goes on by itself"


class Fenced(StoreError):
    """Another writer has opened the store since."""


class VersionConflict(StoreError):
    """An entry's version is not the next one of its stream."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One accepted input: the envelope, the effects it asked for, and the digest of the aggregate after it.

    ``key`` is unique in its stream unless empty. ``at_ms`` is Unix time.
    """

    stream: str
    version: int
    at_ms: int
    key: str
    envelope: bytes
    effects: bytes
    digest: bytes


class Post(msgspec.Struct, frozen=True, gc=False):
    """An operator's input on its way to an aggregate. ``id`` orders them; ``answer`` is None until it was taken."""

    id: int
    stream: str
    envelope: bytes
    answer: str | None = None


class Batch(msgspec.Struct, frozen=True, gc=False):
    """What is written at once.

    ``performed`` says, per stream, up to which version all effects are performed; ``answers`` what came of which posts.
    """

    entries: Sequence[Entry] = ()
    performed: Mapping[str, int] = {}
    answers: Mapping[int, str] = {}


class EventStore(Protocol):
    """A store that is open for writing, or for reading only."""

    async def append(self, batch: Batch) -> None:
        """Write a batch durably. Raises ``Fenced``, ``VersionConflict`` or ``StoreError``; then nothing is written."""
        ...

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return a stream's entries above version ``after``; for None those of all streams, in the order of writing."""
        ...

    async def performed(self) -> Mapping[str, int]:
        """Return, per stream, the version up to which all effects are known to be performed."""
        ...

    async def post(self, stream: str, envelope: bytes) -> int:
        """Leave an operator's input for the writer, durably; return its number. Needs no epoch."""
        ...

    async def posts(self, *, unanswered: bool = True) -> Sequence[Post]:
        """Return the posts that nobody has taken yet, or all of them, in order."""
        ...
