"""A tool, the siblings of a task, and a whole family are aborted, with real processes: who is gone, and who goes on."""

import os
import select
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fleet_sandbox import HANG_S, Run, Sandbox

AGENT = r"""
import os, pathlib, subprocess, sys, time

counts, task = pathlib.Path(os.environ["COUNTS"]), os.environ["LIFEFOLD_TASK"]
lifefold = [sys.executable, "-m", "lifefold.interpreters.cli"]
if "+" not in task:
    parts = [word for n in (1, 2, 3) for word in ("--part", f"do part {n}")]
    subprocess.run([*lifefold, "split", *parts], check=True)
    time.sleep(600)
(counts / f"{task}.pid").write_text(str(os.getpid()))
(counts / f"{task}.gate").open().read()
if task.endswith("+1"):
    abort = ["abort", "--scope", "tool", "--tool", "tests", "--because", "out of memory"]
    (counts / "said").write_text(subprocess.run([*lifefold, *abort], capture_output=True, text=True).stdout)
(counts / f"{task}-late.gate").open().read()
pathlib.Path("done.txt").write_text("done")
"""

PARTS = ("T+1", "T+2", "T+3")
OTHERS = PARTS[1:]


def prepared(folder: Path, *keys: str) -> Sandbox:
    """Return the sandbox of three agents, with a task that the first of them splits in three."""
    gates = (*PARTS, *(f"{name}-late" for name in PARTS))
    sandbox = Sandbox(folder).prepare("T", agents=3, repository=False, gates=gates)
    (folder / "agent.py").write_text(AGENT)
    table = "\n".join(("[fleet.aborts]", *keys))
    text = sandbox.fleet.read_text().replace('verify = [["test", "-s", "T.txt"]]', "")
    sandbox.fleet.write_text(text.replace("[fleet.retry]", f"{table}\n\n[fleet.retry]"))
    return sandbox.demand("T", "max_subtasks = 3")


@contextmanager
def at_work(of: Sandbox) -> Generator[tuple[Run, dict[str, int]]]:
    """Run the fleet until the first part has said that its tool was aborted, and waits; with a handle of each process.

    Sessions of the other two are at work meanwhile, and have not ended by themselves.
    """
    with of.running() as run, ExitStack() as held:
        for name in OTHERS:
            held.enter_context(of.at_gate(name))
        with of.at_gate("T+1"):
            pids = {name: int((of.folder / "counts" / f"{name}.pid").read_text()) for name in PARTS}
            handles = {name: os.pidfd_open(pid) for name, pid in pids.items()}
            for each in handles.values():
                held.callback(os.close, each)
        with of.at_gate("T+1-late"):
            yield run, handles
        run.rest()


def is_over(handle: int, within_s: float = HANG_S) -> bool:
    """Tell whether a process ends within a time."""
    return bool(select.select([handle], [], [], within_s)[0])


def states(of: Sandbox) -> dict[str, str]:
    """Return the states of all tasks."""
    return {each["id"]: each["state"] for each in of.json("tasks")}


def aborted(of: Sandbox, reason: str) -> dict[str, set[str]]:
    """Return what was aborted for a reason, tasks and sessions, by their kinds."""
    found = [each for each in of.json("log") if each["abort_reason"] == reason]
    kinds = {each["entity_type"] for each in found}
    return {kind: {each["entity_id"] for each in found if each["entity_type"] == kind} for kind in kinds}


def ends_of(of: Sandbox, *tasks: str) -> dict[str, set[str]]:
    """Return tasks with the agents that have claimed them, as ``aborted`` does."""
    claims = [each for each in of.json("log") if each["metadata"]["event"] == "Claimed" and each["entity_id"] in tasks]
    owners = {each["reason"].split(",")[0] for each in claims}
    return {"task": {*tasks}, "session": owners, "assignment": owners, "turn": owners}


def test_a_tool_takes_siblings_along_if_the_fleet_file_says_so_and_the_caller_goes_on(tmp_path: Path) -> None:
    """Their processes are gone, its own is not; it ends its work, which counts. The log and ``why`` say why."""
    of = prepared(tmp_path, "tool_to_sibling = true")
    with at_work(of) as (_, processes):
        assert (tmp_path / "counts" / "said").read_text() == "T+1: aborted: T+2 T+3\n"
        assert all(is_over(processes[name]) for name in OTHERS)
        assert not is_over(processes["T+1"], 0)
        assert states(of) == {"T": "BLOCKED", "T+1": "IN_PROGRESS", "T+2": "CANCELLED", "T+3": "CANCELLED"}
    assert states(of)["T+1"] == "CLOSED"
    assert of.processes() == []
    reason = "sibling_aborted: the tool tests was aborted at T+1: out of memory"
    assert {each["reason"] for each in of.json("tasks") if each["id"] in OTHERS} == {reason}
    assert "its tool tests was aborted, and its session goes on: out of memory" in of.call("why", "T+1").stdout
    assert reason in of.call("why", "T+2").stdout
    assert aborted(of, "sibling_aborted") == ends_of(of, *OTHERS)


def test_a_family_that_is_aborted_has_the_reasons_of_its_parents_in_the_journal(tmp_path: Path) -> None:
    """The operator aborts the whole; its parts, and the sessions at them, end because their parent does."""
    of = prepared(tmp_path)
    with at_work(of) as (_, processes):
        of.call("abort", "T", "--scope", "session")
        assert all(is_over(each) for each in processes.values())
    assert aborted(of, "parent_aborted") == ends_of(of, *PARTS)
