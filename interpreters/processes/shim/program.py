"""The shim's program: take the lock, start the agent, supervise it, and record how it ended."""

# Relative imports: see __main__.
# ruff: noqa: TID252
import errno
import fcntl
import os
import sys
import time

from . import durable, proc
from .agent import Agent
from .fence import PASSED, Fence
from .output import OutputLog
from .supervise import Spec, Supervisor

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # the same without enumerations, whose import costs more than all others here

OK, BROKEN, BUSY, CANCELLED, REPEATED, NO_ENVIRONMENT = 0, 70, 75, 76, 77, 78
"""Exit codes, in order: the session is over and recorded; the shim failed; another shim has the directory; the start
was cancelled; the session ran before. The last: the runner died before it had sent the agent's variables."""

_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2)
_LOCK_ATTEMPTS = 20
_READ_BYTES = 64 * 1024
_LOCK_PAUSE_S = 0.01
_RECORD_ATTEMPTS = 60
_RECORD_PAUSE_S = 1.0
_CLOSED = (errno.EACCES, errno.EPERM)


def main(arguments: list[str]) -> int:
    """Run the shim in the directory that the arguments name. Errors go to standard error."""
    if len(arguments) != 2:  # noqa: PLR2004 - the program and its directory
        sys.stderr.write(f"usage: {arguments[0]} RUN_DIRECTORY\n")
        return BROKEN
    os.chdir(arguments[1])  # the shim then follows a renamed directory
    if not _take_lock():
        return BUSY
    if durable.exists(".", durable.CANCELLED):
        return CANCELLED
    if durable.exists(".", durable.STARTED) or durable.exists(".", durable.EXIT):
        return REPEATED
    environment = _read_environment()
    return NO_ENVIRONMENT if environment is None else _run(environment)


def _run(environment: "dict[str, str]") -> int:
    """Run the agent of ``spec.json`` to its end."""
    wakeup_fd = _prepare_process()
    durable.reserve(".", durable.EXIT)
    output = OutputLog(".", 0)
    try:
        spec = Spec(proc.read_bytes(durable.SPEC).decode("utf-8"), environment)
        output = OutputLog(".", spec.output_limit_bytes)
        supervisor = _start(spec, output, wakeup_fd)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        message = f"cannot start the agent: {type(error).__name__}: {error}"
        return _record({"outcome": "spawn-failed", "message": message}, output)
    try:
        report = supervisor.run()
    except BaseException:
        supervisor.abandon()
        raise
    return _record(report, output)


def _take_lock() -> bool:
    """Take the directory's lock for life. Another process may hold it briefly, to find out whether a shim lives."""
    lock_fd = os.open(durable.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if durable.exists(".", durable.STARTED):
                return False
            time.sleep(_LOCK_PAUSE_S)
        else:
            return True
    return False


def _read_environment() -> "dict[str, str] | None":
    """Read the agent's variables from standard input, to its end; None if they are incomplete.

    The values come through a pipe, so that they are in no file. Truncated JSON counts as incomplete.
    """
    chunks: list[bytes] = []
    while chunk := os.read(0, _READ_BYTES):
        chunks.append(chunk)
    nothing_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing_fd, 0)
    os.close(nothing_fd)
    try:
        variables = durable.decode(b"".join(chunks).decode("utf-8"))
    except ValueError:
        variables = None
    if isinstance(variables, dict):
        return {name: str(value) for name, value in variables.items()}
    sys.stderr.write("the runner died before it had sent the agent's variables\n")
    return None


def _prepare_process() -> int:
    """Leave the runner's session, adopt orphans, and return a pipe through which signals arrive."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    proc.become_subreaper()
    wakeup_fd, signal_fd = os.pipe()
    os.set_blocking(wakeup_fd, False)
    os.set_blocking(signal_fd, False)
    signal.set_wakeup_fd(signal_fd, warn_on_full_buffer=False)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _wake)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return wakeup_fd


def _wake(_number: int, _frame: object) -> None:
    """Do nothing: a signal wakes the loop only if it has a handler."""


def _start(spec: Spec, output: OutputLog, wakeup_fd: int) -> Supervisor:
    """Fork the agent, record it, notify the runner by closing standard output, and open the agent's gate."""
    control_fd = _open_control()
    me = _start_time(os.getpid())
    boot_id = proc.boot_id()
    mark = f"{os.getpid()}:{me}:{boot_id}"
    agent = Agent(spec.argv, spec.cwd, {**spec.environment, durable.MARK_VARIABLE: mark})
    try:
        started: dict[str, durable.Json] = {
            "pid": agent.pid,
            "pgid": agent.pid,
            "start_time": _start_time(agent.pid),
            "boot_id": boot_id,
            "shim_pid": os.getpid(),
            "shim_start_time": me,
            "at_ms": proc.wall_ms(),
            "generation": spec.generation,
        }
        durable.write_durably(".", durable.STARTED, durable.encode(started))
        supervisor = Supervisor(spec, agent, output, control_fd, wakeup_fd)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        _must_be_before(spec.fence_until_boot_ms)
    except BaseException:
        agent.abort()
        raise
    agent.go()
    return supervisor


def _must_be_before(fence_until_boot_ms: int | None) -> None:
    """Raise ValueError past the fence: the host may have been frozen while it started this shim."""
    if Fence(fence_until_boot_ms, 0).passes(proc.boot_ms()):
        raise ValueError(PASSED)


def _start_time(pid: int) -> int:
    found = proc.stat(pid)
    if found is None:
        raise OSError(errno.ESRCH, f"process {pid} is gone")
    return found.start_time


def _open_control() -> int:
    if not durable.exists(".", durable.CONTROL):
        os.mkfifo(durable.CONTROL, 0o600)
    return os.open(durable.CONTROL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def _record(record: "dict[str, Any]", output: OutputLog) -> int:
    """Write ``exit.json``. Retry for a minute if the disk is full, but not if the directory was removed or closed."""
    output.finish()
    record["message"] = "; ".join(part for part in (record["message"], output.error) if part)
    record.update(output_bytes=output.total_bytes, output_dropped_bytes=output.dropped_bytes, at_ms=proc.wall_ms())
    for attempt in range(_RECORD_ATTEMPTS):
        try:
            durable.write_durably(".", durable.EXIT, durable.encode(record))
        except OSError as error:
            sys.stderr.write(f"cannot write {durable.EXIT} (attempt {attempt}): {error}\n")
            if error.errno in _CLOSED or os.lstat(".").st_nlink == 0:
                break
            time.sleep(_RECORD_PAUSE_S)
        else:
            return OK
    return BROKEN
