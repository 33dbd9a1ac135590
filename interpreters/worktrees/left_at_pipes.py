"""Git commands at a named pipe that their runner has left: ended by the runner that leaves at once, or by the next one.

A git command continues without its runner, because half of a change is worse than a late change. A command that waits
at a named pipe would stay for ever, with the locks that it has inherited. So every git command has the identity of its
runner in its environment. A command of a dead runner that waits at a named pipe gets SIGTERM, at which git removes its
own lock files. A runner looks only at the commands that work in its fleet's repository or worktrees: commands of other
fleets on the machine are those fleets' own. Only systems with ``/proc`` show all this.
"""

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.identity import ProcessIdentity, identify, signal_if_ours
from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.worktrees.pipes import pipe_before

VARIABLE: Final = "LIFEFOLD_GIT_OF"
"""The variable in the environment of a git command that names its runner: pid, start time, boot id."""

LOOKS: Final = 5
LOOK_PAUSE_S: Final = 0.05
"""The number of looks at a command, and the pause between them: it may wake up briefly, or reach the pipe only now."""

_OPENING: Final = (b"wait_for_partner", b"fifo_open")


def mark() -> dict[str, str]:
    """Return the variable that names this process as the runner."""
    return {VARIABLE: _name_of(os.getpid())}


def end_own_at_pipes() -> None:
    """End the git commands of this runner that wait at a named pipe, because it leaves without waiting for them."""
    own = _name_of(os.getpid())
    _end(command for command, runner in _commands() if runner == own)


def end_left_at_pipes(places: Collection[Path], directory: Path | None = None) -> None:
    """End the git commands of dead runners that work in one of these places and wait at a named pipe.

    ``directory`` is a git directory with pipes that count, if the system does not show what a process waits for.
    """
    within = tuple(each.resolve() for each in places)
    left = ((command, runner) for command, runner in _commands() if _works_in(command.pid, within))
    _end((command for command, runner in left if not _is_alive(runner)), directory)


def _works_in(pid: int, places: Collection[Path]) -> bool:
    """Tell whether a process works in one of these places; its working directory may be removed meanwhile."""
    try:
        at = Path(str(Path(f"/proc/{pid}/cwd").readlink()).removesuffix(_REMOVED))
    except OSError:
        return False
    return any(at.is_relative_to(each) for each in places)


_REMOVED: Final = " (deleted)"
"""The end that Linux adds to the path of a removed directory."""


def _end(commands: Iterator[ProcessIdentity], directory: Path | None = None) -> None:
    left = list(commands)
    for _ in range(LOOKS):
        for command in [each for each in left if _waits(each, directory)]:
            signal_if_ours(command, signal.SIGTERM)
            left.remove(command)
        if not left:
            return
        time.sleep(LOOK_PAUSE_S)


def _waits(command: ProcessIdentity, directory: Path | None) -> bool:
    found = proc.stat(command.pid)
    return found is not None and (_opens_a_pipe(command.pid) or pipe_before(found.pgid, directory) != "")


def _opens_a_pipe(pid: int) -> bool:
    """Tell whether a process waits for the other end of a pipe, which may have been removed meanwhile (Linux)."""
    try:
        return proc.read_bytes(f"/proc/{pid}/wchan") in _OPENING
    except OSError:
        return False


def _commands() -> Iterator[tuple[ProcessIdentity, str]]:
    """Yield the living processes that have the variable, each with its value."""
    prefix = f"{VARIABLE}=".encode()
    for pid in proc.pids():
        command = identify(pid)
        with suppress(OSError):  # gone, or another user's
            environment = proc.read_bytes(f"/proc/{pid}/environ").split(b"\0")
            named = next((each for each in environment if each.startswith(prefix)), None)
            if command is not None and named is not None:
                yield command, os.fsdecode(named.removeprefix(prefix))


def _is_alive(runner: str) -> bool:
    pid, _, _ = runner.partition(":")
    return pid.isdecimal() and _of(identify(int(pid))) == runner


@cache
def _name_of(pid: int) -> str:
    return _of(identify(pid))


def _of(found: ProcessIdentity | None) -> str:
    return "" if found is None else f"{found.pid}:{found.start_time}:{found.boot_id}"
