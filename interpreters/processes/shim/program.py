"""The shim from its first step to its last: take the lock, start the agent, supervise it, record how it ended."""

# Relative imports: see __main__.
# ruff: noqa: TID252
import errno
import fcntl
import os
import sys
import time

from . import durable, proc
from .agent import Agent
from .output import OutputLog
from .supervise import Spec, Supervisor

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # the same without its enumerations, whose import costs more than all else here

OK, BROKEN, BUSY, CANCELLED, REPEATED, UNTOLD = 0, 70, 75, 76, 77, 78
"""Exit codes: all done and recorded; a fault; another shim has the directory; told not to start; ran before; the runner
was gone before it had told the agent's variables, and nothing was started."""

_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2)
_LOCK_ATTEMPTS = 20
_READ_BYTES = 64 * 1024
_LOCK_PAUSE_S = 0.01
_RECORD_ATTEMPTS = 60
_RECORD_PAUSE_S = 1.0


def main(arguments: list[str]) -> int:
    """Run the shim in the directory that the arguments name. What goes wrong is told on standard error."""
    if len(arguments) != 2:  # noqa: PLR2004 - the program and its directory
        sys.stderr.write(f"usage: {arguments[0]} RUN_DIRECTORY\n")
        return BROKEN
    os.chdir(arguments[1])  # whoever renames the directory takes us along
    if not _take_lock():
        return BUSY
    if durable.exists(".", durable.CANCELLED):
        return CANCELLED
    if durable.exists(".", durable.STARTED) or durable.exists(".", durable.EXIT):
        return REPEATED
    environment = _told_environment()
    return UNTOLD if environment is None else _run(environment)


def _run(environment: "dict[str, str]") -> int:
    """Run the agent that ``spec.json`` describes to its end."""
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
    """Take the directory's lock for life. It may be held for a moment by who only looks whether a shim lives."""
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


def _told_environment() -> "dict[str, str] | None":
    """Read the agent's variables from standard input, to its end; None if that is not all of them.

    The values come through a pipe, so that they are in no file. JSON that is cut off is none.
    """
    chunks: list[bytes] = []
    while chunk := os.read(0, _READ_BYTES):
        chunks.append(chunk)
    nothing_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing_fd, 0)
    os.close(nothing_fd)
    try:
        told = durable.decode(b"".join(chunks).decode("utf-8"))
    except ValueError:
        told = None
    if isinstance(told, dict):
        return {name: str(value) for name, value in told.items()}
    sys.stderr.write("the runner went before it had told the agent's variables\n")
    return None


def _prepare_process() -> int:
    """Leave the runner's session, take in orphans, and hear signals through a pipe, whose end is returned."""
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
    """Do nothing: that a signal has a handler is what makes it wake the loop."""


def _start(spec: Spec, output: OutputLog, wakeup_fd: int) -> Supervisor:
    """Fork the agent, record it, tell the runner by closing standard output, and let the agent go."""
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
    except BaseException:
        agent.abort()
        raise
    agent.go()
    return supervisor


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
    """Write ``exit.json``, trying for a minute if the disk is full; at once give up if the directory is removed."""
    output.finish()
    record["message"] = "; ".join(part for part in (record["message"], output.error) if part)
    record.update(output_bytes=output.total_bytes, output_dropped_bytes=output.dropped_bytes, at_ms=proc.wall_ms())
    for attempt in range(_RECORD_ATTEMPTS):
        try:
            durable.write_durably(".", durable.EXIT, durable.encode(record))
        except OSError as error:
            sys.stderr.write(f"cannot write {durable.EXIT} (attempt {attempt}): {error}\n")
            if os.lstat(".").st_nlink == 0:
                break
            time.sleep(_RECORD_PAUSE_S)
        else:
            return OK
    return BROKEN
