"""The tables of a log, and the making of an empty one."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from lifefold.interpreters.store.identity import APPLICATION_ID, SCHEMA_VERSION
from lifefold.interpreters.store.meta import digest_of_meta
from lifefold.interpreters.store.permissions import make_private_file
from lifefold.interpreters.store.protocol import StoreError

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
    "    link BLOB NOT NULL,\n"
    "    UNIQUE (stream, version)\n"
    ");\n"
    "CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key <> '';\n"
    "CREATE TABLE performed (stream TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;\n"
    "CREATE TABLE posts (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, envelope BLOB NOT NULL,"
    " answer TEXT);\n"
    "CREATE INDEX posts_unanswered ON posts (id) WHERE answer IS NULL;\n"
    "CREATE TABLE snapshots (stream TEXT NOT NULL, ref TEXT NOT NULL, version INTEGER NOT NULL,"
    " is_live INTEGER NOT NULL, data BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (stream, ref)) WITHOUT ROWID;\n"
    "INSERT INTO meta VALUES ('epoch', '0'), ('anchor', '0 ');\n"
)


def write_schema(path: Path, meta: Mapping[str, str]) -> None:
    """Make an empty log with the metadata of its maker."""
    make_private_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};")
        connection.executescript(_SCHEMA)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", {**meta, "digest": digest_of_meta(meta)}.items())


def must_be_free(path: Path) -> None:
    """Refuse to replace a log, or to make one where SQLite would use the remaining files of another."""
    if path.exists():
        raise FileExistsError(path)
    for suffix in ("-wal", "-journal"):
        left = path.with_name(path.name + suffix)
        if left.exists():
            message = f"{left}: is a part of a log that is not here any more; put the log back, or delete this too"
            raise StoreError(message)
