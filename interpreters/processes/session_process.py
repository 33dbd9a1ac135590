"""A session's process as the runner sees it: launched or adopted, asked to end, waited for.

The runner is no part of a session's life. It may die and come back: the shim goes on, and ``adopt`` finds the session
by its run directory, which is what a session *is* here. Run directories are local, private and used once.

Waiting costs nothing: the shim's pidfd becomes readable when it dies, whether or not it is a child of the waiter.
Without pidfds (macOS) the shim is looked at twice a second.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
from anyio import lowlevel, to_thread

from lifefold.interpreters.processes.identity import (
    ProcessIdentity,
    identify,
    is_alive,
    open_pidfd,
    signal_group_if_ours,
    signal_if_ours,
)
from lifefold.interpreters.processes.private import make_private_file
from lifefold.interpreters.processes.session_files import (
    LaunchError,
    SessionExit,
    SessionFileError,
    SessionSpec,
    SessionStart,
    ShimUnresponsiveError,
    environment_of,
    read_exit,
    read_start,
    tail_lines,
    write_spec,
)
from lifefold.interpreters.processes.settlement import Unsettled, is_held, settle
from lifefold.interpreters.processes.shim import durable, output, proc

SHIM: Final = Path(__file__).with_name("shim") / "__main__.py"

_LOCK_POLL_S = 0.01
_LIFE_POLL_S = 0.5
_UNDO_S = 5.0


class SessionProcess:
    """A session whose shim was alive when it was last looked at. Made by ``launch`` and ``adopt``.

    Any number of tasks may wait; orders are requests, whose effect ``wait`` reports. An order to a session that is over
    does nothing.
    """

    def __init__(self, directory: Path, start: SessionStart | None, shim: subprocess.Popen[bytes] | None) -> None:
        self.directory = directory
        self.start = start
        self._shim = shim
        self._exit: SessionExit | None = None
        self._waiting = anyio.Lock()

    @property
    def identity(self) -> ProcessIdentity | None:
        """The agent's process, which leads its process group; None if it could not even be forked."""
        return None if self.start is None else self.start.agent

    async def wait(self) -> SessionExit:
        """Wait until the session is over, which is when none of its processes lives, and say how it ended.

        If the shim dies before it could record that, the rest of the session is killed and the outcome is "lost".
        """
        async with self._waiting:
            if self._exit is None:
                await self._wait_for_shim()
                self._exit = await _settled(self.directory, self.start)
            return self._exit

    async def _wait_for_shim(self) -> None:
        if self._shim is not None:
            await _wait_for_child(self._shim)
        elif self.start is not None:
            await _wait_for(self.start.shim)

    async def end(self, grace_ms: int) -> None:
        """Ask the agent to end (SIGTERM), and have it killed if it lives ``grace_ms`` later. The runner need not stay.

        Asking again can only shorten the grace.
        """
        self.wake()
        _write_order(self.directory, {"end": grace_ms})
        await lowlevel.checkpoint()

    async def kill(self) -> None:
        """Have the agent and all its descendants killed at once."""
        listens = False
        self.wake()
        with contextlib.suppress(ShimUnresponsiveError):  # the shim finds out about it when it runs again
            listens = _write_order(self.directory, {"kill": True})
        if not listens and self.start is not None:
            signal_group_if_ours(self.start.agent, signal.SIGKILL)
        await lowlevel.checkpoint()

    def wake(self) -> None:
        """Let a shim that was stopped go on: it does what is due. One that runs takes no notice."""
        if self.start is not None:
            signal_if_ours(self.start.shim, signal.SIGCONT)

    def overpower(self) -> None:
        """Kill the shim, which does not act, and the agent with its group; ``wait`` then kills what is left."""
        if self.start is not None:
            signal_if_ours(self.start.shim, signal.SIGKILL)
            signal_group_if_ours(self.start.agent, signal.SIGKILL)

    async def renew(self, lease_ms: int) -> None:
        """Let the session live for ``lease_ms`` from now on, unless this is said again.

        A lease is never shortened by this, and a session that is being ended is not saved by it.
        """
        _write_order(self.directory, {"lease_until_boot_ms": proc.boot_ms() + lease_ms})
        await lowlevel.checkpoint()

    async def output_tail(self, size_bytes: int) -> bytes:
        """Read the end of what the agent has written so far."""
        return await output_tail(self.directory, size_bytes)


