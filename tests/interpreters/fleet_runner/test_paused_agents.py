"""What a paused agent keeps from others: nothing that it has not begun."""

import anyio

from fleet_operator import say, when
from fleet_sandbox import HANG_S, Sandbox
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner, Verdict


def test_an_agent_that_is_paused_while_it_waits_for_work_is_given_none_that_others_could_do(sandbox: Sandbox) -> None:
    """The plan is approved when one of two agents is paused: the other one does all of it."""
    sandbox.prepare("plain-1", "plain-2", agents=2).demand("", "approve_plan = true")

    async def run() -> Verdict:
        runner = await Runner.open(load(sandbox.fleet), sandbox.log)
        pause = desired_state.PauseWanted("lunch")
        when(
            runner,
            "worker_slot:agent-1",
            worker_slot.State.WAITING,
            lambda _: say(runner, "worker/agent-1", "desired_state", pause),
        )
        when(
            runner,
            "desired_state",
            desired_state.State.PAUSE,
            lambda _: say(runner, board.NAME, "plan", plan_approval.PlanApproved()),
        )
        try:
            with anyio.fail_after(HANG_S):
                return await runner.run()
        finally:
            runner.close()

    assert anyio.run(run) is Verdict.ALL_CLOSED
    assert sandbox.agents_of("plain-1") == sandbox.agents_of("plain-2") == ["agent-2"]
