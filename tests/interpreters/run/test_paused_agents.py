"""What a paused agent keeps from others: nothing that it has not begun."""

from pathlib import Path

import anyio
import pytest

from fleet_ground import HANG_S, Ground
from fleet_person import say, when
from lifefold.core.fleet import board, intent, proposal, seat
from lifefold.interpreters.fleet import load
from lifefold.interpreters.run import Runner, Verdict


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_an_agent_that_is_paused_while_it_waits_for_work_is_given_none_that_others_could_do(ground: Ground) -> None:
    """The plan is approved when one of two agents is paused: the other one does all of it."""
    ground.prepare("plain-1", "plain-2", agents=2).demand("", "approve_plan = true")

    async def run() -> Verdict:
        runner = await Runner.open(load(ground.fleet), ground.log)
        pause = intent.PauseWanted("lunch")
        when(runner, "seat:agent-1", seat.State.WAITING, lambda _: say(runner, "worker/agent-1", "intent", pause))
        when(runner, "intent", intent.State.PAUSE, lambda _: say(runner, board.NAME, "plan", proposal.PlanApproved()))
        try:
            with anyio.fail_after(HANG_S):
                return await runner.run()
        finally:
            runner.close()

    assert anyio.run(run) is Verdict.ALL_CLOSED
    assert ground.agents_of("plain-1") == ground.agents_of("plain-2") == ["agent-2"]
