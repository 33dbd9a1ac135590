"""Short commands of the runner, such as git: each runs in its own process group, and no process of it remains.

*Ending a group.* A group's number is certain only until its leader is reaped; afterwards the kernel may reuse the
number. So the leader's exit is observed without reaping it. Then the group is ended (TERM, a grace, KILL), and the
leader is reaped last. That happens after every command, also after exit status 0, and ends its background processes.

*Cancellation.* A command that ends by itself leaves its files in order. So a cancelled command gets its patience before
TERM.

*Output.* It is read continuously, and only its end is kept. A command can neither fill the memory nor block on a full
pipe. A descendant that keeps the pipe open delays the result by the grace at most.

*A killed runner.* A command that writes into the pipe of a dead runner dies of SIGPIPE, halfway. A command that changes
files is therefore ``spooled``: it writes its output into files. If it writes too much there, it is ended.

*Waiting in vain.* A command can wait for an event that never comes, such as a writer of a named pipe. A caller that can
see this passes a function, which is called once a second; the command is ended then.

*Limits.* A descendant that starts its own session has left the group and is not signalled. Some platforms cannot
observe an exit without reaping (macOS before Python 3.13). There a group without its leader is signalled by its number.
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

from lifefold.interpreters.processes.own_session import start

GRACE_MS = 2_000
"""The time that a group has to end after TERM before it is killed."""

DRAIN_MS = 500
"""The time for which the pipes of a killed group are still read."""

SPOOL_POLL_MS = 500
"""The pause between two readings of the size of a spooled file."""

LOOK_MS = 1_000
"""The pause between two looks at a command, to find out whether it waits in vain."""

_File: TypeAlias = IO[bytes] | int
_CHUNK_BYTES = 65_536
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class Limits:
    """The longest run of a command, its patience when cancelled, and how much of each stream's end is kept."""

    timeout_ms: int
    grace_ms: int
    keep_bytes: int


@dataclass(frozen=True, slots=True)
class Streams:
    """The standard input of a command, the descriptors that it inherits, and whether it writes into files.

    A ``spooled`` command is not harmed when this process dies. ``waits_for`` looks at the command's process group, and
    returns what the command waits for in vain, or an empty text. The same answer to two looks ends the command.
    ``begun`` is called with the process id of the command, which is that of its group, and raises no error.
    """

    given: bytes = b""
    inherited: tuple[int, ...] = ()
    spooled: bool = False
    waits_for: Callable[[int], str] | None = None
    begun: Callable[[int], object] | None = None


PLAIN = Streams()
"""No input, only the standard descriptors, and pipes."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. ``status`` is the exit status, minus the signal that ended it, or None after a timeout.

    ``output`` and ``errors`` are the ends of its two streams. ``waited_for`` is what it waited for in vain.
    """

    status: int | None
    output: bytes
    errors: bytes
    waited_for: str = ""


async def run(
    command: Sequence[str],
    folder: Path,
    limits: Limits,
    *,
    env: Mapping[str, str] | None = None,
    streams: Streams = PLAIN,
) -> CommandResult:
    """Run a command in ``folder`` to its end, in its own process group.

    The group is ended before this function returns or raises, also when it is cancelled. Raises OSError or ValueError
    if the command cannot be started.
    """
    with ExitStack() as files:
        started = partial(_popen, command, folder, env, streams.inherited)
        process, tails = _start(files, started, streams, limits.keep_bytes)
        if streams.begun is not None:
            streams.begun(process.pid)
        look = _Look(process.pid, streams.waits_for)
        in_time = await _attended(process, [*tails, look], limits)
        output, errors = (tail.kept for tail in tails)
    status = process.returncode if in_time else None
    return CommandResult(status, bytes(output), bytes(errors), "" if in_time else look.found)


async def _attended(process: subprocess.Popen[bytes], watched: Sequence["_Watched"], limits: Limits) -> bool:
    """Wait for the end of a command, and end its group; return whether the command ended in time."""
    in_time = False
    async with anyio.create_task_group() as readers:
        try:
            with anyio.move_on_after(limits.timeout_ms / 1000) as scope:
                for each in watched:
                    readers.start_soon(each.read, scope.cancel)
                await _exit_of(process)
                in_time = True
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(limits.grace_ms / 1000, shield=True):
                await _exit_of(process)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await _end_group(process, watched)
    return in_time


def plain(output: bytes) -> str:
    """Return output as text that can be printed, logged and passed as an argument: without control characters."""
    text = _TERMINAL_SEQUENCE.sub("", output.decode("utf-8", "replace"))
    return "\n".join("".join(char for char in line if char.isprintable() or char == "\t") for line in text.splitlines())


class _Watched(Protocol):
    """Something about a command that is read until its end; ``give_up`` ends the command."""

    ended: anyio.Event

    async def read(self, give_up: Callable[[], object], /) -> None: ...

    def stop(self) -> None: ...


class _Stream(_Watched, Protocol):
    """The end of one output stream of a command."""

    @property
    def kept(self) -> bytes | bytearray: ...


class _Look:
    """The repeated look at a command, to find out whether it waits in vain."""

    def __init__(self, group: int, waits_for: Callable[[int], str] | None) -> None:
        self.ended = anyio.Event()
        self.found = ""
        self._group = group
        self._waits_for = waits_for
        self._scope = anyio.CancelScope()

    async def read(self, give_up: Callable[[], object]) -> None:
        self.ended.set()
        if self._waits_for is None:
            return
        before = ""
        with self._scope:
            while not before or before != self.found:
                await anyio.sleep(LOOK_MS / 1000)
                before, self.found = self.found, await anyio.to_thread.run_sync(self._waits_for, self._group)
            give_up()

    def stop(self) -> None:
        self._scope.cancel()


class _Spool:
    """The end of an output stream in a file, which needs no reader."""

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
            while self._size() < self._keep_bytes:  # noqa: ASYNC110 - the writing process sets no event here
                await anyio.sleep(SPOOL_POLL_MS / 1000)
            too_much()

    def stop(self) -> None:
        self._scope.cancel()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size


class _Tail:
    """The end of an output stream in a pipe. Reading continues under cancellation, until the pipe ends or ``stop``."""

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
    """Start a command; return its process and its two streams. Its files are closed with ``files``."""
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
    return start(command, cwd=folder, env=env, stdin=stdin, stdout=stdout, stderr=stderr, bufsize=0, pass_fds=inherited)


async def _exit_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has exited, without reaping it, so that its number is not reused."""
    if not _has_exited(process):
        # Its own limiter: these threads are idle, and a shared limit would let one command wait for another.
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


async def _end_group(process: subprocess.Popen[bytes], watched: Sequence[_Watched]) -> None:
    _signal_group(process, signal.SIGTERM)
    with anyio.move_on_after(GRACE_MS / 1000):
        await _exit_of(process)
        await _ends_of(watched)
    _signal_group(process, signal.SIGKILL)
    await _exit_of(process)
    with anyio.move_on_after(DRAIN_MS / 1000):
        await _ends_of(watched)
    for each in watched:
        each.stop()
    process.wait()


async def _ends_of(watched: Sequence[_Watched]) -> None:
    for each in watched:
        await each.ended.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Some systems answer "not permitted" when only a zombie leader is left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
