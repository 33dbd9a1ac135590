"""Who a process is, and signals that reach nobody else.

A pid alone names whoever has it now. With the start time and the boot it names one process for ever; a signal is sent
through a pidfd that was opened first and compared then, so that there is no moment in which the pid could change
hands.

Where there are no pidfds (macOS), the comparison comes right before the signal, which leaves microseconds, and the
start time is what ``ps`` says, exact to a second.
"""

import contextlib
import os
import signal
import sys

import msgspec

from lifefold.interpreters.processes.shim import proc

_GROUP_OF_THE_PIDFD = 4  # PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9


class ProcessIdentity(msgspec.Struct, frozen=True):
    """One process, never to be confused with a later one of the same pid.

    ``start_time`` is in clock ticks since boot (Linux) or seconds of the epoch, and only good for comparing.
    """

    pid: int
    start_time: int
    boot_id: str


def identify(pid: int) -> ProcessIdentity | None:
    """Say who has a pid now; None if nobody lives there. A zombie does not live."""
    found = proc.stat(pid)
    if found is None or found.dead:
        return None
    return ProcessIdentity(pid, found.start_time, proc.boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Tell whether this very process lives: not a zombie, not of an earlier boot, not another of the same pid."""
    return identify(identity.pid) == identity


def open_pidfd(identity: ProcessIdentity) -> int | None:
    """Open a pidfd of this very process, to be closed by the caller; None if it does not live, or without pidfds."""
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
    """Signal this very process; False if it does not live, in which case nobody was signalled."""
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
    """Signal the process group that this very process leads; False if it leads none, and nobody was signalled.

    A leader that is a zombie still proves its group: nobody else can have the group's number. One that was reaped
    proves nothing. Kernels before Linux 6.9 cannot signal a group through a pidfd; there the check comes right before.
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
    """Signal the group of a pidfd's process; False if the kernel does not know how."""
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