async def launch(directory: Path, spec: SessionSpec, *, lease_ms: int | None = None) -> SessionProcess:
    """Start a session in a directory of its own, and return when its start (or failure) is on the disk.

    With ``lease_ms`` the session ends unless the lease is renewed in time. Launching a directory again, from here or
    elsewhere, starts nothing and gives the same session. Cancelling this leaves no process behind. LaunchError if the
    session did not start: ``adopt`` was told meanwhile that it had not, or the shim itself could not run.

    To launch after ``adopt`` returned None is a new decision: the mark that it left is taken away.
    """
    until_ms = None if lease_ms is None else proc.boot_ms() + lease_ms
    if not await to_thread.run_sync(_prepare, directory, spec, until_ms):
        return await _existing(directory)
    shim = _start_shim(directory)
    try:
        await _tell_environment(shim, environment_of(spec))
        await _wait_for_decision(shim)
        start = _started_by(directory, shim)
        if start is not None or read_exit(directory) is not None:
            return SessionProcess(directory, start or read_start(directory), shim)
        await _wait_for_child(shim)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _undo(directory, shim)
        raise
    finally:
        for pipe in filter(None, (shim.stdin, shim.stdout)):
            pipe.close()
    return await _existing(directory)


async def adopt(directory: Path) -> SessionProcess | SessionExit | None:
    """Find out about a session that another runner started, or an earlier life of this one.

    A session that runs is returned as if launched here, one that is over as its exit. None means that nothing was ever
    started in the directory, nor will be before the next ``launch``: a late shim finds a mark and goes. If the shim
    died before it could record the end, what is left of the session is killed, and it is "lost". SurvivorsError if
    that fails.
    """
    while True:
        found = await to_thread.run_sync(settle, directory)
        if isinstance(found, SessionExit):
            return found
        if found is Unsettled.NEVER_STARTED:
            return None
        start = read_start(directory)
        if start is not None and is_alive(start.shim):
            return SessionProcess(directory, start, None)
        await anyio.sleep(_LOCK_POLL_S)  # a shim between its first step and its record, or another who settles


async def interrupt(directory: Path, wish: str) -> None:
    """Have the session of a directory signalled, by its shim, with SIGINT: the agent's own process, and nobody else.

    ``wish`` is what this is known by: the same wish comes to one signal, however often it is said. A session that is
    over, or is being ended, is not signalled, and neither is one whose shim does not listen.
    """
    with contextlib.suppress(ShimUnresponsiveError):
        _write_order(directory, {"interrupt": wish})
    await lowlevel.checkpoint()


async def output_tail(directory: Path, size_bytes: int) -> bytes:
    """Read the end of a session's output, whether it runs or is over."""
    return await to_thread.run_sync(output.tail, str(directory), size_bytes)


