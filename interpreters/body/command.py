"""Short commands of our own, as git's: each runs in a process group of its own, and nothing of it is left.

*How a group is ended.* A group's number belongs to it for certain only while its leader has not been reaped; afterwards
the kernel may give the number to strangers. So the leader's exit is observed without reaping it, then the group is
ended (TERM, a grace, KILL), and the leader is reaped last. That is done after every command, also after one that exits
0: what it left running in the background ends with it.

*What cancellation does.* A command that is about to end by itself leaves everything in order, so a cancelled one gets
its patience before TERM.

*What the output can do.* It is read all the time and only its end is kept, so a command can neither fill the memory nor
block on a full pipe. A descendant that keeps the pipe open delays the result by the grace at most.

*What is not covered.* A descendant that starts a session of its own has left the group and is not signalled. Where the
platform cannot observe an exit without reaping (macOS before Python 3.13), a group whose leader has gone is signalled
by its number.
"""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

GRACE_MS = 2_000
"""How long a group may take to end after TERM before it is killed."""

DRAIN_MS = 500
"""How long the pipes of a killed group are still read."""

_CHUNK_BYTES = 65_536
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a command may run, and go on when it is cancelled; how much of the end of each stream is kept."""

    timeout_ms: int
    patience_ms: int
    keep_bytes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a command. ``status``: exit status, or minus the signal that ended it, or None when its time was up.

    ``output`` and ``errors`` are the ends of its two streams.
    """

    status: int | None
    output: bytes
    errors: bytes


async def run(
    command: Sequence[str],
    folder: Path,
    limits: Limits,
    *,
    env: Mapping[str, str] | None = None,
    inherited: Sequence[int] = (),
) -> Ended:
    """Run a command in ``folder`` to its end, without input, in a group of its own.

    It inherits the descriptors ``inherited`` and no others. However this is left, also by cancellation, the group has
    been ended before. Raises OSError or ValueError if the command cannot be started.
    """
    process = _start(command, folder, env, inherited)
    assert process.stdout is not None  # noqa: S101 - as started
    assert process.stderr is not None  # noqa: S101 - as started
    tails = [_Tail(process.stdout, limits.keep_bytes), _Tail(process.stderr, limits.keep_bytes)]
    in_time = False
    async with anyio.create_task_group() as readers:
        for tail in tails:
            readers.start_soon(tail.read)
        try:
            with anyio.move_on_after(limits.timeout_ms / 1000):
                await _exit_of(process)
                in_time = True
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(limits.patience_ms / 1000, shield=True):
                await _exit_of(process)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await _end_group(process, tails)
    output, errors = (bytes(tail.kept) for tail in tails)
    return Ended(process.returncode if in_time else None, output, errors)


def plain(output: bytes) -> str:
    """Return output as text that can be printed, logged and passed as an argument: without control characters."""
    text = _TERMINAL_SEQUENCE.sub("", output.decode("utf-8", "replace"))
    return "\n".join("".join(char for char in line if char.isprintable() or char == "\t") for line in text.splitlines())


class _Tail:
    """The end of what comes through a pipe. Reading goes on under cancellation, until the pipe ends or ``stop``."""

    def __init__(self, pipe: IO[bytes], keep_bytes: int) -> None:
        self.kept = bytearray()
        self.ended = anyio.Event()
        self._pipe = pipe
        self._keep_bytes = keep_bytes
        self._scope = anyio.CancelScope(shield=True)

    async def read(self) -> None:
        with self._pipe, self._scope:
            while chunk := await self._next_chunk():
                self.kept += chunk
                del self.kept[: -self._keep_bytes]
            self.ended.set()

    def stop(self) -> None:
        self._scope.cancel()

    async def _next_chunk(self) -> bytes:
        await anyio.wait_readable(self._pipe)
        return os.read(self._pipe.fileno(), _CHUNK_BYTES)


def _start(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None, inherited: Sequence[int]
) -> subprocess.Popen[bytes]:
    if not command:
        raise ValueError("it is empty")
    return subprocess.Popen(  # noqa: S603 - to run what was given is the purpose
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        pass_fds=inherited,
    )


async def _exit_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has exited; leave it unreaped, so that its number stays its own."""
    if not _has_exited(process):
        # A limiter of its own: the thread is idle, and no command may have to wait for another one's end.
        limiter = anyio.CapacityLimiter(1)
        await anyio.to_thread.run_sync(_observe_exit, process, abandon_on_cancel=True, limiter=limiter)


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    return process.poll() is not None


def _observe_exit(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()


async def _end_group(process: subprocess.Popen[bytes], tails: Sequence[_Tail]) -> None:
    _signal_group(process, signal.SIGTERM)
    with anyio.move_on_after(GRACE_MS / 1000):
        await _exit_of(process)
        await _ends_of(tails)
    _signal_group(process, signal.SIGKILL)
    await _exit_of(process)
    with anyio.move_on_after(DRAIN_MS / 1000):
        await _ends_of(tails)
    for tail in tails:
        tail.stop()
    process.wait()


async def _ends_of(tails: Sequence[_Tail]) -> None:
    for tail in tails:
        await tail.ended.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Some systems answer "not permitted" when only the leader is left, and that as a zombie.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
