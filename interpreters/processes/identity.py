"""The identity of a process, and signals that reach no other process.

The kernel reuses pids. A pid with its start time and boot names one process for ever. A signal is sent through a pidfd.
The pidfd is opened first and the identity compared then, so the pid cannot be reused in between.

Without pidfds (macOS) the comparison comes microseconds before the signal, and the start time is that of ``ps``, exact
to a second.
"""

import contextlib
import os
import signal
import sys

import msgspec

from lifefold.interpreters.processes.shim import proc

_GROUP_OF_THE_PIDFD = 4  # PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9


class ProcessIdentity(msgspec.Struct, frozen=True):
    """The identity of one process, different from that of a later process with the same pid.

    ``start_time`` is in clock ticks since boot (Linux) or seconds of the epoch. It serves for comparisons only.
    """

    pid: int
    start_time: int
    boot_id: str


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the living process with a pid; None if there is none. A zombie does not count."""
    found = proc.stat(pid)
    if found is None or found.dead:
        return None
    return ProcessIdentity(pid, found.start_time, proc.boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Tell whether the process lives: it is no zombie, of this boot, and no other process with the same pid."""
    return identify(identity.pid) == identity


def open_pidfd(identity: ProcessIdentity) -> int | None:
    """Open a pidfd of the process, which the caller closes; None if the process is dead, or without pidfds."""
    if sys.platform != "linux":
        return None
    try:
        pidfd = os.pidfd_open(identity.pid)
    except OSError:  # no such process, or a kernel older than 5.3
        return None
    if is_alive(identity):
        return pidfd
    os.close(pidfd)
    return None


def signal_if_ours(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal the process; return False if it is dead, and signal no process then."""
    with contextlib.suppress(ProcessLookupError):
        if (pidfd := open_pidfd(identity)) is not None:
            try:
                _send_by_pidfd(pidfd, number)
            finally:
                os.close(pidfd)
            return True
        if not _has_pidfds() and is_alive(identity):
            os.kill(identity.pid, number)
            return True
    return False


def signal_group_if_ours(leader: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal the process group of its leader; return False if the process leads none, and signal no process then.

    A zombie leader still proves its group, because the group's number cannot be reused. A reaped leader proves nothing.
    Linux before 6.9 cannot signal a group through a pidfd; there the check comes right before the signal.
    """
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(leader.pid) if sys.platform == "linux" and _has_pidfds() else None
        try:
            found = proc.stat(leader.pid)
            if found is None or found.pgid != leader.pid or not _same(leader, found):
                return False
            if pidfd is None or not _send_to_group(pidfd, number):
                os.killpg(leader.pid, number)
        finally:
            if pidfd is not None:
                os.close(pidfd)
        return True
    return False


def _same(identity: ProcessIdentity, found: proc.Stat) -> bool:
    return (identity.start_time, identity.boot_id) == (found.start_time, proc.boot_id())


def _send_by_pidfd(pidfd: int, number: signal.Signals) -> None:
    if sys.platform == "linux":
        signal.pidfd_send_signal(pidfd, number)


def _send_to_group(pidfd: int, number: signal.Signals) -> bool:
    """Signal the group of a pidfd's process; return False if the kernel does not support that."""
    try:
        if sys.platform == "linux":
            signal.pidfd_send_signal(pidfd, number, None, _GROUP_OF_THE_PIDFD)
    except ProcessLookupError:
        raise
    except OSError:
        return False
    return sys.platform == "linux"


def _has_pidfds() -> bool:
    """Tell whether this kernel has pidfds (Linux 5.3)."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True
