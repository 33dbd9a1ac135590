"""The tables of a log, and the making of an empty one."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.identity import APPLICATION_ID, SCHEMA_VERSION, WITHOUT_RULES
from lifefold.interpreters.store.members import TABLE as MEMBERS
from lifefold.interpreters.store.meta import digest_of_meta
from lifefold.interpreters.store.permissions import make_private_file
from lifefold.interpreters.store.place import flush_folder
from lifefold.interpreters.store.protocol import StoreError
from lifefold.interpreters.store.writer_word import TABLE as WRITER_WORD

_SNAPSHOTS: Final = (
    "CREATE TABLE IF NOT EXISTS snapshots (\n"
    "    stream TEXT NOT NULL,\n"
    "    ref TEXT NOT NULL,\n"
    "    version INTEGER NOT NULL,\n"
    "    is_live INTEGER NOT NULL,\n"
    "    data BLOB NOT NULL,\n"
    "    checksum INTEGER NOT NULL,\n"
    "    PRIMARY KEY (stream, ref)\n"
    ") WITHOUT ROWID;\n"
)

_PASTS: Final = (
    "CREATE TABLE IF NOT EXISTS pasts (\n"
    "    stream TEXT NOT NULL,\n"
    "    ref TEXT NOT NULL,\n"
    "    position INTEGER NOT NULL,\n"
    "    version INTEGER NOT NULL,\n"
    "    is_live INTEGER NOT NULL,\n"
    "    data BLOB NOT NULL,\n"
    "    checksum INTEGER NOT NULL,\n"
    "    PRIMARY KEY (stream, ref, position)\n"
    ") WITHOUT ROWID;\n"
)

_SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n"
    "CREATE TABLE entries (\n"
    "    position INTEGER PRIMARY KEY,\n"
    "    stream TEXT NOT NULL,\n"
    "    version INTEGER NOT NULL,\n"
    "    at_ms INTEGER NOT NULL,\n"
    "    key TEXT NOT NULL,\n"
    "    envelope BLOB NOT NULL,\n"
    "    outcome BLOB NOT NULL,\n"
    "    rules TEXT NOT NULL DEFAULT '',\n"
    "    link BLOB NOT NULL,\n"
    "    UNIQUE (stream, version)\n"
    ");\n"
    "CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key <> '';\n"
    "CREATE TABLE performed (stream TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;\n"
    "CREATE TABLE posts (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, envelope BLOB NOT NULL,"
    " answer TEXT);\n"
    "CREATE INDEX posts_unanswered ON posts (id) WHERE answer IS NULL;\n"
    "INSERT INTO meta VALUES ('epoch', '0'), ('anchor', '0 ');\n"
)


def write_schema(path: Path, meta: Mapping[str, str]) -> None:
    """Make an empty log with the metadata of its maker."""
    make_private_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};")
        connection.executescript(f"{_SCHEMA}{_SNAPSHOTS}{_PASTS}{MEMBERS};{WRITER_WORD};")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", {**meta, "digest": digest_of_meta(meta)}.items())


def migrate(connection: sqlite3.Connection) -> None:
    """Give a log of an earlier version the tables of this one. Its writer does that before it writes."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version_of(connection) == WITHOUT_RULES:
            connection.execute("ALTER TABLE entries ADD COLUMN rules TEXT NOT NULL DEFAULT ''")
            connection.execute(_SNAPSHOTS)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(_PASTS)
        connection.execute(MEMBERS)
        connection.execute(WRITER_WORD)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def select(connection: Connection, rest: str, *, further: str = "") -> str:
    """Return a query for entries, with these clauses; a reader may find a log that no writer has migrated.

    ``further`` is a further column.
    """
    rules = "''" if version_of(connection) == WITHOUT_RULES else "rules"
    columns = ", ".join(filter(None, ("stream, version, at_ms, key, envelope, outcome", rules, further)))
    return f"SELECT {columns} FROM entries {rest}"  # noqa: S608 - all parts are constants of this program


def version_of(connection: Connection) -> int:
    """Return the version of a log's tables."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def write_new(path: Path, meta: Mapping[str, str]) -> None:
    """Make an empty log at a path, whole or not at all, and durably."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    try:
        write_schema(draft, meta)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    flush_folder(path.parent)


def must_be_free(path: Path) -> None:
    """Refuse to replace a log, or to make one where SQLite would use the remaining files of another."""
    if path.exists():
        raise FileExistsError(path)
    for suffix in ("-wal", "-journal"):
        left = path.with_name(path.name + suffix)
        if left.exists():
            message = f"{left}: is a part of a log that is not here any more; put the log back, or delete this too"
            raise StoreError(message)
