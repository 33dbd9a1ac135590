"""A fuse: a file that says at which point of a run which processes are killed, once.

The runner, the agents, git and its filters all pass points. A process that reaches the point of the fuse for the n-th
time burns it, and kills. Only one process can rename the file, so the fuse burns once.
"""

import contextlib
import fcntl
import json
import os
import signal
from pathlib import Path

ENVIRONMENT = "TORTURE_FUSE"
"""The variable with the path of the fuse."""

KINDS = {"tortured_runner.py": "runner", "__main__.py": "shim", "agent.py": "agent", "git": "git"}
"""What a process is, by the name of its program."""


def lay(path: Path, point: str, at: int, victim: str) -> None:
    """Lay a fuse: at the ``at``-th pass of the point, the victim is killed."""
    path.write_text(json.dumps({"point": point, "at": at, "victim": victim}))


def is_burnt(path: Path) -> bool:
    """Tell whether the fuse has burnt."""
    return path.with_suffix(".burnt").exists()


def reach(point: str) -> None:
    """Pass a point."""
    path = Path(os.environ[ENVIRONMENT])
    try:
        fuse = json.loads(path.read_text())
        if fuse["point"] == point and _passed(path.with_suffix(".passed")) == fuse["at"]:
            path.rename(path.with_suffix(".burnt"))
            strike(path.parent, fuse["victim"])
    except FileNotFoundError:
        return


def _passed(file: Path) -> int:
    """Count a pass; return which one it is."""
    with file.open("a+") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.write("x")
        opened.flush()
        return os.fstat(opened.fileno()).st_size


def strike(folder: Path, victim: str) -> None:
    """Kill the processes of a kind that work for the fleet in a folder; this process last."""
    every = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    ours = [pid for pid in every if _is_of(pid, folder)]
    if record := os.environ.get("TORTURE_SIGNALS"):  # later signals of this process are the test's
        with Path(record).open("a") as file:
            file.write(f"strike {os.getpid()} 0 0 0 - 0 0 0\n")
    own, groups = os.getpid(), victim.endswith("group")
    struck = [pid for pid in ours if victim == "everything" or kind(pid) == victim.removesuffix(" group")]
    for pid in sorted(struck, key=lambda pid: pid == own):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.getpgid(pid), signal.SIGKILL) if groups else os.kill(pid, signal.SIGKILL)


def kind(pid: int) -> str:
    """Return what a process is: runner, shim, agent, git, or an empty text."""
    words = _read(pid, "cmdline").split(b"\0")
    programs = (each.rpartition(b"/")[2] for each in words if each.endswith(b".py"))
    program = next(programs, words[0].rpartition(b"/")[2])
    return KINDS.get(program.decode(errors="replace"), "")


def _is_of(pid: int, folder: Path) -> bool:
    return f"{ENVIRONMENT}={folder}/".encode() in _read(pid, "environ")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
