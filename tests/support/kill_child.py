"""Runners as processes that kill themselves: each line on standard input is one life, in a fork of this process.

A line is JSON: ``[backend, folder, point, k]``. The child opens or makes the log in the folder, lives on it, and dies
by SIGKILL at the k-th time that the point is reached. What became of it is said on standard output: ``killed``, or a
JSON object with how often each point was reached if it has finished. What lives need is loaded once, before any fork.
"""

import gc
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel

from engine_harness import START_MS, VirtualClock
from fleet_world import Fuse, World, live
from lifefold.core.fleet import system
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.missing import wanted
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import SqliteStore


def die() -> None:
    """Be gone."""
    os.kill(os.getpid(), signal.SIGKILL)


async def one_life(folder: Path, point: str, at: int) -> dict[str, int]:
    """Open the log, and live until the work is done or the fuse burns through."""
    path, world, fuse = folder / "log.db", World(folder / "world.txt"), Fuse(point, at, die)
    with SqliteStore.open(path) if path.exists() else SqliteStore.create(path, {}) as store:
        assert await live(store, world, fuse, VirtualClock(START_MS + 1_000 * len(world.deeds)))
    return dict(fuse.reached)


def main() -> None:
    """Fork for every line."""
    Ledger(system)  # a process makes its codec once, reads the annotations of all rows once, and the rules' version
    wanted(system)
    rules_version(system)
    gc.freeze()
    for backend in ("asyncio", "trio"):
        anyio.run(anyio.lowlevel.checkpoint, backend=backend)
    for line in sys.stdin:
        backend, folder, point, at = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            reached = anyio.run(partial(one_life, Path(folder), point, at), backend=backend)
            os.write(writing, json.dumps(reached).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("killed" if killed else said or "failed", flush=True)  # noqa: T201 - what the parent reads


if __name__ == "__main__":
    main()
