"""A plan of thirty tasks with everything in it, on five agents of two kinds: all of it ends, and can be replayed."""

import os
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from fleet_operator import run, say, when
from fleet_sandbox import Sandbox
from lifefold.core.fleet import system
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Transition
from lifefold.core.lifecycles import approval, task
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.fleet_runner import Runner, Verdict
from lifefold.interpreters.store import SqliteStore

FLEET = """
[fleet]
name = "sandbox"
repository = "repo"
approve_plan = true

[fleet.retry]
backoff_base = "10ms"

[[agents]]
name = "coder"
count = 3
roles = ["code"]
command = ["{python}", "{folder}/agent.py", "{{prompt_file}}"]
env = {{ COUNTS = "{folder}/counts" }}
session_timeout = "20s"
grace = "300ms"
backoff_base = "50ms"

[[agents]]
name = "reviewer"
command = ["{python}", "{folder}/agent.py", "{{prompt_file}}"]
roles = ["review"]
env = {{ COUNTS = "{folder}/counts" }}
session_timeout = "20s"
grace = "300ms"
backoff_base = "50ms"

[[agents]]
name = "thinker"
kind = "python"
target = "thinker:Thinker"
roles = ["think"]
env = {{ COUNTS = "{folder}/counts" }}
session_timeout = "30s"
grace = "300ms"
backoff_base = "50ms"
"""

THINKER = """
import os, pathlib
from lifefold.interpreters.facades.cooperative import Agent

class Thinker(Agent):
    def process_work(self):
        task = os.environ["LIFEFOLD_TASK"]
        with (pathlib.Path(os.environ["COUNTS"]) / task).open("a") as file:
            file.write("thinker 1\\n")
        pathlib.Path(f"{task}.txt").write_text("thought about")
"""

CODE = 'role = "code"'
"""What a thinker must not take: it never crashes, hangs, splits its task or meets another one."""

PARTS = 'verify = [["test", "-s", "{id}+1.txt"], ["test", "-s", "{id}+2.txt"]]'
"""Of a task that is split: what its parts have written is its own work."""

BOTH_WRITE = 'verify = [["sh", "-c", "echo {id} >> both.txt"]]'
"""Of two tasks whose sessions have met: what is added to the same file by both is a conflict for who merges second."""


def _task(name: str, *lines: str, verify: str = 'verify = [["test", "-s", "{id}.txt"]]') -> str:
    said = (f'id = "{name}"', f'prompt = "Write {name}.txt"', verify.format(id=name), *lines)
    return "\n[[tasks]]\n" + "\n".join(said) + "\n"


def _after(*names: str) -> str:
    return f"depends_on = [{', '.join(repr(name) for name in names)}]".replace("'", '"')


PLAIN = tuple(f"plain-{number}" for number in range(13))
THIRTY = (
    *(_task(name, *([_after(PLAIN[place - 3])] if place > 2 else [])) for place, name in enumerate(PLAIN)),
    _task("crash-1", CODE),
    _task("crash-2", CODE, _after("plain-1")),
    _task("hang-1", CODE, "priority = 1"),
    _task("child-1", CODE),
    _task("split-1", CODE, "max_subtasks = 4", "priority = 1", verify=PARTS),
    _task("whole-1", _after("split-1")),
    _task("asked-1", 'approval = "merge"'),
    _task("asked-2", 'approval = "merge"', _after("plain-2")),
    _task("both-1", CODE, "priority = 1", verify=BOTH_WRITE),
    _task("both-2", CODE, "priority = 1", verify=BOTH_WRITE),
    _task("apart-1", 'files = ["apart/"]'),
    _task("apart-2", 'files = ["apart/one.txt"]'),
    _task("looked-1", 'role = "review"', _after("asked-1")),
    _task("thought-1", 'role = "think"', verify="verify = []"),
    _task("lost-1", "max_retries = 1", verify='verify = [["test", "-e", "nothing"]]'),
    _task("after-lost", _after("lost-1")),
    _task("dear-1", "budget = { sessions = 1 }", verify='verify = [["test", "-e", "nothing"]]'),
)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path).prepare()
    (tmp_path / "thinker.py").write_text(THINKER)
    os.mkfifo(tmp_path / "counts" / "meeting")
    sandbox.fleet.write_text(FLEET.format(python=sys.executable, folder=tmp_path) + "".join(THIRTY))
    return sandbox


def _person(runner: Runner) -> None:
    """Approve the plan; agree to one piece of work at once, and to the other when it was done a second time.

    No operator raises a spent budget, so the fleet is held in the end.
    """
    runner.waits_for_operators = False
    to_board = partial(say, runner, board.NAME)

    def grant(transition: Transition) -> None:
        to_board(transition.entity, approval.ApprovalGranted("looks good"))

    def refuse(transition: Transition) -> None:
        to_board(transition.entity, approval.ApprovalRefused("say it failed first"))

    when(runner, "plan", plan_approval.State.PROPOSED, lambda _: to_board("plan", plan_approval.PlanApproved("go")))
    when(runner, "task:asked-1", task.State.PENDING_APPROVAL, grant)
    when(runner, "task:asked-2", task.State.PENDING_APPROVAL, refuse, grant)


async def _folded(log: Path) -> Ledger:
    """Fold a log; that raises an error where a digest is not what it was."""
    ledger = Ledger(system)
    with SqliteStore.peek(log) as store:
        for _ in ledger.fold(await store.read()):
            pass
    return ledger


@pytest.mark.campaign
def test_thirty_tasks_with_everything_in_them_are_all_closed_or_settled_with_a_reason(sandbox: Sandbox) -> None:
    """What is closed is in the branch, once; what is not says why; nothing is left running; the log folds the same."""
    assert len(THIRTY) == 30
    assert anyio.run(partial(run, sandbox, _person)) is Verdict.HELD
    told = {each["id"]: each for each in sandbox.json("tasks")}
    parts = {"split-1+1", "split-1+2"}
    states = {name: each["state"] for name, each in told.items()}
    assert states == dict.fromkeys(told, "CLOSED") | {"lost-1": "FAILED", "after-lost": "BLOCKED", "dear-1": "BLOCKED"}
    assert told.keys() >= parts
    assert told["after-lost"]["reason"] == "depends on lost-1, which has failed"
    assert told["lost-1"]["reason"]
    assert (told["dear-1"]["reason"], sandbox.sessions("dear-1")) == ("its budget is spent: 1 of 1 session", 1)
    assert sandbox.sessions("asked-2") == 2
    assert sandbox.sessions("crash-1") == sandbox.sessions("crash-2") == sandbox.sessions("hang-1") == 2
    assert sandbox.sessions("split-1") == 1
    assert sandbox.sessions("both-1") + sandbox.sessions("both-2") == 3
    assert sorted(sandbox.git("show", "main:both.txt").split()) == ["both-1", "both-2"]
    merged = [subject.split()[1].rstrip(":") for subject in sandbox.merges()]
    assert len(merged) == len(set(merged))
    there = set(sandbox.git("ls-tree", "--name-only", "main").split())
    assert there >= {
        f"{name}.txt" for name in (*PLAIN, *parts, "crash-1", "asked-1", "asked-2", "looked-1", "thought-1")
    }
    sandbox.git("fsck", "--strict")
    assert sandbox.processes() == []
    once, again = (anyio.run(_folded, sandbox.log) for _ in range(2))
    assert once.aggregates == again.aggregates
    assert "parts" in sandbox.call("why", "split-1").stdout
