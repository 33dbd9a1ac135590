"""The runner's own limit of a session stands still while a question waits."""

import math
from pathlib import Path

import anyio
import pytest

from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.time_limits import TimeLimit, TimeLimits
from lifefold.interpreters.processes import SessionExit

pytestmark = pytest.mark.anyio


async def test_a_held_limit_goes_on_with_what_was_left() -> None:
    """Repeated calls change nothing."""
    deadline = anyio.current_time() + 1_000
    scope = anyio.CancelScope(deadline=deadline)
    limit = TimeLimit(scope)
    limit.go_on()
    assert scope.deadline == deadline
    for _ in range(2):
        limit.hold()
        assert scope.deadline == math.inf
    limit.go_on()
    assert deadline <= scope.deadline <= anyio.current_time() + 1_000


async def never() -> SessionExit:
    """Wait for a session that does not end."""
    await anyio.sleep_forever()
    raise AssertionError


async def test_a_limit_that_is_over_ends_the_wait(tmp_path: Path) -> None:
    """The next session of the agent has a limit of its own."""
    limits = TimeLimits(FleetFolder(tmp_path / "fleet.db"))
    for _ in range(2):
        assert await limits.within("ann", 0.01, never, is_held=False) is None


async def test_an_adopted_session_whose_question_waits_begins_with_a_held_limit(tmp_path: Path) -> None:
    """Its time goes on when the answer comes."""
    limits = TimeLimits(FleetFolder(tmp_path / "fleet.db"))
    done: list[SessionExit | None] = []

    async def attend() -> None:
        done.append(await limits.within("ann", 0.01, never, is_held=True))

    async with anyio.create_task_group() as group:
        group.start_soon(attend)
        await anyio.wait_all_tasks_blocked()
        await anyio.sleep(0.05)
        assert done == []
        limits._limits["ann"].go_on()
    assert done == [None]
