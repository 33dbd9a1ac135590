"""A time limit that is held does not count, and goes on with what was left of it."""

from pathlib import Path

import pytest

from lifefold.interpreters.processes import hold, launch
from session_scripts import Bell, script

pytestmark = pytest.mark.anyio

LIMIT_MS = 5_000
"""Far longer than an order needs to reach its shim."""

LONGER = "echo > {bell}; sleep 6; exit 0"
FOR_EVER = "echo > {bell}; sleep 600"


async def test_a_session_outlives_a_limit_that_is_held(tmp_path: Path) -> None:
    """It ends by itself, after more time than it has."""
    run, bell = tmp_path / "run", Bell(tmp_path / "bell")
    session = await launch(run, script(LONGER.format(bell=bell), timeout_ms=LIMIT_MS))
    await bell.heard()
    await hold(run, held=True)
    ended = await session.wait()
    assert (ended.outcome, ended.code) == ("exited", 0)


async def test_a_limit_that_goes_on_ends_the_session(tmp_path: Path) -> None:
    """Each order may be repeated, and a session is not held twice."""
    run, bell = tmp_path / "run", Bell(tmp_path / "bell")
    session = await launch(run, script(FOR_EVER.format(bell=bell), timeout_ms=2_000))
    await bell.heard()
    for held in (False, True, True, False, False):
        await hold(run, held=held)
    assert (await session.wait()).outcome == "timeout"


async def test_a_held_limit_does_not_keep_a_session_from_its_end(tmp_path: Path) -> None:
    """A session that is asked to end gets no limit back."""
    run, bell = tmp_path / "run", Bell(tmp_path / "bell")
    session = await launch(run, script(FOR_EVER.format(bell=bell), timeout_ms=60_000))
    await bell.heard()
    await hold(run, held=True)
    await session.end(1_000)
    await hold(run, held=False)
    assert (await session.wait()).outcome == "ended"
    await hold(run, held=True)


async def test_a_session_without_a_limit_gets_none(tmp_path: Path) -> None:
    """There is nothing to hold."""
    run, bell = tmp_path / "run", Bell(tmp_path / "bell")
    session = await launch(run, script(f"echo > {bell}; exit 3"))
    for held in (True, False):
        await hold(run, held=held)
    assert (await session.wait()).code == 3
