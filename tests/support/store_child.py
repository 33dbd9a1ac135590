"""A process that uses a store, for tests with a second process, or with one that dies.

``store_child.py DEED PATH [WORD ...]``. It says what it has done on its standard output, a line each, and ends when its
standard input is closed or when it is killed.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Never

import anyio

from lifefold.interpreters.store import Batch, Entry, SqliteStore, schema

TRIPLE = 3
"""How many entries ``write`` puts into each batch, so that a torn one would show."""


def say(word: object) -> None:
    """Say it now."""
    print(word, flush=True)  # noqa: T201 - what the parent reads


def die(*_args: object, **_kwargs: object) -> Never:
    """Be gone, without any last word."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def hold(path: Path) -> None:
    """Hold a log open for writing."""
    with SqliteStore.open(path):
        say("open")
        sys.stdin.read()


def write(path: Path) -> None:
    """Write one batch after the other, and say how many are acknowledged."""

    async def go(store: SqliteStore) -> None:
        done = len(await store.read("a"))
        while True:
            batch = [Entry("a", version, 0, "", b"{}", b"{}") for version in range(done + 1, done + TRIPLE + 1)]
            await store.append(Batch(batch))
            done += TRIPLE
            say(done)

    with SqliteStore.open(path) as store:
        anyio.run(go, store)


def submit(path: Path, name: str, count: str) -> None:
    """Leave a number of commands beside a writer, and say their numbers."""

    async def go(store: SqliteStore) -> None:
        for number in range(int(count)):
            say(await store.submit(name, str(number).encode()))

    with SqliteStore.peek(path) as store:
        say("ready")
        sys.stdin.readline()
        anyio.run(go, store)


def make(path: Path, moment: str) -> None:
    """Make a log, and die at a moment of it."""

    class Dying(sqlite3.Connection):
        executemany: Any = die

    timestamps: dict[str, tuple[object, str, object]] = {
        "between its tables": (sqlite3, "connect", partial(sqlite3.connect, factory=Dying)),
        "before it has its name": (Path, "replace", die),
        "after it has its name": (schema, "flush_folder", die),
    }
    setattr(*timestamps[moment])
    SqliteStore.create(path, {"name": "torn"})


DEEDS: dict[str, Callable[..., None]] = {each.__name__: each for each in (hold, write, submit, make)}

if __name__ == "__main__":
    DEEDS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
