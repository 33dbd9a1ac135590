"""Short commands of our own, as git's: each runs in a process group of its own, and nothing of it is left.

*How a group is ended.* A group's number belongs to it for certain only while its leader has not been reaped; afterwards
the kernel may give the number to strangers. So the leader's exit is observed without reaping it, then the group is
ended (TERM, a grace, KILL), and the leader is reaped last. That is done after every command, also after one that exits
0: what it left running in the background ends with it.

*What cancellation does.* A command that is about to end by itself leaves everything in order, so a cancelled one gets
its patience before TERM.

*What the output can do.* It is read all the time and only its end is kept, so a command can neither fill the memory nor
block on a full pipe. A descendant that keeps the pipe open delays the result by the grace at most.

*What a killed runner does to a command.* One that writes into its pipe then dies of SIGPIPE, halfway. A command that
changes something is therefore ``spooled``: it writes into files. If it writes too much there, it is ended.

*What is not covered.* A descendant that starts a session of its own has left the group and is not signalled. Where the
platform cannot observe an exit without reaping (macOS before Python 3.13), a group whose leader has gone is signalled
by its number.
"""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Protocol, TypeAlias

import anyio
import anyio.to_thread

GRACE_MS = 2_000
"""How long a group may take to end after TERM before it is killed."""

DRAIN_MS = 500
"""How long the pipes of a killed group are still read."""

SPOOL_POLL_MS = 500
"""How often the size of a file that a command writes into is looked at."""

_File: TypeAlias = IO[bytes] | int
_CHUNK_BYTES = 65_536
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a command may run, and go on when it is cancelled; how much of the end of each stream is kept."""

    timeout_ms: int
    patience_ms: int
    keep_bytes: int


@dataclass(frozen=True, slots=True)
class Streams:
    """What a command reads, the descriptors that it inherits, and whether it writes into files.

    One that is ``spooled`` in this way outlives this process unharmed.
    """

    given: bytes = b""
    inherited: tuple[int, ...] = ()
    spooled: bool = False


PLAIN = Streams()
"""No input, no descriptors but the usual ones, and pipes."""


@dataclass(frozen=True, slots=True)
class CommandResult:
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
    streams: Streams = PLAIN,
) -> CommandResult:
    """Run a command in ``folder`` to its end, in a group of its own.

    However this is left, also by cancellation, the group has been ended before. Raises OSError or ValueError if the
    command cannot be started.
    """
    with ExitStack() as files:
        started = partial(_popen, command, folder, env, streams.inherited)
        process, tails = _start(files, started, streams, limits.keep_bytes)
        in_time = await _attended(process, tails, limits)
        output, errors = (tail.kept for tail in tails)
    return CommandResult(process.returncode if in_time else None, bytes(output), bytes(errors))


async def _attended(process: subprocess.Popen[bytes], tails: Sequence["_Stream"], limits: Limits) -> bool:
    """See a command to its end, and then its group; return whether it ended in time."""
    in_time = False
    async with anyio.create_task_group() as readers:
        try:
            with anyio.move_on_after(limits.timeout_ms / 1000) as scope:
                for tail in tails:
                    readers.start_soon(tail.read, scope.cancel)
                await _exit_of(process)
                in_time = True
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(limits.patience_ms / 1000, shield=True):
                await _exit_of(process)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await _end_group(process, tails)
    return in_time


def plain(output: bytes) -> str:
    """Return output as text that can be printed, logged and passed as an argument: without control characters."""
    text = _TERMINAL_SEQUENCE.sub("", output.decode("utf-8", "replace"))
    return "\n".join("".join(char for char in line if char.isprintable() or char == "\t") for line in text.splitlines())


class _Stream(Protocol):
    """The end of what a command writes."""

    ended: anyio.Event

    @property
    def kept(self) -> bytes | bytearray: ...

    async def read(self, too_much: Callable[[], object], /) -> None: ...

    def stop(self) -> None: ...


class _Spool:
    """The end of what goes into a file, and need not be read for the command to go on."""

    def __init__(self, file: IO[bytes], keep_bytes: int) -> None:
        self.ended = anyio.Event()
        self._file = file
        self._keep_bytes = keep_bytes
        self._scope = anyio.CancelScope(shield=True)

    @property
    def kept(self) -> bytes:
        self._file.seek(max(0, self._size() - self._keep_bytes))
        return self._file.read(self._keep_bytes)

    async def read(self, too_much: Callable[[], object]) -> None:
        self.ended.set()
        with self._scope:
            while self._size() < self._keep_bytes:  # noqa: ASYNC110 - what writes sets no event of ours
                await anyio.sleep(SPOOL_POLL_MS / 1000)
            too_much()

    def stop(self) -> None:
        self._scope.cancel()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size


class _Tail:
    """The end of what comes through a pipe. Reading goes on under cancellation, until the pipe ends or ``stop``."""

    def __init__(self, pipe: IO[bytes], keep_bytes: int) -> None:
        self.kept = bytearray()
        self.ended = anyio.Event()
        self._pipe = pipe
        self._keep_bytes = keep_bytes
        self._scope = anyio.CancelScope(shield=True)

    async def read(self, _too_much: Callable[[], object]) -> None:
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
    files: ExitStack, popen: Callable[[_File, _File, _File], subprocess.Popen[bytes]], streams: Streams, keep_bytes: int
) -> tuple[subprocess.Popen[bytes], list[_Stream]]:
    """Start a command; return it with its two streams. The files that it is given are closed with ``files``."""
    given: _File = subprocess.DEVNULL
    if streams.given:
        given = _temporary(files)
        given.write(streams.given)
        given.seek(0)
    if streams.spooled:
        spools = [_temporary(files) for _ in range(2)]
        return popen(given, *spools), [_Spool(file, keep_bytes) for file in spools]
    process = popen(given, subprocess.PIPE, subprocess.PIPE)
    assert process.stdout is not None  # noqa: S101 - as started
    assert process.stderr is not None  # noqa: S101 - as started
    tails: list[_Stream] = [_Tail(process.stdout, keep_bytes), _Tail(process.stderr, keep_bytes)]
    return process, tails


def _temporary(files: ExitStack) -> IO[bytes]:
    return files.enter_context(tempfile.TemporaryFile())


def _popen(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None, inherited: Sequence[int], *streams: _File
) -> subprocess.Popen[bytes]:
    if not command:
        raise ValueError("it is empty")
    stdin, stdout, stderr = streams
    return subprocess.Popen(  # noqa: S603 - to run what was given is the purpose
        command,
        cwd=folder,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
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


async def _end_group(process: subprocess.Popen[bytes], tails: Sequence[_Stream]) -> None:
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


async def _ends_of(tails: Sequence[_Stream]) -> None:
    for tail in tails:
        await tail.ended.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Some systems answer "not permitted" when only the leader is left, and that as a zombie.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
