"""A program in a namespace with few pids, in which other processes get the pids of a dead fleet.

It is the first process of its namespace. Sessions of a fleet are begun, and all processes of the fleet are killed.
Then a *bystander* takes each pid that the fleet has recorded: of shims, agents and commands. The fleet is run again to
its end. Standard input has the folder, so that no bystander has it in its command line. The output is JSON: the number
of taken pids, the exit codes, and what is wrong.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

import fuse
from kills import Trial
from lifefold.interpreters.processes import ProcessIdentity, identify, read_start, signal_group_if_ours, signal_if_ours
from lifefold.interpreters.processes.left_command import CommandRecord

PIDS = 900
"""The largest pid, where the system has a limit for each namespace."""


def take(pid: int) -> bool:
    """Fork a process with this pid, the leader of a session of its own; tell whether that was possible."""
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.pause()
        os._exit(0)
    if child != pid:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return child == pid


def lives(pid: int) -> bool:
    """Tell whether a bystander, a child of this process, has not been killed."""
    return os.waitpid(pid, os.WNOHANG) == (0, 0)


def ticks_since_boot() -> int:
    """Return the time in clock ticks, the unit of start times."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def reap_all() -> None:
    """Reap every process that has died: all orphans of a namespace are children of its first process."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def of_functions(folder: Path) -> list[str]:
    """Have a bystander take the pid of a dead process; return what reached it."""
    with subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True) as process:
        dead = identify(process.pid)
        record = CommandRecord(folder / "record" / "left.json")
        record.write(process.pid)
        assert dead is not None
        while ticks_since_boot() <= dead.start_time + 1:  # a later process has another start time
            pass
        process.kill()
    assert take(dead.pid)
    both = (signal_if_ours, signal_group_if_ours)
    wrong = [f"{each.__name__} has sent a signal" for each in both if each(dead, signal.SIGKILL)]
    anyio.run(record.end_left_over)
    return [*wrong, *([] if lives(dead.pid) else ["the bystander of the functions is dead"])]


def recorded(folder: Path) -> list[ProcessIdentity]:
    """Return the processes that a fleet has recorded."""
    found: list[ProcessIdentity] = []
    for file in folder.rglob("started.json"):
        start = read_start(file.parent)
        if start is not None:
            found += [start.agent, start.shim]
    return found


def main(folder: Path) -> dict[str, object]:
    """Kill a fleet, have its pids taken, and run it to its end."""
    try:
        Path("/proc/sys/kernel/pid_max").write_text(str(PIDS))
        limited = True
    except OSError:  # the limit is one of the whole machine before Linux 6.14
        limited = False
    wrong = of_functions(folder)
    trial = Trial(folder)
    fuse.lay(trial.fuse, "agent is at work", 2, "everything")
    codes = [trial.run()]
    trial.fuse.unlink(missing_ok=True)
    reap_all()
    taken = [each.pid for each in recorded(folder / ".lifefold") if identify(each.pid) is None and take(each.pid)]
    codes.append(trial.run())
    wrong += [f"the bystander with pid {pid} is dead" for pid in taken if not lives(pid)]
    wrong += list(trial.problems())
    return {"taken": len(taken), "codes": codes, "limited": limited, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.stdin.readline().strip()))))
