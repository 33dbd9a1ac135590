"""What the fleet's rules promise, with real processes and real git: recalls, stops, and places that cannot be made."""

from functools import partial

import anyio

from fleet_operator import run, say, when
from fleet_sandbox import Sandbox
from lifefold.core.fleet.worker import assignment
from lifefold.core.lifecycles import task
from lifefold.interpreters.fleet_runner import Runner, Verdict


def test_a_task_that_is_cancelled_while_it_is_worked_on_is_interrupted_and_never_merged(sandbox: Sandbox) -> None:
    """Its session has ended, which was no error, and its agent does the next task (E20)."""
    sandbox.prepare("slow-1", "plain-1")

    def arrange(runner: Runner) -> None:
        cancelled = task.Cancelled("not any more")
        cancel = partial(say, runner, "board", "task:slow-1", cancelled)
        when(runner, "task:slow-1", task.State.IN_PROGRESS, lambda _step: cancel())

    assert anyio.run(run, sandbox, arrange) is Verdict.SOME_FAILED
    assert sandbox.merges() == ["Merge plain-1: Write plain-1.txt"]
    assert sandbox.sessions("plain-1") == 1
    assert sandbox.json("status")["agents"][0]["total_errors"] == 0
    assert [each["state"] for each in sandbox.json("tasks")] == ["CANCELLED", "CLOSED"]
    assert sandbox.processes() == []


def test_a_blocked_merge_does_not_keep_a_runner_that_leaves(sandbox: Sandbox) -> None:
    """It is tried once, as a merge that has begun, and then it is the next run's."""
    sandbox.prepare("plain-1")
    mine = sandbox.folder / "repo" / "plain-1.txt"
    mine.write_text("the user's own")

    def arrange(runner: Runner) -> None:
        when(runner, "assignment", assignment.State.MERGING, lambda _step: runner.leave())

    assert anyio.run(run, sandbox, arrange) is Verdict.LEFT
    assert mine.read_text() == "the user's own"
    assert [each["state"] for each in sandbox.json("tasks")] == ["DONE"]
