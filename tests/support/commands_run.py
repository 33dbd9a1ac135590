"""Commands of the command line, begun or run to their end: where nothing speaks against it, in forks of one process."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Final, Self

import command_child
import processor_time

LIFEFOLD: Final = (sys.executable, "-m", "lifefold.interpreters.cli")

_CHANGES_ALWAYS: Final = "PYTEST_CURRENT_TEST"

_LATE: Final = frozenset({"COLUMNS", "PATH", "XDG_STATE_HOME"})
"""Variables that nothing reads while a program starts: a fork can have others than the process that it is forked of."""


def run_command(folder: Path, *arguments: str, timeout_s: float, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder; ``env`` is added to the environment.

    It is started as a program of its own if its environment is not the one that this process began with: that decides
    on how a program starts. A few variables do not (``_LATE``). So is one that another thread begins meanwhile.
    """
    packet = _packet(folder, arguments, env)
    nursery = _nursery()
    if not env.keys() <= _LATE or nursery.free.locked() or not nursery.takes(packet):
        command, environment = [*LIFEFOLD, *arguments], {**os.environ, **env}
        return subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=timeout_s
        )
    return nursery.run(packet, arguments, timeout_s)


def start_command(folder: Path, *arguments: str) -> "Fork | subprocess.Popen[str]":
    """Start a command in a folder, as the leader of a process group of its own; all that it prints is in ``stdout``."""
    packet = _packet(folder, arguments, {})
    if _nursery().takes(packet):
        return Fork(packet, arguments)
    return subprocess.Popen(
        [*LIFEFOLD, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


class Fork:
    """A command at work in a fork; it has what tests use of ``subprocess.Popen``."""

    def __init__(self, packet: bytes, arguments: tuple[str, ...]) -> None:
        ours, theirs = os.pipe()
        self._told: Final = _nursery().begin(packet, theirs)
        os.close(theirs)
        self._command: Final = [*LIFEFOLD, *arguments]
        self.stdout: Final[IO[str] | None] = os.fdopen(ours)
        self.pid: Final = int(self._told.recv(command_child.MOST_BYTES))
        self._process: Final = os.pidfd_open(self.pid)
        self._told.send(b".")
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """Send a signal to the command, if it has not ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, number)

    def kill(self) -> None:
        """Kill the command, if it has not ended."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                self.returncode = _code(self._told.recv(command_child.MOST_BYTES))
            except TimeoutError as late:
                raise subprocess.TimeoutExpired(self._command, timeout or 0) from late
            os.close(self._process)
            self._told.close()
        return self.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.stdout is not None:
            self.stdout.close()
        self.wait()


class _Nursery:
    """The process that forks commands; it ends when this one does, and is no child of it: tests look at those."""

    def __init__(self) -> None:
        self.environment: Final = _environment()
        self.free: Final = Lock()
        """Held while a command runs to its end: answers come in the order of the commands."""
        self._asks, answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answers:
            command = [sys.executable, command_child.__file__]
            subprocess.run(command, check=True, stdin=answers.fileno(), stdout=subprocess.DEVNULL)

    def takes(self, packet: bytes) -> bool:
        """Tell whether a command would be the same as one that is started by itself."""
        return len(packet) <= command_child.MOST_BYTES and self.environment == _environment()

    def begin(self, packet: bytes, output: int) -> socket.socket:
        """Have a command begun; return where its process and its end are told."""
        told, tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tells:
            socket.send_fds(self._asks, [packet], [output, output, tells.fileno()])
        return told

    def run(self, packet: bytes, arguments: tuple[str, ...], timeout_s: float) -> "subprocess.CompletedProcess[str]":
        """Have a command run to its end."""
        self._asks.settimeout(timeout_s)
        with self.free, TemporaryFile("w+") as out, TemporaryFile("w+") as error:
            socket.send_fds(self._asks, [packet], [out.fileno(), error.fileno()])
            try:
                code = _code(self._asks.recv(command_child.MOST_BYTES))
            except TimeoutError as late:  # what it answers later would be taken for an answer to another one
                self.end()
                _nursery.cache_clear()
                raise subprocess.TimeoutExpired([*LIFEFOLD, *arguments], timeout_s) from late
            for each in (out, error):
                each.seek(0)
            return subprocess.CompletedProcess([*LIFEFOLD, *arguments], code, out.read(), error.read())

    def end(self) -> None:
        """Let it end, when the command is done that it has begun."""
        self._asks.close()


@cache
def _nursery() -> _Nursery:
    """Return that of this process."""
    made = _Nursery()
    atexit.register(made.end)
    return made


def _code(ended: bytes) -> int:
    """Return the exit code of a command, and count its processor time as that of the test."""
    code, seconds = ended.split()
    processor_time.count(float(seconds))
    return int(code)


def _environment() -> dict[str, str]:
    """Return what decides on how a program starts."""
    return {name: value for name, value in os.environ.items() if name not in {_CHANGES_ALWAYS, *_LATE}}


def _packet(folder: Path, arguments: tuple[str, ...], env: Mapping[str, str]) -> bytes:
    """Return what a fork is told: its folder, its own variables (null for one that is not set), and the command."""
    own = {name: env.get(name, os.environ.get(name)) for name in sorted(_LATE)}
    return json.dumps([str(folder), own, *arguments]).encode()
