"""A program that writes a log, and marks in a recording what was acknowledged to it.

``recorded_store.py FOLDER RECORDING SEED SYNCHRONOUS [SWITCH]``. The checkpoint is due early, so a short run has
several. With a switch, flushes of the disk fail in the middle of a life, and the next life begins after that. A reader
opens the log in between, as ``lifefold serve`` does, so the next writer is not the last one to close it.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Final

import anyio

from interposing import Fault, Switch
from lifefold.interpreters.processes.shim import durable
from lifefold.interpreters.store import Batch, Entry, SqliteStore, StoreError, base, reading
from lifefold.interpreters.store.wal import open_shared
from recording import mark

BATCHES: Final = 24
"""The number of batches in each life of a writer."""

LIVES: Final = 2

CHECKPOINT_BYTES: Final = 100_000
SESSION_FILE: Final = "session.json"


def entry(stream: str, version: int) -> Entry:
    """Return the entry of a version; its contents follow from its name, so a wrong one is noticed."""
    size = Random(f"{stream} {version}").choice((20, 300, 5_000, 9_000))
    text = f"{stream} {version} ".encode()
    return Entry(stream, version, version, f"key {version}", (text * size)[:size], text)


class Writer:
    """One life of a writer of the log."""

    def __init__(self, recording: int, random: Random, switch: Switch | None) -> None:
        """Take the open recording, and the switch of the disk's faults."""
        self._recording = recording
        self._random = random
        self._switch = switch

    def tell(self, **what: object) -> None:
        """Mark what was acknowledged."""
        mark(self._recording, json.dumps(what))

    async def live(self, store: SqliteStore) -> None:
        """Write batches, leave and answer commands."""
        versions = {stream: len(await store.read(stream)) for stream in ("a", "b")}
        failing = self._random.randrange(BATCHES) if self._switch is not None else -1
        for number in range(BATCHES):
            if number == failing and self._switch is not None:
                self._switch.turn(Fault.UNSYNCED)
            entries = list[Entry]()
            for stream in self._random.sample(sorted(versions), self._random.randint(1, 2)):
                for _ in range(self._random.randint(1, 3)):
                    versions[stream] += 1
                    entries.append(entry(stream, versions[stream]))
            answers = {each.id: f"answer {each.id}" for each in await store.commands()}
            await store.append(Batch(entries, {"a": versions["a"]}, answers))
            self.tell(entries=versions, answers=list(answers), at=store.path.name)
            if self._random.random() < 1 / 4:
                self.tell(command=await store.submit("a", b"command"), at=store.path.name)


def write_session_file(folder: Path, tell: Callable[..., None], number: int) -> None:
    """Write a file of a session durably, and say so."""
    text = f"{number} " * Random(number).choice((1, 600))
    durable.write_durably(str(folder), SESSION_FILE, text)
    tell(session=number)


def unsafely(synchronous: str) -> None:
    """Open logs with another promise than the shipped one."""

    def opened(path: Path | str, busy_s: float) -> sqlite3.Connection:
        connection = open_shared(path, busy_s)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        return connection

    setattr(reading, open_shared.__name__, opened)


def main(folder: str, recording: str, seed: str, synchronous: str, switch: str = "") -> None:
    """Make a log, write it, close it, open it, write it; then lose its file and go on in the copy."""
    base.CHECKPOINT_BYTES = CHECKPOINT_BYTES  # type: ignore[misc]
    if synchronous != "FULL":
        unsafely(synchronous)
    path, random = Path(folder) / "log.db", Random(seed)
    faults = Switch(Path(switch)) if switch else None
    writer = Writer(os.open(recording, os.O_WRONLY | os.O_APPEND), random, faults)
    readers = ExitStack()
    for life in range(LIVES):
        write_session_file(path.parent, writer.tell, 2 * life)
        with suppress(StoreError), SqliteStore.open(path) if life else SqliteStore.create(path, {}) as store:
            writer.tell(created=True, at=path.name)
            anyio.run(writer.live, store)
        if faults is not None:
            faults.turn(Fault.SOUND)
            readers.enter_context(SqliteStore.peek(path))
        write_session_file(path.parent, writer.tell, 2 * life + 1)
    readers.close()
    if faults is None:
        with SqliteStore.open(path) as store:
            writer.tell(deleted=True)
            path.unlink()
            anyio.run(writer.live, store)


if __name__ == "__main__":
    main(*sys.argv[1:])
