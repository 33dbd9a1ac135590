"""The command line as forks of one process with all modules loaded: most of a short command is loading.

Standard input is a socket. A packet is JSON, ``[folder, variables, *arguments]``, and brings where to write standard
output and standard error. What is sent back is the exit code and the processor time in seconds. The variables are those
of the environment that a fork may have for itself; one that is not set is null. A packet may bring a socket as well.
Then the command leads a process group of its own, and the next command need not wait for its end. Its process
identifier, and then its exit code and time, are sent to that socket. A command is as when the program is started by
itself, but that its process does not tidy up its memory in the end.
"""

import gc
import json
import os
import pkgutil
import socket
import sys
from importlib import import_module
from typing import Final, NoReturn

import anyio
import anyio.lowlevel

from lifefold.core.fleet import system
from lifefold.interpreters.cli import app, commands
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.rules import rules_version

MOST_BYTES: Final = 60_000
"""How long a packet may be."""


def main() -> int:
    """Fork for every packet, without a parent. Return the command's exit code in the fork, and 0 otherwise."""
    if os.fork():
        os._exit(0)
    for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        import_module(module.name)
    anyio.run(anyio.lowlevel.checkpoint)
    Ledger(system)  # its codec is made once for a process, and so are these two
    rules_version(system)
    parser()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as asked:
        while True:
            packet, descriptors, _, _ = socket.recv_fds(asked, MOST_BYTES, 3)
            if not packet:
                return 0
            outputs, told = descriptors[:2], descriptors[2:]
            pid = os.fork()
            if pid == 0:
                break
            for each in descriptors:
                os.close(each)
            ended = _ended(pid)
            if not told:
                asked.send(ended)
    for each in told:
        _watched(each)
    return _run(packet, outputs, to_pipe=bool(told))


def _ended(pid: int) -> bytes:
    """Wait for a fork. Return its exit code, and the seconds of its processor time with what it has waited for."""
    _, status, used = os.wait4(pid, 0)
    return f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}".encode()


def _run(packet: bytes, outputs: list[int], *, to_pipe: bool) -> NoReturn:
    """Run the command of a packet as this process."""
    folder, variables, *arguments = json.loads(packet)
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    nothing = os.open(os.devnull, os.O_RDONLY)
    for place, descriptor in enumerate((nothing, *outputs)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    if to_pipe:  # the streams were made for files, and a pipe has no place to seek
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    code = app.main(arguments)
    sys.stdout.flush()
    os._exit(code)


def _watched(descriptor: int) -> None:
    """Go on as a fork with a process group of its own, and leave it to another one to tell of its beginning and end.

    A process whose identifier is told is not waited for before that was heard, so the identifier is still its own.
    """
    if os.fork():
        os._exit(0)
    with socket.socket(fileno=descriptor) as told:
        pid = os.fork()
        if pid:
            told.send(str(pid).encode())
            told.recv(1)
            told.send(_ended(pid))
            os._exit(0)
    os.setsid()


if __name__ == "__main__":
    sys.exit(main())
