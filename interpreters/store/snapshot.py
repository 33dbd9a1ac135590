"""Snapshots in a store: the fold of its entries up to a position, in parts that are replaced one by one.

A store keeps the newest version of each part. The *head* of a stream has an empty reference, and the version of its
parts. The parts of one stream may be newer than those of another. A store that keeps no snapshots, or has dropped them,
is read from its first entry.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from lifefold.interpreters.store.protocol import Entry, SnapshotPart


class SnapshotPlace(msgspec.Struct, frozen=True, gc=False):
    """The newest entry that a snapshot was taken after: its time and its rules.

    ``older`` counts the entries before it that the snapshot does not have.
    """

    last_ms: int = 0
    rules: str = ""
    older: int = 0


class Resumption(msgspec.Struct, frozen=True, gc=False):
    """The newest snapshot of a store, and the entries that it does not have, in the order of the log.

    ``position`` counts all entries of the log, and ``count`` those that the snapshot has.
    """

    parts: Sequence[SnapshotPart]
    entries: Iterable[Entry]
    position: int
    count: int = 0
    at: SnapshotPlace = SnapshotPlace()


@runtime_checkable
class SnapshotStore(Protocol):
    """A store that keeps snapshots (``Batch.snapshot``)."""

    async def resumed(self, form: str) -> Resumption:
        """Return the newest snapshot, if its form begins with this one, and the entries that it does not have.

        Without one there are no parts, and all entries.
        """
        ...

    async def drop_snapshot(self) -> None:
        """Remove the snapshot."""
        ...

    async def known_keys(self, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those of these streams and keys that entries have."""
        ...
