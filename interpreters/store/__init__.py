"""Where logs are kept: the protocol of an event store, and the stores that come with lifefold."""

from lifefold.interpreters.store.memory import MemoryStore, Shelf
from lifefold.interpreters.store.protocol import (
    Batch,
    Busy,
    Entry,
    EventStore,
    Fenced,
    Post,
    StoreError,
    VersionConflict,
)
from lifefold.interpreters.store.sqlite import Locked, NotAStore, SqliteStore, Unwritable

__all__ = [
    "Batch",
    "Busy",
    "Entry",
    "EventStore",
    "Fenced",
    "Locked",
    "MemoryStore",
    "NotAStore",
    "Post",
    "Shelf",
    "SqliteStore",
    "StoreError",
    "Unwritable",
    "VersionConflict",
]
