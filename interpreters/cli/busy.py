"""Waiting for a log that is locked by another program, or whose disk is full."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import sleep
from typing import Final, TypeVar

import anyio

from lifefold.interpreters.store import Busy, StoreError, peek_log

T = TypeVar("T")

PAUSE_S: Final = 0.2
"""The pause between two tries, in seconds."""


def wait_until_readable(log: Path) -> None:
    """Return when a log can be read, or when waiting does not help: the next command that reads it reports why."""
    wait = _Wait()
    while log.exists():
        try:
            peek_log(log).close()
        except Busy as busy:
            wait.tell(busy)
            sleep(PAUSE_S)
        except (StoreError, OSError):
            break
        else:
            wait.over()
            break


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Repeat some work until it does not raise ``Busy``; work that raises it has changed nothing."""
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
    """Prints once the reason for waiting, and once its end."""

    def __init__(self) -> None:
        self._is_told = False

    def tell(self, busy: Busy) -> None:
        if not self._is_told:
            print(f"lifefold: {busy}; {busy.waits}; to leave press Ctrl-C", file=sys.stderr, flush=True)
        self._is_told = True

    def over(self) -> None:
        if self._is_told:
            print("lifefold: the log is available; the run begins", file=sys.stderr, flush=True)
