"""Agents as scripts for the tests of sessions, bells that they ring, and looks at the process table."""

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio

from lifefold.interpreters.processes import ProcessIdentity, SessionSpec, identify
from lifefold.interpreters.processes.shim import proc

PATIENCE_S = 60
"""How long a test waits for what is to happen at once. It is never waited for in vain when all is well."""

SHIM = Path(proc.__file__).with_name("__main__.py")


class Bell:
    """A FIFO on which scripts ring by writing a line, and wait for one by reading: in both directions, without loss."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._heard = b""

    def __str__(self) -> str:
        return str(self.path)

    def ring(self) -> None:
        """Let one script go on that reads a line from here."""
        os.write(self._fd, b"go\n")

    async def heard(self) -> str:
        """Wait for a line and return it."""
        with anyio.fail_after(PATIENCE_S):
            while b"\n" not in self._heard:
                await anyio.wait_readable(self._fd)
                self._heard += os.read(self._fd, 4096)
        return self._take()

    def heard_now(self) -> str:
        """Wait for a line and return it, for tests without an event loop."""
        while b"\n" not in self._heard:
            assert select.select([self._fd], [], [], PATIENCE_S)[0], f"{self.path.name} was not rung"
            self._heard += os.read(self._fd, 4096)
        return self._take()

    def _take(self) -> str:
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def is_silent(self) -> bool:
        """Tell whether every ring was heard."""
        try:
            self._heard += os.read(self._fd, 4096)
        except BlockingIOError:
            return not self._heard
        return False

    async def pid(self) -> ProcessIdentity:
        """Wait for a living process that rings with its pid."""
        found = identify(int(await self.heard()))
        assert found is not None
        return found


def script(text: str, **changes: object) -> SessionSpec:
    """Make the agent a shell script. The shell is the agent here: the shim itself uses none."""
    return program("/bin/sh", "-c", text, **changes)


def program(*argv: str, **changes: object) -> SessionSpec:
    """Make the agent a command, with what is not given otherwise."""
    told: dict[str, object] = {"argv": argv, "cwd": "/", "env": {"PATH": os.environ["PATH"]}, "generation": "one"}
    return SessionSpec(**{**told, **changes})  # type: ignore[arg-type]


RIGGED = """
import sys, time
sys.path.append({package!r})
from shim import durable, program
write = durable.write_durably
def rigged(directory, name, *rest):
    if name == durable.STARTED:
        {writes}
    write(directory, name, *rest)
durable.write_durably = rigged
sys.exit(program.main(sys.argv))
"""
"""A shim that does something else before it writes the record of the start."""


def start_shim(directory: Path, told: bytes | None = None, *, writes: str = "") -> "subprocess.Popen[bytes]":
    """Start a shim as a runner would, to be closed by the caller; ``told`` is what it reads of the variables.

    ``writes`` is a statement that it executes before it writes the record of the start.
    """
    rigged = RIGGED.format(package=str(SHIM.parents[1]), writes=writes)
    argv = [sys.executable, "-I", "-S", *(["-c", rigged] if writes else [str(SHIM)]), str(directory)]
    shim = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
    assert shim.stdin is not None
    with suppress(BrokenPipeError), shim.stdin:
        shim.stdin.write(json.dumps({"PATH": os.environ["PATH"]}).encode() if told is None else told)
    return shim


def run_shim(directory: Path, told: bytes | None = None, *, writes: str = "") -> int:
    """Run a shim to its end, and return its exit code."""
    with start_shim(directory, told, writes=writes) as shim:
        return shim.wait(PATIENCE_S)


async def must_die(identity: ProcessIdentity) -> None:
    """Wait until a process that may have died already is dead."""
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        if identify(identity.pid) == identity:
            with anyio.fail_after(PATIENCE_S):
                await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)


def processes_about(directory: Path) -> list[int]:
    """List the living processes whose command line or environment names a directory."""
    found: list[int] = []
    for pid in proc.pids():
        try:
            told = proc.read_bytes(f"/proc/{pid}/cmdline") + proc.read_bytes(f"/proc/{pid}/environ")
        except OSError:
            continue
        if str(directory).encode() in told and pid != os.getpid():
            found.append(pid)
    return found
