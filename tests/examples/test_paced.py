"""The example of a session with an added state: checked, simulated, run on real processes, its log read again."""

from pathlib import Path

import anyio
import pytest

from examples.paced import Rest, agent, fleet, resting, run
from fleet_sandbox import Sandbox
from lifefold.core.fleet.system import worker
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Verdict
from lifefold.interpreters.simulate import Faults, simulate
from lifefold.interpreters.store import SqliteStore


def test_a_fleet_whose_session_has_another_state_keeps_all_that_it_properties() -> None:
    """Every state of it is looked at, and every property is decided."""
    of, opening = fleet
    assert check(of, opening=opening, bounds=Bounds(commands=1)).ok


@pytest.mark.campaign
def test_the_properties_that_are_given_up_would_be_broken() -> None:
    """These two, and no other."""
    of, opening = fleet
    strict = of.with_machine(worker.KIND, agent.with_properties(*worker.agent.properties))
    assert {each.name for each in check(strict, opening=opening, bounds=Bounds(commands=1)).broken()} == {
        "a completed session counts once",
        "every event of the table leads where the table says",
    }


@pytest.mark.parametrize("seed", range(5))
def test_a_fleet_whose_session_has_another_state_ends_well_under_faults(seed: int) -> None:
    """Its runners die, and its timers are set again."""
    of, opening = fleet
    assert simulate(of, opening=opening, seed=seed, faults=Faults()).ok


@pytest.mark.foreign_log
def test_a_session_with_another_state_runs_and_its_log_is_read_by_its_own_rules(tmp_path: Path) -> None:
    """On real processes; the agent rests after each of its tasks."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2", agents=1)
    assert anyio.run(run, load(sandbox.fleet), sandbox.log) is Verdict.ALL_CLOSED

    async def rests() -> int:
        store = SqliteStore.open(sandbox.log)
        try:
            decided = Ledger(resting).fold(await store.read())
            return sum(step.entered is Rest.RESTING for each in decided for step in each.reaction.transitions)
        finally:
            store.close()

    assert anyio.run(rests) == 2
