"""A run waits for a log that cannot be used for a while: another program holds it locked, or its disk is full."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import sleep
from typing import Final, TypeVar

import anyio

from lifefold.interpreters.store import Busy, SqliteStore, StoreError

T = TypeVar("T")

PAUSE_S: Final = 0.2
"""How long a run waits before it tries again."""


def wait_until_readable(log: Path) -> None:
    """Return when a log can be read, or never will be: then the command that reads it next says why."""
    wait = _Wait()
    while log.exists():
        try:
            SqliteStore.peek(log).close()
        except Busy as busy:
            wait.tell(busy)
            sleep(PAUSE_S)
        except (StoreError, OSError):
            break
        else:
            wait.over()
            break


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Do what may find the log busy, which has changed nothing then, until it does not."""
    wait = _Wait()
    while True:
        try:
            done = await work()
        except Busy as busy:
            wait.tell(busy)
            await anyio.sleep(PAUSE_S)
        else:
            wait.over()
            return done


class _Wait:
    """Says once what is waited for, and once that it is over."""

    def __init__(self) -> None:
        self._is_told = False

    def tell(self, busy: Busy) -> None:
        if not self._is_told:
            print(f"lifefold: {busy}; {busy.waits}; Ctrl-C leaves", file=sys.stderr, flush=True)
        self._is_told = True

    def over(self) -> None:
        if self._is_told:
            print("lifefold: the log can be used; the run begins", file=sys.stderr, flush=True)
