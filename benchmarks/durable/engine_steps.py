"""The steps as entries of one agent's log: the shipped session on the engine and the SQLite store.

The version of the rules is computed at the start of a program, so it is not measured.
"""

from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

from benchmarks.agents import Agents, system
from benchmarks.durable.work import PHASES, Watch, run
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import SqliteStore


def measure(folder: Path, steps: int) -> None:
    """Let one agent have so many steps' sessions."""
    agent = Agents(1, steps // len(PHASES))
    with SqliteStore.create(folder / "log.db", {}) as store:
        anyio.run(_imported)
        rules_version(system)
        watch = Watch()
        anyio.run(agent.live, store)
        entries = store.position_at(1 << 62)
    watch.printed("lifefold", entries)


async def _imported() -> None:
    """Import the event loop, which is no part of a step."""
    await checkpoint()


if __name__ == "__main__":
    run(measure)