def _write_order(directory: Path, order: "dict[str, durable.Json]") -> bool:
    """Write to a directory's shim, and say whether it is there. Such short writes are whole or not at all."""
    try:
        fd = os.open(directory / durable.CONTROL, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # nobody reads, or there is no FIFO (any more)
        return False
    try:
        os.write(fd, durable.encode(order).encode() + b"\n")
    except BrokenPipeError:
        return False
    except BlockingIOError as error:
        raise ShimUnresponsiveError(f"the shim of {directory} does not read its orders: stopped?") from error
    finally:
        os.close(fd)
    return True


def _prepare(directory: Path, spec: SessionSpec, lease_until_boot_ms: int | None) -> bool:
    """Write the order to start, and only then let shims follow it; False if the directory had its start already."""
    if any(durable.exists(str(directory), name) for name in (durable.STARTED, durable.EXIT)):
        return False
    cancelled = durable.exists(str(directory), durable.CANCELLED)
    write_spec(directory, spec, lease_until_boot_ms=lease_until_boot_ms)
    if cancelled:  # before this launch; a mark that appears from now on is meant for it
        durable.remove(str(directory), durable.CANCELLED)
    return True


def _start_shim(directory: Path) -> "subprocess.Popen[bytes]":
    """Start the shim, in a session of its own. It closes its standard output when it has decided.

    Its standard input is for the values of the agent's variables: a pipe is read by the shim alone, and is on no disk.
    """
    make_private_file(directory / durable.SHIM_LOG)
    with (directory / durable.SHIM_LOG).open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - a program of ours, without a shell
            [sys.executable, "-I", "-S", str(SHIM), str(directory.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )


async def _tell_environment(shim: "subprocess.Popen[bytes]", environment: bytes) -> None:
    """Tell the shim the agent's variables. A shim that refuses its directory reads nothing, and goes."""
    assert shim.stdin is not None  # noqa: S101 - as started above
    with shim.stdin:
        os.set_blocking(shim.stdin.fileno(), False)
        left = memoryview(environment)
        with contextlib.suppress(BrokenPipeError):
            while left:
                await anyio.wait_writable(shim.stdin)
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(shim.stdin.fileno(), left) :]


async def _wait_for_decision(shim: "subprocess.Popen[bytes]") -> None:
    """Wait until the start is on record, or the shim gone."""
    assert shim.stdout is not None  # noqa: S101 - as started above
    with shim.stdout:
        await anyio.wait_readable(shim.stdout)


async def _existing(directory: Path) -> SessionProcess:
    """Return the session that a directory has already."""
    found = await adopt(directory)
    if found is None:
        why = await to_thread.run_sync(tail_lines, directory / durable.SHIM_LOG)
        raise LaunchError(f"no session was started in {directory}, nor will be: {why or 'it was cancelled'}")
    if isinstance(found, SessionProcess):
        return found
    return SessionProcess(directory, read_start(directory), None)


async def _undo(directory: Path, shim: "subprocess.Popen[bytes]") -> None:
    """End a launch that nobody waits for any more, and no other's launch of the same directory: no process is left."""
    if _started_by(directory, shim) is not None:
        with contextlib.suppress(ShimUnresponsiveError), anyio.move_on_after(_UNDO_S):
            _write_order(directory, {"kill": True})
            await _wait_for_child(shim)
    shim.kill()  # it decided nothing yet, or does not react; if it is reaped, nothing happens
    await _wait_for_child(shim)
    start = _started_by(directory, shim)
    if start is not None:
        await _settled(directory, start)
    # The agent of a shim that was killed holds the lock at its gate until it is gone.
    while read_start(directory) is None and is_held(directory):  # noqa: ASYNC110 - another process sets no event of ours
        await anyio.sleep(_LOCK_POLL_S)


def _started_by(directory: Path, shim: "subprocess.Popen[bytes]") -> SessionStart | None:
    """Read the record of the start, if it is of this shim."""
    start = read_start(directory)
    return start if start is not None and start.shim_pid == shim.pid else None


async def _wait_for_child(shim: "subprocess.Popen[bytes]") -> None:
    """Wait until our own child is dead, and reap it."""
    if shim.poll() is None and (identity := identify(shim.pid)) is not None:
        await _wait_for(identity)
    shim.wait()


async def _wait_for(identity: ProcessIdentity) -> None:
    """Wait until a process is dead, whosever child it is."""
    pidfd = open_pidfd(identity)
    if pidfd is None:
        while is_alive(identity):  # noqa: ASYNC110 - another process sets no event of ours
            await anyio.sleep(_LIFE_POLL_S)
        return
    try:
        await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)


async def _settled(directory: Path, start: SessionStart | None) -> SessionExit:
    """Settle a session whose shim is dead."""
    while (found := await to_thread.run_sync(settle, directory, start)) is Unsettled.HELD:  # noqa: ASYNC110 - another process sets no event of ours
        await anyio.sleep(_LOCK_POLL_S)
    if isinstance(found, SessionExit):
        return found
    raise SessionFileError(f"{directory} has no record of its session any more: was it removed?")
