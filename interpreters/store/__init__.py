"""Event stores: the protocol, the stores in a SQLite file and on a PostgreSQL server, and the store in memory."""

from lifefold.interpreters.store.errors import (
    Damaged,
    Locked,
    NotAStore,
    NotThere,
    OutcomeUnknown,
    Unreachable,
    Unreliable,
    Unwritable,
)
from lifefold.interpreters.store.log_store import LogStore
from lifefold.interpreters.store.members import Member, Members
from lifefold.interpreters.store.memory import MemoryStore, Shelf
from lifefold.interpreters.store.opening import create_log, open_log, peek_log
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
from lifefold.interpreters.store.writer_word import WriterWord

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
    "LogStore",
    "Member",
    "Members",
    "MemoryStore",
    "NotAStore",
    "NotThere",
    "OutcomeUnknown",
    "Resumption",
    "Shelf",
    "Snapshot",
    "SnapshotPart",
    "SnapshotPlace",
    "SnapshotStore",
    "SqliteStore",
    "StoreError",
    "StoredCommand",
    "Unreachable",
    "Unreliable",
    "Unwritable",
    "VersionConflict",
    "WriterWord",
    "create_log",
    "open_log",
    "peek_log",
]
