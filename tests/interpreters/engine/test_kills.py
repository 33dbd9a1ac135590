"""A fleet whose runner is killed: a real process, a real file, a real SIGKILL, at every point of every step."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import kill_child
from back_ends import on_one_in_turn, on_trio
from fleet_world import POINTS, World, must_be_sound
from lifefold.interpreters.store import SqliteStore

SAMPLES = {"asyncio": 4, "trio": 2}
"""At about how many of its occurrences a point is tried on each back end; ``test_crashes`` tries them all."""


class Nursery:
    """The process that forks runners."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._times: dict[str, dict[str, int]] = {}

    def life(self, backend: str, folder: Path, point: str = "", at: int = 0) -> str:
        """Let one runner live; return what became of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([backend, str(folder), point, at]) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def times(self, backend: str, folder: Path) -> dict[str, int]:
        """Return how often a runner that is left in peace reaches each point."""
        if backend not in self._times:
            unharmed = folder / "unharmed"
            unharmed.mkdir()
            self._times[backend] = json.loads(self.life(backend, unharmed))
            must_have_finished(unharmed, kills=0)
        return self._times[backend]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, kill_child.__file__], stdin=pipe, stdout=pipe, text=True) as process:
        yield Nursery(process)
        process.kill()


def must_have_finished(folder: Path, *, kills: int) -> None:
    """Look at what the processes have left."""
    with SqliteStore.open(folder / "log.db") as store:
        entries, performed = anyio.run(store.read), anyio.run(store.performed)
    must_be_sound(entries, performed, World(folder / "world.txt"), crashes=kills)


@on_one_in_turn("point", POINTS)
def test_a_runner_that_is_killed_there_loses_and_doubles_nothing(
    nursery: Nursery, tmp_path: Path, backend: str, point: str
) -> None:
    """The next process on the same file finishes the work, soundly; at times evenly spread over the whole run."""
    times = nursery.times(backend, tmp_path)[point]
    killed = 0
    for at in range(2, times + 1, times // SAMPLES[backend]):
        folder = tmp_path / str(at)
        folder.mkdir()
        killed += nursery.life(backend, folder, point, at) == "killed"
        assert nursery.life(backend, folder).startswith("{")
        must_have_finished(folder, kills=1)
    assert killed >= SAMPLES[backend] // 2


@on_trio
def test_runners_that_are_killed_again_and_again_lose_and_double_nothing(
    nursery: Nursery, tmp_path: Path, backend: str
) -> None:
    """Each process dies a little later, at another point; the one that is left in peace finishes the work, soundly."""
    fates = [nursery.life(backend, tmp_path, POINTS[n % len(POINTS)], 3 + n) for n in range(8)]
    assert nursery.life(backend, tmp_path).startswith("{")
    must_have_finished(tmp_path, kills=fates.count("killed"))
    assert fates.count("killed") >= 4
