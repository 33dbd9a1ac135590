"""A program in its own process group that starts commands and sessions while each process of the group gets SIGINT.

A terminal does this to the group of a runner when an operator presses Ctrl-C. Argument: a folder. It prints the exit
status of each command, and the outcome of each session.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Final, NoReturn

import anyio

from lifefold.interpreters.processes import LaunchError, SessionExit, SessionSpec, launch
from lifefold.interpreters.processes.command import Limits, run

COMMANDS: Final = 20
SESSIONS: Final = 3
_PAUSE_S: Final = 0.000_2


def main(folder: Path) -> None:
    """Press Ctrl-C all the time, and print what becomes of the processes that are started meanwhile."""
    signal.signal(signal.SIGINT, _ignore)
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        _press(me)
    try:
        anyio.run(_start, folder)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _ignore(_number: int, _frame: object) -> None:
    """Go on, as a runner does while it lets its merges end."""


def _press(parent: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while os.getppid() == parent:
        os.killpg(0, signal.SIGINT)
        time.sleep(_PAUSE_S)
    os._exit(0)


async def _start(folder: Path) -> None:
    for _ in range(COMMANDS):
        done = await run(["true"], folder, Limits(timeout_ms=60_000, grace_ms=1_000, keep_bytes=100))
        _say(done.status)
    for number in range(SESSIONS):
        directory = folder / f"session-{number}"
        directory.mkdir()
        try:
            ended = await _session(directory)
        except LaunchError as error:
            _say(error)
        else:
            _say(f"{ended.outcome} {ended.code}")


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")


async def _session(directory: Path) -> SessionExit:
    spec = SessionSpec(argv=("true",), cwd=str(directory), env={"PATH": os.environ["PATH"]}, generation=1)
    return await (await launch(directory, spec)).wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
