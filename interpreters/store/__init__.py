"""Where logs are kept: the protocol of an event store, and the stores that come with lifefold."""

from lifefold.interpreters.store.errors import Damaged, Locked, NotAStore, Unwritable
from lifefold.interpreters.store.memory import MemoryStore, Shelf
from lifefold.interpreters.store.place import Displaced
from lifefold.interpreters.store.protocol import (
    Batch,
    Busy,
    Entry,
    EventStore,
    Fenced,
    Full,
    Post,
    StoreError,
    VersionConflict,
)
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
    "Post",
    "Shelf",
    "SqliteStore",
    "StoreError",
    "Unwritable",
    "VersionConflict",
]
