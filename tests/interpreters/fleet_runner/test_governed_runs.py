"""Fleets in which people have a word, with real processes and real git: approvals, roles, files, and tasks in parts."""

import signal
from itertools import pairwise
from typing import Any

import anyio
import pytest

from back_ends import LATER, on_asyncio, on_trio
from fleet_operator import run, say, when
from fleet_sandbox import Sandbox
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Transition
from lifefold.core.lifecycles import approval, task
from lifefold.effects import ParkWork
from lifefold.interpreters.engine import ActivityContext, Interpreter
from lifefold.interpreters.fleet_runner import Runner, Verdict

ASKS = 'approval = "merge"'


def alone(_runner: Runner) -> None:
    """Leave a fleet to itself: no operator says anything."""


def tasks(sandbox: Sandbox) -> dict[str, Any]:
    """Return the tasks as the log has them."""
    return {each["id"]: each for each in sandbox.json("tasks")}


def lines(sandbox: Sandbox) -> list[str]:
    """Return what has happened, a line for each transition."""
    return sandbox.call("log", "--all").stdout.splitlines()


def grant(runner: Runner, name: str) -> None:
    """Agree to a task's work."""
    say(runner, "board", f"task:{name}", approval.ApprovalGranted())


# -- a person's word before the merge


@on_trio
def test_work_that_waits_for_a_person_is_merged_when_he_agrees_and_its_agent_goes_on_meanwhile(
    sandbox: Sandbox, backend: str
) -> None:
    """The same agent does the next task in the same worktree, and merges both, each as it was verified."""
    sandbox.prepare("ask-1", "plain-2").demand("ask-1", ASKS)
    seen: list[object] = []

    def arrange(runner: Runner) -> None:
        def agree(_step: Transition) -> None:
            seen.extend((sandbox.merges(), runner.aggregates["board"].record("task:ask-1").state))
            grant(runner, "ask-1")

        when(runner, "task:plain-2", task.State.CLOSED, agree)

    assert anyio.run(run, sandbox, arrange, backend=backend) is Verdict.ALL_CLOSED
    assert seen == [["Merge plain-2: Write plain-2.txt"], task.State.PENDING_APPROVAL]
    assert sandbox.merges() == ["Merge ask-1: Write ask-1.txt", "Merge plain-2: Write plain-2.txt"]
    assert (sandbox.sessions("ask-1"), sandbox.sessions("plain-2")) == (1, 1)
    assert sandbox.git("show", "--name-only", "--format=", "-m", "--first-parent", "main").split() == ["ask-1.txt"]
    assert sandbox.processes() == []


@LATER
@on_trio
def test_work_whose_agent_has_stopped_is_merged_by_another(sandbox: Sandbox, backend: str) -> None:
    """By any free worker: from the recorded commit, and in no session."""
    sandbox.prepare("ask-1", agents=2).demand("ask-1", ASKS)

    def arrange(runner: Runner) -> None:
        def stop(step: Transition) -> None:
            assert step.before is not None
            owner = step.before.record.owner
            when(runner, f"worker_slot:{owner}", worker_slot.State.GONE, lambda _: grant(runner, "ask-1"))
            say(runner, f"worker/{owner}", "desired_state", desired_state.StopWanted("enough"))

        when(runner, "task:ask-1", task.State.PENDING_APPROVAL, stop)

    assert anyio.run(run, sandbox, arrange, backend=backend) is Verdict.ALL_CLOSED
    assert sandbox.merges() == ["Merge ask-1: Write ask-1.txt"]
    assert sandbox.sessions("ask-1") == 1
    (asked,) = [line for line in lines(sandbox) if "PENDING_APPROVAL -> DONE" in line]
    (handed,) = [line for line in lines(sandbox) if "Handed" in line]
    assert sandbox.agents_of("ask-1")[0] not in handed
    assert lines(sandbox).index(asked) < lines(sandbox).index(handed)


@LATER
@on_trio
def test_work_that_does_not_fit_any_more_when_a_person_agrees_is_done_again(sandbox: Sandbox, backend: str) -> None:
    """Another merge was there meanwhile: the next prompt says so, and the operator is asked again."""
    sandbox.prepare("ask-1").demand("ask-1", ASKS)

    def arrange(runner: Runner) -> None:
        def meddle(_step: Transition) -> None:
            (sandbox.folder / "repo" / "ask-1.txt").write_text("the user's own\n")
            sandbox.git("add", "--all")
            sandbox.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "mine")
            grant(runner, "ask-1")

        when(runner, "task:ask-1", task.State.PENDING_APPROVAL, meddle, lambda _: grant(runner, "ask-1"))

    assert anyio.run(run, sandbox, arrange, backend=backend) is Verdict.ALL_CLOSED
    assert "conflicts with what others have merged meanwhile, in ask-1.txt" in sandbox.git("show", "main:ask-1.txt")
    assert sandbox.sessions("ask-1") == 2
    assert len(sandbox.merges()) == 1


