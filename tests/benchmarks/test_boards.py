"""Boards in virtual time, at a size that is at its limit within minutes, since a commit takes very long."""

from typing import Final

import pytest

from benchmarks.boards import Measured, Sizes, Split, report, split
from benchmarks.busy_brain import BOARD, BusyBrain, Costs, Load
from benchmarks.report import plain
from lifefold.core.fleet import system
from lifefold.core.kernel import World
from lifefold.interpreters.targets.fleet_plans import MINUTE_MS
from lifefold.interpreters.temporal.wire import BATCH_LIMIT

SIZES: Final = Sizes(agents=60, boards=(1, 4), session_min=1, until_min=6, last_min=3)
SLOW: Final = Costs(commit_ms=250, entry_ms=120, turn_ms=20, send_ms=10)
LOAD: Final = Load(agents=10, session_ms=MINUTE_MS, until_ms=4 * MINUTE_MS)


@pytest.fixture(scope="module")
def splits() -> tuple[Split, Split]:
    return split(1, SIZES, SLOW), split(4, SIZES, SLOW)


def test_one_board_is_at_its_limit_where_four_boards_are_not(splits: tuple[Split, Split]) -> None:
    """The brain of the one board is busy all the time, its inputs wait, and its agents wait for tasks."""
    one, four = splits
    assert one.busy == pytest.approx(1, abs=0.01)
    assert four.busy < 0.8
    assert one.moments[-1].waiting > 10 * four.moments[-1].waiting
    assert max(four.waits_ms) < min(MINUTE_MS, max(one.waits_ms))
    assert one.moments[-1].closed < four.moments[-1].closed
    assert sum(each.agents for each in loads(4)) == SIZES.agents


def loads(boards: int) -> list[Load]:
    return [Load(SIZES.agents // boards, MINUTE_MS, 0) for _ in range(boards)]


def test_a_simulation_of_one_seed_is_the_same_again(splits: tuple[Split, Split]) -> None:
    """Another seed is another one."""
    assert split(4, SIZES, SLOW).moments == splits[1].moments
    assert split(4, SIZES._replace(seed=9), SLOW).moments != splits[1].moments


def test_a_commit_takes_the_inputs_that_wait_for_its_aggregate(splits: tuple[Split, Split]) -> None:
    """Of a board at its limit there are fewer commits than entries. No commit has more than the real one."""
    (outcome,) = splits[0].outcomes
    assert outcome.inputs / BATCH_LIMIT < outcome.commits < outcome.inputs


def test_a_brain_without_costs_answers_at_once() -> None:
    """All entries are accepted by the rules of the fleet: they fold to the world of the brain."""
    brain = BusyBrain(LOAD, Costs())
    outcome = brain.run(LOAD.until_ms)
    assert set(outcome.late_waits_ms) == {0}
    assert outcome.closed > LOAD.agents
    world = World(system)
    for each in brain.entries:
        stepped = world.step(each)
        assert isinstance(stepped, tuple)
        world = stepped[0]
    assert world.aggregates[BOARD] == brain.aggregates[BOARD]
    assert outcome.inputs == len(brain.entries)


def test_messages_keep_a_board_from_its_next_commit() -> None:
    """A board that sends slowly decides less, although its brain is free."""
    fast, slow = (BusyBrain(LOAD, Costs(send_ms=send_ms)).run(LOAD.until_ms) for send_ms in (0, 3_000))
    assert slow.closed < fast.closed
    assert slow.late_busy_ms == 0
    assert max(slow.late_waits_ms) > 0


def test_a_report_has_a_row_for_each_number_of_boards() -> None:
    """Its targets, costs, rates and queues are tables."""
    found = report(Measured(SLOW), SIZES._replace(agents=8, until_min=2, last_min=1))
    _costs, rates, waiting = found.tables
    assert [row[:2] for row in rates.rows] == [("1", "8"), ("4", "2")]
    assert [row[0] for row in waiting.rows] == ["1", "2"]
    assert "busiest brain" in plain(found)
