"""Serving a desk: the socket, the token, the address that is printed, and the end."""

import gc
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec
import uvicorn

from lifefold.interpreters.web.app import application
from lifefold.interpreters.web.guards import LOGIN
from lifefold.interpreters.web.shelf import Finder, Shelf
from lifefold.interpreters.web.stream import Pulse
from lifefold.interpreters.web.token import Token, default_folder

HOST: Final = "127.0.0.1"
"""The address at which a desk is without another word: no other machine reaches it."""

PORT: Final = 8765
"""The usual port; 0 is any free one."""

MOST_HEADER: Final = 16_384
"""The most bytes of the head of a request."""

LEAVE_S: Final = 1
"""How long the end of the program waits for streams."""


GARBAGE_OBJECTS: Final = 50_000
"""How many new objects the garbage collector waits for."""


class NotServed(Exception):
    """A desk that cannot be where it was asked to be. The message says what to do."""


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Server(uvicorn.Server):
    """A server whose streams end by themselves when it ends."""

    def __init__(self, config: uvicorn.Config, pulse: Pulse) -> None:
        super().__init__(config)
        self._pulse: Final = pulse

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._pulse.end()
        await super().shutdown(sockets)


class Opened(msgspec.Struct, frozen=True):
    """A desk with its socket and its token. ``address`` exchanges the token for a cookie."""

    server: uvicorn.Server
    bound: socket.socket
    token: Token
    address: str

    def run(self) -> None:
        """Serve until a signal, or until ``leave``. The garbage collector runs less often: lines of logs are many."""
        gc.set_threshold(GARBAGE_OBJECTS)
        self.server.run([self.bound])

    def leave(self) -> None:
        """End ``run`` soon."""
        self.server.should_exit = True


@contextmanager
def opened(  # noqa: PLR0913, PLR0917 - what is shown, and where
    logs: Sequence[Path],
    host: str = HOST,
    port: int = PORT,
    names: Sequence[str] = (),
    find: Finder | None = None,
    reports: Sequence[Path] = (),
) -> Generator[Opened]:
    """Open the desk of some logs, or of those that ``find`` returns from time to time, and of files of reports.

    ``names`` are further names of this machine, by which browsers may address it.

    Raises ``NotServed``, ``Busy`` and ``NotAStore``.
    """
    with _bound(host, port) as bound, Shelf(logs, find, reports) as shelf:
        port = bound.getsockname()[1]
        token = Token(default_folder(), port)
        hosts = [f"{name}:{port}" for name in _names(host, names)]
        config = uvicorn.Config(
            application(shelf, token, hosts),
            http="h11",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=MOST_HEADER,
            timeout_graceful_shutdown=LEAVE_S,
        )
        try:
            yield Opened(_Server(config, shelf.pulse), bound, token, f"http://{hosts[0]}{LOGIN}?token={token.secret}")
        finally:
            token.remove()


def _names(host: str, more: Sequence[str]) -> list[str]:
    """Return the names of the desk in addresses; the first one is printed."""
    literal = f"[{host}]" if ":" in host else host
    loopback = ["127.0.0.1", "localhost", "[::1]"]
    return list(dict.fromkeys([*more, *([literal] if host not in {"0.0.0.0", "::"} else []), *loopback]))  # noqa: S104


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address. Raises ``NotServed``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen()  # from now on connections wait: the address is printed before the server runs
    except (OSError, OverflowError) as error:
        bound.close()
        message = f"{host}:{port} cannot be used ({error}); choose another: --port N, where 0 is any free one"
        raise NotServed(message) from error
    return bound