def test_a_runner_that_is_killed_while_work_waits_for_a_person_loses_nothing(sandbox: Sandbox) -> None:
    """Kill -9, twice: while it waits, and when it was agreed to. The work is merged once, and not done again."""
    sandbox.prepare("ask-1", "plain-2").demand("ask-1", ASKS)
    with sandbox.running() as first:
        first.until("task plain-2", "CLOSED")
        first.signal(signal.SIGKILL)
        first.rest()
    assert tasks(sandbox)["ask-1"]["state"] == "PENDING_APPROVAL"
    with sandbox.running() as second:
        second.until("continuing")
        sandbox.submit("task:ask-1", approval.ApprovalGranted())
        second.until("task ask-1", "PENDING_APPROVAL -> DONE")
        second.signal(signal.SIGKILL)
        second.rest()
    sandbox.run()
    assert sandbox.merges() == ["Merge ask-1: Write ask-1.txt", "Merge plain-2: Write plain-2.txt"]
    assert (sandbox.sessions("ask-1"), sandbox.sessions("plain-2")) == (1, 1)
    assert sandbox.processes() == []


@pytest.mark.parametrize("taken", [True, False], ids=["decided", "left in the log"])
def test_an_approval_between_two_runs_is_acted_on_by_one_that_waits_for_no_person(
    sandbox: Sandbox, *, taken: bool
) -> None:
    """``--no-wait`` leaves a fleet that only people can move on; what was approved meanwhile is none of that.

    Also if a runner that has died since was to take it, and it lies in the log.
    """
    sandbox.prepare("ask-1").demand("ask-1", ASKS)
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    if taken:
        sandbox.call("approve", "ask-1")
    else:
        sandbox.submit("task:ask-1", approval.ApprovalGranted())
    assert "1 of 1 tasks closed" in sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait").stdout
    assert len(sandbox.merges()) == 1


@on_asyncio
def test_a_runner_that_dies_before_it_says_that_work_is_parked_parks_it_once(sandbox: Sandbox, backend: str) -> None:
    """It was kept, and the log does not say so: the next runner keeps it anew, and an operator decides about that.

    A reference in the repository is not believed, because agents can write it.
    """
    sandbox.prepare("ask-1").demand("ask-1", ASKS).demand("", 'approval_timeout = "1h"')
    runners: list[Runner] = []

    async def park(activity: ParkWork, context: ActivityContext) -> None:
        workplace, agent = runners[0].handlers.workplace, context.origin.within.key
        await workplace.park(agent, activity.task, activity.epoch, activity.title)
        raise Died

    with pytest.raises(BaseExceptionGroup) as raised:
        anyio.run(run, sandbox, runners.append, Interpreter(activities={ParkWork: park}), backend=backend)
    assert raised.value.split(Died)[1] is None
    assert tasks(sandbox)["ask-1"]["state"] == "DONE"

    def arrange(runner: Runner) -> None:
        when(runner, "task:ask-1", task.State.PENDING_APPROVAL, lambda _: grant(runner, "ask-1"))

    assert anyio.run(run, sandbox, arrange, backend=backend) is Verdict.ALL_CLOSED
    assert len(sandbox.merges()) == sandbox.sessions("ask-1") == 1


class Died(Exception):
    """The runner has died."""


@LATER
def test_a_runner_may_leave_while_work_waits_for_a_person(sandbox: Sandbox) -> None:
    """Nothing runs, so it leaves at once; the next one says what waits."""
    sandbox.prepare("ask-1").demand("ask-1", ASKS)
    with sandbox.running() as run:
        run.until("task ask-1", "PENDING_APPROVAL")
        run.signal(signal.SIGINT)
        run.rest()
        assert run.process.returncode == Verdict.LEFT
    with sandbox.running() as run:
        assert run.until("continuing").strip().endswith("0 tasks in progress, 1 waiting for approval")
        sandbox.submit("task:ask-1", approval.ApprovalGranted())
        assert "1 of 1 tasks closed" in run.rest()
    assert sandbox.sessions("ask-1") == len(sandbox.merges()) == 1


