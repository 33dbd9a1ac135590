"""A fleet that waits for tasks: it takes new ones, and ends when an operator finishes the intake."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from fleet_operator import say, when
from fleet_sandbox import HANG_S, Sandbox
from lifefold.core.fleet.board import fleet_task, intake, worker_slot
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Created, State, Transition
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.fleet_runner import OtherFleetError, Runner, Verdict


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path).prepare()


async def _watch(sandbox: Sandbox, arrange: Callable[[Runner], object]) -> Verdict:
    runner = await Runner.open(load(sandbox.fleet, watch=True), sandbox.log)
    arrange(runner)
    try:
        with anyio.fail_after(HANG_S):
            return await runner.run()
    finally:
        runner.close()


def _add(name: str, runner: Runner) -> Callable[[Transition], None]:
    record = fleet_task.FleetTask(task.State.OPEN, name, f"Write {name}.txt", (("test", "-s", f"{name}.txt"),))
    return lambda _: say(runner, board.NAME, f"task:{name}", Created(record))


def _closed(runner: Runner) -> Callable[[Transition], None]:
    return lambda _: say(runner, board.NAME, intake.REF, intake.LastTaskIn("enough"))


def _work(entity: str, state: State, runner: Runner) -> None:
    """Add a task when this has happened, another when it is closed, and then say that there are no more."""
    when(runner, entity, state, _add("plain-1", runner))
    when(runner, "task:plain-1", task.State.CLOSED, _add("plain-2", runner))
    when(runner, "task:plain-2", task.State.CLOSED, _closed(runner))


WHEN_IT_IS_THERE = partial(_work, "session", session.State.BUILDING_PROMPT)
WHEN_IT_GOES_ON = partial(_work, "desired_state", desired_state.State.RUN)


def test_a_fleet_without_a_task_waits_for_some_and_ends_when_told(sandbox: Sandbox) -> None:
    """It begins with none, does what is added, one after the other, and goes home when no more will come."""
    assert anyio.run(partial(_watch, sandbox, WHEN_IT_IS_THERE)) is Verdict.ALL_CLOSED
    assert {each["id"]: each["state"] for each in sandbox.json("tasks")} == {"plain-1": "CLOSED", "plain-2": "CLOSED"}
    assert len(sandbox.merges()) == 2
    assert sandbox.processes() == []


def test_a_fleet_that_waits_is_left_and_waits_again(sandbox: Sandbox) -> None:
    """Ctrl-C leaves it waiting, and the next run of it waits too, with and without the option."""

    def leave(runner: Runner) -> None:
        when(runner, "worker_slot:agent", worker_slot.State.WAITING, lambda _: runner.leave())

    assert anyio.run(partial(_watch, sandbox, leave)) is Verdict.LEFT
    assert anyio.run(partial(_watch, sandbox, WHEN_IT_GOES_ON)) is Verdict.ALL_CLOSED


def test_a_log_that_ends_with_its_tasks_is_not_kept_alive(tmp_path: Path) -> None:
    """Its agents may have gone home already: nothing changes, and the message says what to do."""
    sandbox = Sandbox(tmp_path).prepare("plain-1")
    sandbox.run()
    with pytest.raises(OtherFleetError, match="was begun without --watch, and ends with its tasks; use another --db"):
        anyio.run(Runner.open, load(sandbox.fleet, watch=True), sandbox.log)


def test_only_a_fleet_that_is_kept_alive_may_have_no_task(sandbox: Sandbox) -> None:
    """Any other would be over before it began."""
    with pytest.raises(FleetFileError, match="there are none; write at least one"):
        load(sandbox.fleet)
