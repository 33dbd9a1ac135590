"""A session's process in the runner: launched or adopted, asked to end, waited for.

A session does not depend on its runner. The runner may die and be restarted; the shim continues, and ``adopt`` finds
the session by its run directory. Run directories are local, private and used once.

Waiting costs no CPU time: the shim's pidfd becomes readable when the shim dies, also if it is no child of the waiter.
Without pidfds (macOS) the shim is polled twice a second.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
from anyio import lowlevel, to_thread

from lifefold.interpreters.processes import own_session
from lifefold.interpreters.processes.identity import (
    ProcessIdentity,
    identify,
    is_alive,
    open_pidfd,
    signal_group_if_ours,
    signal_if_ours,
)
from lifefold.interpreters.processes.private import make_private_file
from lifefold.interpreters.processes.progress import SilentSince
from lifefold.interpreters.processes.session_files import (
    Fence,
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
    """A session whose shim was alive at the last check. Made by ``launch`` and ``adopt``.

    Any number of tasks may wait. Orders are requests, and ``wait`` reports their effect. An order to a session that is
    over does nothing.
    """

    def __init__(self, directory: Path, start: SessionStart | None, shim: subprocess.Popen[bytes] | None) -> None:
        self.directory = directory
        self.start = start
        self._shim = shim
        self._exit: SessionExit | None = None
        self._waiting = anyio.Lock()

    @property
    def identity(self) -> ProcessIdentity | None:
        """The agent's process, which leads its process group; None if it could not be forked."""
        return None if self.start is None else self.start.agent

    async def wait(self) -> SessionExit:
        """Wait until none of the session's processes lives, and return how the session ended.

        If the shim dies before it has recorded the end, the rest of the session is killed and the outcome is "lost".
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
        """Ask the agent to end (SIGTERM). The shim kills it if it lives ``grace_ms`` later, with or without a runner.

        A second call can only shorten the grace.
        """
        self.wake()
        _write_order(self.directory, {"end": grace_ms})
        await lowlevel.checkpoint()

    async def kill(self) -> None:
        """Have the shim kill the agent and all its descendants at once."""
        listens = False
        self.wake()
        with contextlib.suppress(ShimUnresponsiveError):  # a stopped shim reads the order when it runs again
            listens = _write_order(self.directory, {"kill": True})
        if not listens and self.start is not None:
            signal_group_if_ours(self.start.agent, signal.SIGKILL)
        await lowlevel.checkpoint()

    def wake(self) -> None:
        """Continue a stopped shim, which then does what is due. A running shim is not affected."""
        if self.start is not None:
            signal_if_ours(self.start.shim, signal.SIGCONT)

    def overpower(self) -> None:
        """Kill an unresponsive shim, and the agent with its group; ``wait`` then kills the remaining processes."""
        if self.start is not None:
            signal_if_ours(self.start.shim, signal.SIGKILL)
            signal_group_if_ours(self.start.agent, signal.SIGKILL)

    async def renew(self, lease_ms: int) -> None:
        """Renew the lease: the session ends ``lease_ms`` from now, unless the lease is renewed again.

        A renewal never shortens a lease, and does not save a session that is being ended.
        """
        _write_order(self.directory, {"lease_until_boot_ms": proc.boot_ms() + lease_ms})
        await lowlevel.checkpoint()

    async def renew_fence(self, fence: Fence) -> None:
        """Move the fence of the session to a later time; an earlier one changes nothing.

        A session that is being ended keeps its fence. A session past its fence is not saved.
        """
        order: dict[str, durable.Json] = {
            "fence_until_boot_ms": fence.until_boot_ms,
            "fence_grace_ms": fence.grace_ms,
        }
        _write_order(self.directory, order)
        await lowlevel.checkpoint()

    async def output_tail(self, size_bytes: int) -> bytes:
        """Read the end of the agent's output so far."""
        return await output_tail(self.directory, size_bytes)


