"""A fleet whose runner dies, at every point of every step: nothing is lost, and nothing is done twice or wrongly.

Here the runner dies by an exception that no code catches, on a log in memory. So a campaign can try every occurrence of
every point. ``test_kills`` does the same with real processes, a real file and a real SIGKILL.
"""

from itertools import count

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_harness import START_MS, MemoryLog, VirtualClock
from fleet_world import POINTS, Fuse, World, live, must_be_sound

EVERY = {"asyncio": 1, "trio": 3}
"""At which of its occurrences a point is tried in a campaign: at each on one back end, every third on the other."""

APART = 8
"""How much further apart those are that are always tried."""

DOWN_MS = 1_000
"""The time without a runner after a crash."""

on_both_back_ends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


async def must_survive(fuses: list[Fuse]) -> None:
    """Let one runner after the other live, each with its fuse, the last without any; and look at what came of it."""
    log, world, clock = MemoryLog(), World(), VirtualClock(START_MS)
    crashes = 0
    for fuse in fuses:
        if await live(log.open(), world, fuse, clock):
            break
        crashes += 1
        clock.set(clock.now_ms() + DOWN_MS)
    else:
        assert await live(log.open(), world, Fuse(), clock)
    store = log.open()
    must_be_sound(await store.read(), await store.performed(), world, crashes=crashes)


@on_both_back_ends
def test_a_fleet_that_is_left_alone_does_its_work(backend: str) -> None:
    """Without any crash every task is closed; and every point at which one might die is really passed."""
    fuse = Fuse()
    anyio.run(must_survive, [fuse], backend=backend)
    assert set(fuse.reached) == set(POINTS)
    assert min(fuse.reached.values()) > 20


@on_both_back_ends
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("apart", [APART, pytest.param(1, marks=pytest.mark.campaign)])
def test_a_runner_that_dies_there_loses_and_doubles_nothing(backend: str, point: str, apart: int) -> None:
    """At each of the times that the point is reached: the next runner finishes the work, soundly."""
    tried = 0
    for at in count(1, apart * EVERY[backend]):
        fuse = Fuse(point, at)
        anyio.run(must_survive, [fuse], backend=backend)
        if not fuse.blown:
            break
        tried = at
    assert tried > 20


FUSES = st.tuples(st.sampled_from(POINTS), st.integers(1, 60))


@on_both_back_ends
@settings(max_examples=settings().max_examples // 3)
@given(burns=st.lists(FUSES, min_size=2, max_size=8))
def test_runners_that_die_again_and_again_lose_and_double_nothing(backend: str, burns: list[tuple[str, int]]) -> None:
    """However many of them die, also while they recover from the one before."""
    anyio.run(must_survive, [Fuse(point, at) for point, at in burns], backend=backend)


@on_both_back_ends
def test_a_runner_that_gets_a_little_further_each_time_finishes(backend: str) -> None:
    """Dying as soon as a few things are durable, each time, is still progress: the work ends, soundly."""
    anyio.run(must_survive, [Fuse("persisted", 3) for _ in range(200)], backend=backend)
