"""Event stores: the protocol, the store in one SQLite file, and the store in memory."""

from lifefold.interpreters.store.errors import Damaged, Locked, NotAStore, Unreliable, Unwritable
from lifefold.interpreters.store.memory import MemoryStore, Shelf
from lifefold.interpreters.store.place import Displaced
from lifefold.interpreters.store.protocol import (
    Batch,
    Busy,
    Entry,
    EventStore,
    Fenced,
    Full,
    Snapshot,
    SnapshotPart,
    StoredCommand,
    StoreError,
    VersionConflict,
)
from lifefold.interpreters.store.snapshot import Resumption, SnapshotPlace, SnapshotStore
from lifefold.interpreters.store.sqlite import SqliteStore

__all__ = [
    "Batch",
    "Busy",
    "Damaged",
    "Displaced",
    "Entry",
    "EventStore",
    "Fenced",
    "Full",
    "Locked",
    "MemoryStore",
    "NotAStore",
    "Resumption",
    "Shelf",
    "Snapshot",
    "SnapshotPart",
    "SnapshotPlace",
    "SnapshotStore",
    "SqliteStore",
    "StoreError",
    "StoredCommand",
    "Unreliable",
    "Unwritable",
    "VersionConflict",
]