async def launch(
    directory: Path, spec: SessionSpec, *, lease_ms: int | None = None, fence: Fence | None = None
) -> SessionProcess:
    """Start a session in its own directory, and return when its start, or its failure, is on the disk.

    With ``lease_ms`` the session ends unless the lease is renewed in time; likewise with ``fence``. Launching a
    directory again, from any process, starts nothing and returns the same session. A cancelled launch leaves no
    process. Raises LaunchError if the session did not start: ``adopt`` has cancelled the start meanwhile, or the shim
    could not run.

    A launch after ``adopt`` returned None is a new decision, and removes the mark that ``adopt`` left.
    """
    until_ms = None if lease_ms is None else proc.boot_ms() + lease_ms
    if not await to_thread.run_sync(_prepare, directory, spec, until_ms, fence):
        return await _existing(directory)
    shim = _start_shim(directory)
    try:
        await _send_environment(shim, environment_of(directory, spec))
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
    """Find a session that another runner has started, or an earlier run of this one.

    A running session is returned as if launched here, and an ended one as its exit. None means that nothing was started
    in the directory. Nothing will start there before the next ``launch``: a late shim finds a mark and exits. If the
    shim died before it could record the end, the rest of the session is killed, and the outcome is "lost". Raises
    SurvivorsError if that fails.
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
        await anyio.sleep(_LOCK_POLL_S)  # a shim has the lock but no record yet, or another process settles


async def interrupt(directory: Path, request: str, silent: SilentSince | None = None) -> None:
    """Have the shim of a directory send SIGINT to the agent's own process, and to no other.

    ``request`` identifies the request: repeating it does not repeat the signal. A session that is over or being ended
    is not signalled, and neither is one whose shim does not read its orders. A request about a silence is void if the
    session has shown a sign since: the shim looks right before the signal.
    """
    order: dict[str, durable.Json] = {"interrupt": request}
    if silent is not None:
        order |= {"silent_since_ms": silent.since_ms, "heartbeat": _path_from(directory, silent.heartbeat)}
    with contextlib.suppress(ShimUnresponsiveError):
        _write_order(directory, order)
    await lowlevel.checkpoint()


def _path_from(directory: Path, path: Path) -> str:
    """Return the short form of a path: an order must not be long."""
    return os.path.relpath(path, directory)


async def hold(directory: Path, *, held: bool) -> None:
    """Have the shim of a directory hold the time limit of its session, or let it go on; repeating it changes nothing.

    A session that is over or being ended has no limit, and a shim that does not read its orders keeps it.
    """
    with contextlib.suppress(ShimUnresponsiveError):
        _write_order(directory, {"hold": held})
    await lowlevel.checkpoint()


async def output_tail(directory: Path, size_bytes: int) -> bytes:
    """Read the end of the output of a running or ended session."""
    return await to_thread.run_sync(output.tail, str(directory), size_bytes)


def output_pieces(directory: Path) -> Iterator[bytes]:
    """Yield the whole output of an ended session in pieces of bounded size. Raises ``OSError`` without an output."""
    return output.pieces(str(directory))


def _write_order(directory: Path, order: "dict[str, durable.Json]") -> bool:
    """Write an order to a directory's shim; return whether it has a shim. Writes this short are atomic (PIPE_BUF)."""
    try:
        fd = os.open(directory / durable.CONTROL, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # no process reads, or there is no FIFO
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


def _prepare(directory: Path, spec: SessionSpec, lease_until_boot_ms: int | None, fence: Fence | None) -> bool:
    """Write the order to start, and then remove an old mark; return False if the directory had a start already."""
    if any(durable.exists(str(directory), name) for name in (durable.STARTED, durable.EXIT)):
        return False
    cancelled = durable.exists(str(directory), durable.CANCELLED)
    write_spec(directory, spec, lease_until_boot_ms=lease_until_boot_ms, fence=fence)
    if cancelled:  # only a mark from before this launch; a later one cancels this launch
        durable.remove(str(directory), durable.CANCELLED)
    return True


def _start_shim(directory: Path) -> "subprocess.Popen[bytes]":
    """Start the shim in its own session. It closes its standard output when the start is decided.

    Its standard input carries the values of the agent's variables: only the shim reads the pipe, and it is on no disk.
    """
    make_private_file(directory / durable.SHIM_LOG)
    with (directory / durable.SHIM_LOG).open("ab") as log:
        return own_session.start(
            [sys.executable, "-I", "-S", str(SHIM), str(directory.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )


async def _send_environment(shim: "subprocess.Popen[bytes]", environment: bytes) -> None:
    """Send the agent's variables to the shim. A shim that refuses its directory reads nothing, and exits."""
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
    """Wait until the start is recorded, or the shim is dead."""
    assert shim.stdout is not None  # noqa: S101 - as started above
    with shim.stdout:
        await anyio.wait_readable(shim.stdout)


async def _existing(directory: Path) -> SessionProcess:
    """Return the session that a directory has already."""
    found = await adopt(directory)
    if found is None:
        why = await to_thread.run_sync(tail_lines, directory / durable.SHIM_LOG)
        raise LaunchError(f"no session was started in {directory}, and none will be: {why or 'it was cancelled'}")
    if isinstance(found, SessionProcess):
        return found
    return SessionProcess(directory, read_start(directory), None)


async def _undo(directory: Path, shim: "subprocess.Popen[bytes]") -> None:
    """End a cancelled launch, so that no process of it remains; another launch of the directory is not affected."""
    if _started_by(directory, shim) is not None:
        with contextlib.suppress(ShimUnresponsiveError), anyio.move_on_after(_UNDO_S):
            _write_order(directory, {"kill": True})
            await _wait_for_child(shim)
    shim.kill()  # it has decided nothing yet, or does not react; a reaped shim gets no signal
    await _wait_for_child(shim)
    start = _started_by(directory, shim)
    if start is not None:
        await _settled(directory, start)
    # The agent of a killed shim waits at its gate and holds the lock until it is dead.
    while read_start(directory) is None and is_held(directory):  # noqa: ASYNC110 - another process sets no event here
        await anyio.sleep(_LOCK_POLL_S)


def _started_by(directory: Path, shim: "subprocess.Popen[bytes]") -> SessionStart | None:
    """Read the record of the start, if this shim has written it."""
    start = read_start(directory)
    return start if start is not None and start.shim_pid == shim.pid else None


async def _wait_for_child(shim: "subprocess.Popen[bytes]") -> None:
    """Wait until a child of this process is dead, and reap it."""
    if shim.poll() is None and (identity := identify(shim.pid)) is not None:
        await _wait_for(identity)
    shim.wait()


async def _wait_for(identity: ProcessIdentity) -> None:
    """Wait until a process is dead, also if it is no child of this process."""
    pidfd = open_pidfd(identity)
    if pidfd is None:
        while is_alive(identity):  # noqa: ASYNC110 - another process sets no event here
            await anyio.sleep(_LIFE_POLL_S)
        return
    try:
        await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)


async def _settled(directory: Path, start: SessionStart | None) -> SessionExit:
    """Settle a session whose shim is dead."""
    while (found := await to_thread.run_sync(settle, directory, start)) is Unsettled.HELD:  # noqa: ASYNC110 - another process sets no event here
        await anyio.sleep(_LOCK_POLL_S)
    if isinstance(found, SessionExit):
        return found
    raise SessionFileError(f"{directory} has no record of its session any more: was it removed?")
