"""Facts from the kernel: processes with parent and group, the boot id, and the clocks (milliseconds)."""

# pathlib is slow to import.
# ruff: noqa: PTH123, PTH208
import os
import sys
import time

LINUX = sys.platform == "linux"

_READ_LIMIT_BYTES = 4 * 1024 * 1024
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Stat:
    """An entry of the process table; ``dead`` is true for a zombie.

    ``start_time`` counts clock ticks since boot (elsewhere than on Linux: seconds of the epoch).
    """

    __slots__ = ("dead", "pgid", "ppid", "sid", "start_time")

    def __init__(self, *, dead: bool, ppid: int, pgid: int, sid: int, start_time: int) -> None:
        self.dead = dead
        self.ppid = ppid
        self.pgid = pgid
        self.sid = sid
        self.start_time = start_time


def read_bytes(path: str, limit_bytes: int = _READ_LIMIT_BYTES) -> bytes:
    """Read at most ``limit_bytes`` of a file."""
    with open(path, "rb", buffering=0) as file:
        chunks: list[bytes] = []
        while limit_bytes > 0 and (chunk := file.read(limit_bytes)):
            chunks.append(chunk)
            limit_bytes -= len(chunk)
        return b"".join(chunks)


def stat(pid: int) -> Stat | None:
    """Return the process with a pid; None if there is none."""
    if not LINUX:
        return _stat_by_ps(pid)
    try:
        line = read_bytes(f"/proc/{pid}/stat", 4096)
    except OSError:
        return None
    fields = line[line.rindex(b")") + 2 :].split()  # the name before it may hold blanks and brackets
    return Stat(
        dead=fields[0] in b"ZX",
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        sid=int(fields[3]),
        start_time=int(fields[19]),
    )


def _stat_by_ps(pid: int) -> Stat | None:
    """Call ``ps``, on systems without ``/proc``. The start time is exact to a second only."""
    import calendar  # noqa: PLC0415 - slow to import, and not needed on Linux
    import subprocess  # noqa: PLC0415 - as above

    columns = ["-o", "state=", "-o", "ppid=", "-o", "pgid=", "-o", "lstart="]
    environment = {"LC_ALL": "C", "PATH": "/bin:/usr/bin", "TZ": "UTC"}
    shown = subprocess.run(  # noqa: S603 - the arguments are constants and a number
        ["/bin/ps", *columns, "-p", str(pid)], capture_output=True, text=True, check=False, env=environment
    )
    fields = shown.stdout.split(maxsplit=3)
    if len(fields) < 4:  # noqa: PLR2004 - as many as there are columns
        return None
    began_s = calendar.timegm(time.strptime(fields[3].strip(), "%a %b %d %H:%M:%S %Y"))
    return Stat(dead=fields[0].startswith("Z"), ppid=int(fields[1]), pgid=int(fields[2]), sid=0, start_time=began_s)


def boot_id() -> str:
    """Return the id of this boot of the machine; "unknown" if the system has none."""
    try:
        if LINUX:
            return read_bytes("/proc/sys/kernel/random/boot_id", 256).decode("ascii").strip()
        import subprocess  # noqa: PLC0415 - slow to import, and not needed on Linux

        query = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - constant
    except (OSError, ValueError):
        return "unknown"


def pids() -> list[int]:
    """List every process of this PID namespace; none on systems without ``/proc``."""
    if not LINUX:
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children() -> list[int]:
    """List the children of this process, with zombies. The kernel may omit one while another one exits."""
    me = os.getpid()
    try:
        return [int(pid) for pid in read_bytes(f"/proc/self/task/{me}/children").split()]
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid in pids() if (found := stat(pid)) is not None and found.ppid == me]


def boot_ms() -> int:
    """Read the clock of leases: the time since boot, which includes suspensions (Linux)."""
    clock = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    return time.clock_gettime_ns(clock) // 1_000_000


def monotonic_ms() -> int:
    """Read the clock for durations, which stops while the machine is suspended."""
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Read the time of day, in milliseconds of the epoch: for operators, never for decisions."""
    return time.time_ns() // 1_000_000


def become_subreaper() -> None:
    """Make orphaned descendants children of this process instead of init (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: int) -> None:
    """Let the kernel send this process a signal when its parent dies (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def _prctl(option: int, value: int) -> None:
    if not LINUX:
        return
    import ctypes  # noqa: PLC0415 - slow to import, and the runner does not need it

    if ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
