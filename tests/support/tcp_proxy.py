"""A proxy between a client and a server on loopback, which cuts connections, or swallows all bytes as a partition does.

A partition by a proxy is harder than one of the network: the proxy's kernel still acknowledges what is sent. So only a
time limit of the client's own notices it.
"""

import select
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

PIECE_BYTES: Final = 65_536
LOOK_S: Final = 0.02


class Proxy:
    """Forwards connections to a port of loopback; ``port`` is its own."""

    def __init__(self, target: int) -> None:
        self._target: Final = target
        self._listener: Final = socket.create_server(("127.0.0.1", 0))
        self.port: Final[int] = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._is_open = Event()
        self._is_open.set()
        self._is_held_back = False
        self._is_over = False
        self._abandoned: set[socket.socket] = set()
        self._cut_after: bytes | None = None
        self._cut_before: bytes | None = None
        self.cuts = 0
        Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """Forward nothing from now on, and keep all connections; new ones are accepted and get no answer."""
        self._is_open.clear()

    def hold_back(self) -> None:
        """Forward nothing until ``heal``, and then all that was sent meanwhile: it is late, and not lost."""
        self._is_held_back = True

    def abandon(self) -> None:
        """Forward nothing of the present connections, and keep them; new ones are forwarded."""
        self._abandoned.update(client for client, _ in self._pairs)

    def heal(self) -> None:
        """Close the connections of the partition, and forward those that follow; those held back go on."""
        if not self._is_held_back:
            self.cut()
        self._is_held_back = False
        self._is_open.set()

    def cut(self) -> None:
        """Close all connections."""
        while self._pairs:
            for each in self._pairs.pop():
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def cut_after(self, words: bytes) -> None:
        """Cut once the next request with these words has been answered, and withhold the answer."""
        self._cut_after = words

    def cut_before(self, words: bytes) -> None:
        """Cut before the next request with these words reaches the server."""
        self._cut_before = words

    def close(self) -> None:
        """End all connections and accept no more."""
        self._is_over = True
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while not self._is_over:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                continue
            self._pairs.append((client, server))
            Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while not self._is_over:
                ready, _, _ = select.select([client, server], [], [], LOOK_S)
                if self._is_held_back:
                    time.sleep(LOOK_S)  # what is ready stays so
                    continue
                if not self._is_open.is_set() or client in self._abandoned:
                    self._hold(client)
                    return
                for source in ready:
                    data = source.recv(PIECE_BYTES)
                    if not data or (source is client and self._is_cut(data, server)):
                        return
                    (server if source is client else client).sendall(data)

    def _hold(self, client: socket.socket) -> None:
        """Keep a connection of a partition until it is cut; its server is told nothing meanwhile."""
        while not self._is_over and client.recv(PIECE_BYTES):
            pass

    def _is_cut(self, data: bytes, server: socket.socket) -> bool:
        """Tell whether the connection is cut at this request; the one to be cut after is answered first."""
        if self._cut_before is not None and self._cut_before in data:
            self._cut_before = None
        elif self._cut_after is not None and self._cut_after in data:
            self._cut_after = None
            server.sendall(data)
            server.recv(PIECE_BYTES)
        else:
            return False
        self.cuts += 1
        return True


@contextmanager
def proxy(target: int) -> Generator[Proxy]:
    """Run a proxy."""
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
