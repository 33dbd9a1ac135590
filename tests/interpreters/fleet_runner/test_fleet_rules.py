"""What the fleet's rules promise, with real processes and real git: recalls, stops, and places that cannot be made."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from fleet_ground import Ground
from fleet_operator import run, say, when
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.lifecycles import task
from lifefold.effects import CheckOutWork
from lifefold.interpreters.engine import ActivityContext, Interpreter
from lifefold.interpreters.fleet_runner import Runner, Verdict

SLOW_PROOF = """
[[tasks]]
id = "plain-1"
prompt = "Write plain-1.txt"
verify = [["sleep", "0.5"], ["test", "-s", "plain-1.txt"]]
"""


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_a_task_that_is_cancelled_while_it_is_worked_on_is_interrupted_and_never_merged(ground: Ground) -> None:
    """Its session has ended, which was no error, and its agent does the next task (E20)."""
    ground.prepare("slow-1", "plain-1")

    def arrange(runner: Runner) -> None:
        cancelled = task.Cancelled("not any more")
        cancel = partial(say, runner, "board", "task:slow-1", cancelled)
        when(runner, "task:slow-1", task.State.IN_PROGRESS, lambda _step: cancel())

    assert anyio.run(run, ground, arrange) is Verdict.SOME_FAILED
    assert ground.merges() == ["Merge plain-1: Write plain-1.txt"]
    assert ground.sessions("plain-1") == 1
    assert ground.json("status")["agents"][0]["total_errors"] == 0
    assert [each["state"] for each in ground.json("tasks")] == ["CANCELLED", "CLOSED"]
    assert ground.processes() == []


def test_a_stop_during_the_verification_loses_no_work(ground: Ground) -> None:
    """What is done is verified and merged, and only then is the agent gone."""
    ground.prepare().fleet.write_text(ground.fleet.read_text() + SLOW_PROOF)

    def arrange(runner: Runner) -> None:
        stop = partial(say, runner, "worker/agent", "desired_state", desired_state.StopWanted("enough"))
        when(runner, "assignment", assignment.State.VERIFYING, lambda _step: stop())

    assert anyio.run(run, ground, arrange) is Verdict.ALL_CLOSED
    assert ground.merges() == ["Merge plain-1: Write plain-1.txt"]
    assert [each["retries"] for each in ground.json("tasks")] == [0]
    assert ground.processes() == []


def test_a_blocked_merge_does_not_keep_a_runner_that_leaves(ground: Ground) -> None:
    """It is tried once, as a merge that has begun, and then it is the next run's."""
    ground.prepare("plain-1")
    mine = ground.folder / "repo" / "plain-1.txt"
    mine.write_text("the user's own")

    def arrange(runner: Runner) -> None:
        when(runner, "assignment", assignment.State.MERGING, lambda _step: runner.leave())

    assert anyio.run(run, ground, arrange) is Verdict.LEFT
    assert mine.read_text() == "the user's own"
    assert [each["state"] for each in ground.json("tasks")] == ["DONE"]


def broken(names: set[str], standard: list[Runner]) -> Interpreter:
    """Return an interpreter on which some agents can make no place for any task."""

    async def check_out(activity: CheckOutWork, context: ActivityContext) -> None:
        if context.origin.within.key in names:
            await context.report(assignment.CheckoutFailed("no space left"))
        else:
            await standard[0].handlers.check_out(activity, context)

    return Interpreter(activities={CheckOutWork: check_out})


def impatient(ground: Ground) -> None:
    """Let agents stop at their second error in a row."""
    kind = 'name = "agent"\n'
    ground.fleet.write_text(ground.fleet.read_text().replace(kind, f"{kind}max_consecutive_errors = 2\n"))


def test_an_agent_that_can_make_no_place_backs_off_and_the_others_do_its_work(ground: Ground) -> None:
    """No task loses a retry by it."""
    impatient(ground.prepare("plain-1", "plain-2", "plain-3", agents=2))
    runners: list[Runner] = []
    assert anyio.run(run, ground, runners.append, broken({"agent-1"}, runners)) is Verdict.ALL_CLOSED
    assert len(ground.merges()) == 3
    assert {each["retries"] for each in ground.json("tasks")} == {0}


def test_a_fleet_in_which_no_worktree_can_be_made_ends_and_says_why(ground: Ground) -> None:
    """Every agent stops at its threshold; the tasks are open, with the reason."""
    impatient(ground.prepare("plain-1", agents=2))
    runners: list[Runner] = []
    assert anyio.run(run, ground, runners.append, broken({"agent-1", "agent-2"}, runners)) is Verdict.SOME_FAILED
    assert {each["state"] for each in ground.json("status")["agents"]} == {"Stopped"}
    (left,) = ground.json("tasks")
    assert (left["state"], left["retries"]) == ("OPEN", 0)
    assert left["reason"].endswith("could not make its place: no space left")
    expected = "2 errors in a row (max_consecutive_errors = 2); the last was Error(no place for plain-1: no space left)"
    assert sorted(runners[0].notices) == [("agent-1", expected), ("agent-2", expected)]
    assert "plain-1: OPEN: agent-" in ground.run(code=1)


def test_a_message_whose_session_is_interrupted_by_another_is_in_the_prompt_that_succeeds(ground: Ground) -> None:
    """Everything that ``send`` called accepted, in order (D14). Sessions stand at the gate; the third may pass."""
    gate = ground.prepare("plain-1", gates=["plain-1"]).folder / "counts" / "plain-1.gate"
    with ground.running() as run:
        with gate.open("wb"):
            for letter in ("use blue", "write it in verse"):
                assert "accepted" in ground.call("send", "agent", letter).stdout
                run.until("session agent", "Interrupting -> BuildingPrompt")
                run.until("session agent", "Spawning -> Running")
            gate.open("wb").close()
        assert "1 of 1 tasks closed" in run.rest()
    assert ground.git("show", "main:plain-1.txt").endswith("You have messages:\n- use blue\n- write it in verse")
    (agent,) = ground.json("status")["agents"]
    assert (agent["attempt"], agent["total_errors"], agent["messages"]) == (3, 0, 0)
