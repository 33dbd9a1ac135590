"""The newest state of an audit is that of the world after each entry."""

import pytest

from lifefold.core import fleet
from lifefold.core.kernel import ENGINE
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.recorder.newest_state import NewestState
from lifefold.interpreters.recorder.recording import recorded
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.simulate.on_engine import log_of
from lifefold.interpreters.store import Entry
from lifefold.interpreters.targets.simulation_targets import fleet_of

TARGET = fleet_of(2, 3)


def log(seed: int) -> list[Entry]:
    """Return the log of a fleet, with an entry about the log itself within it."""
    run = simulate(fleet.system, opening=TARGET.opening, environment=TARGET.environment, seed=seed)
    entries = log_of(fleet.system, run.entries)
    middle = len(entries) // 2
    ledger = Ledger(fleet.system, rules="later")
    for _ in ledger.fold(entries[:middle]):
        pass
    return [*entries[:middle], ledger.change_rules(0).entry, *entries[middle:]]


@pytest.mark.parametrize("seed", [1, 6])
def test_the_newest_state_is_that_of_the_world_after_each_entry(seed: int) -> None:
    """With the same aggregates and the same messages, and no change by an entry about the log itself."""
    entries, state, most = log(seed), NewestState(), 0
    for decision, each in zip(Ledger(fleet.system).fold(entries), recorded(fleet.system, entries), strict=True):
        state.take(decision)
        now, plain = state.system_state(), each.world.system_state()
        assert dict(now.aggregates) == dict(plain.aggregates)
        assert now.in_flight == plain.in_flight
        assert state.under_way == len(plain.in_flight)
        most = max(most, state.under_way)
    assert most > 1
    assert sum(each.stream == ENGINE for each in entries) == 1