# -- a plan that a person approves


@on_asyncio
def test_nothing_is_begun_before_the_plan_is_approved(sandbox: Sandbox, backend: str) -> None:
    """Agents wait meanwhile; then all is done as without."""
    sandbox.prepare("plain-1", "plain-2").demand("", "approve_plan = true")
    seen: list[object] = []

    def arrange(runner: Runner) -> None:
        def approve(_step: Transition) -> None:
            seen.extend(each.state for ref, each in runner.aggregates["board"].entities.items() if "task:" in ref)
            say(runner, "board", "plan", plan_approval.PlanApproved())

        when(runner, "worker_slot:agent", worker_slot.State.WAITING, approve)

    assert anyio.run(run, sandbox, arrange, backend=backend) is Verdict.ALL_CLOSED
    assert seen == [task.State.PLANNED] * 2
    happened = lines(sandbox)
    assert min(place for place, line in enumerate(happened) if "CLAIMED" in line) > next(
        place for place, line in enumerate(happened) if "PlanApproved" in line
    )
    assert len(sandbox.merges()) == 2


# -- who works beside whom, and at what


@on_asyncio
def test_tasks_that_change_the_same_files_are_never_worked_at_together(sandbox: Sandbox, backend: str) -> None:
    """A file, the folder that it is in, and the file again: three agents, one at a time, each on what is merged."""
    rivals = {"rival-1": '"src/a"', "rival-2": '"src"', "rival-3": '"other", "src/a"'}
    sandbox.prepare(*rivals, "plain-4", agents=3)
    for name, files in rivals.items():
        sandbox.demand(name, f"files = [{files}]")
    assert anyio.run(run, sandbox, alone, backend=backend) is Verdict.ALL_CLOSED
    spans = sandbox.spans(*rivals)
    assert len(spans) == 3
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    assert len(sandbox.merges()) == 4


# -- tasks in parts


@on_trio
def test_a_task_that_its_agent_splits_is_verified_as_a_whole_when_its_parts_are_merged(
    sandbox: Sandbox, backend: str
) -> None:
    """The session that has split it is over, which is no error. Its dependents wait for all parts."""
    sandbox.prepare("split-1", "after-2", agents=2)
    sandbox.demand("split-1", "max_subtasks = 4").demand("after-2", 'depends_on = ["split-1"]')
    proof = '["sh", "-c", "cat split-1+1.txt split-1+2.txt && ! test -e split-1.txt"]'
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('["test", "-s", "split-1.txt"]', proof))
    assert anyio.run(run, sandbox, alone, backend=backend) is Verdict.ALL_CLOSED
    assert {name: each["state"] for name, each in tasks(sandbox).items()} == dict.fromkeys(
        ("split-1", "split-1+1", "split-1+2", "after-2"), "CLOSED"
    )
    assert sorted(sandbox.merges()) == [
        "Merge after-2: Write after-2.txt",
        "Merge split-1+1: Write split-1+1.txt",
        "Merge split-1+2: Write split-1+2.txt",
    ]
    assert [sandbox.sessions(name) for name in ("split-1", "split-1+1", "split-1+2", "after-2")] == [1] * 4
    assert sandbox.spans("split-1+1", "split-1+2")[-1][1] < sandbox.spans("after-2")[0][0]
    assert {each["total_errors"] for each in sandbox.json("status")["agents"]} == {0}
    (printed,) = (sandbox.folder / ".lifefold" / "sandbox.db.files" / "verifications" / "split-1").rglob("output.log")
    assert printed.read_text().startswith("Write split-1+1.txt")
    assert sandbox.processes() == []


@LATER
def test_a_runner_that_is_killed_while_parts_are_worked_at_goes_on_with_them(sandbox: Sandbox) -> None:
    """Kill -9 between the first part and the second; nothing is split or done again."""
    sandbox.prepare("split-1").demand("split-1", "max_subtasks = 2")
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('["test", "-s", "split-1.txt"]', '["true"]'))
    with sandbox.running() as run:
        run.until("task split-1+1", "CLOSED")
        run.signal(signal.SIGKILL)
        run.rest()
    sandbox.run()
    assert {each["state"] for each in tasks(sandbox).values()} == {"CLOSED"}
    assert [sandbox.sessions(name) for name in ("split-1", "split-1+1", "split-1+2")] == [1, 1, 1]
    assert len(sandbox.merges()) == 2
