"""Commands of the command line, run to their end: where nothing speaks against it, in forks of one process."""

import atexit
import json
import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import command_child

LIFEFOLD: Final = (sys.executable, "-m", "lifefold.interpreters.cli")

_CHANGES_ALWAYS: Final = "PYTEST_CURRENT_TEST"


def run_command(folder: Path, *arguments: str, timeout_s: float, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder; ``env`` is added to the environment.

    It is started as a program of its own if its environment is not the one that this process began with: that decides
    on how a program starts.
    """
    packet = json.dumps([str(folder), *arguments]).encode()
    nursery = _nursery()
    if env or len(packet) > command_child.MOST_BYTES or nursery.environment != _environment():
        command, environment = [*LIFEFOLD, *arguments], {**os.environ, **env}
        return subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=timeout_s
        )
    return nursery.run(packet, arguments, timeout_s)


class _Nursery:
    """The process that forks commands; it ends when this one does, and is no child of it: tests look at those."""

    def __init__(self) -> None:
        self.environment: Final = _environment()
        self._asks, answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answers:
            command = [sys.executable, command_child.__file__]
            subprocess.run(command, check=True, stdin=answers.fileno(), stdout=subprocess.DEVNULL)

    def run(self, packet: bytes, arguments: tuple[str, ...], timeout_s: float) -> "subprocess.CompletedProcess[str]":
        """Have a command run to its end."""
        self._asks.settimeout(timeout_s)
        with TemporaryFile("w+") as out, TemporaryFile("w+") as error:
            socket.send_fds(self._asks, [packet], [out.fileno(), error.fileno()])
            try:
                code = int(self._asks.recv(command_child.MOST_BYTES))
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


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _CHANGES_ALWAYS}
