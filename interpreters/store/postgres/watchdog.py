"""A limit to the time that a server takes for an answer.

A server whose machine is frozen keeps its connections open and does not answer. Neither keepalives nor
``tcp_user_timeout`` notice that, because the kernel, or a proxy, still acknowledges. A thread closes such a
connection, and the waiting call fails.
"""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from time import monotonic
from typing import Final

LOOKS: Final = 4
"""How often the thread looks within the limit."""


class Watchdog:
    """Closes the socket of a connection when a call on it takes longer than a limit, in seconds."""

    def __init__(self, descriptor: int, limit_s: float) -> None:
        """Watch the socket with this descriptor."""
        self._socket: Final = socket.socket(fileno=os.dup(descriptor))
        self._limit_s: Final = limit_s
        self._changed: Final = Condition()
        self._since_s: float | None = None
        self._is_over = False
        Thread(target=self._watch, name="lifefold-watchdog", daemon=True).start()

    @contextmanager
    def call(self) -> Generator[None]:
        """Limit the time of the block."""
        self._since_s = monotonic()
        try:
            yield
        finally:
            self._since_s = None

    def close(self) -> None:
        """End the watch."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_over:
                self._changed.wait(self._limit_s / LOOKS)  # a call wakes no thread, because that costs it time
                since_s = self._since_s
                if since_s is not None and monotonic() - since_s > self._limit_s:
                    with suppress(OSError):
                        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
