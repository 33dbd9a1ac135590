"""The fleet's own interpreter keeps what the kit asks of one, in all that needs no process of its own.

What becomes of sessions and of verification commands when a runner ends them or dies over them is tested where their
processes are looked at one by one: ``tests/interpreters/body``.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from lifefold.core import fleet
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan
from lifefold.core.kernel import Aggregate
from lifefold.effects import (
    CancelSession,
    CheckOutWork,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    MergeWork,
    PrepareWorktree,
    RunSession,
    StorePrompt,
    VerifyWork,
)
from lifefold.interpreters.body.workplace import FolderWorkplace
from lifefold.interpreters.fleet import load
from lifefold.interpreters.run import FleetFolder
from lifefold.interpreters.run.handlers import Handlers
from lifefold.interpreters.testing import Bench, Example, InterpreterConformance
from lifefold.interpreters.testing.world import World

FLEET: Final = """
[fleet]
name = "bench"

[[agents]]
name = "ann"
command = ["{python}", "-c", "pass"]

[[tasks]]
id = "T1"
prompt = "do it"
"""

ELSEWHERE: Final = {LogFatal, RunSession, VerifyWork}
"""What is no part of the bench: what needs processes, and news, which people are told again after a crash."""


class FleetBench:
    """The handlers of a fleet of one agent. Worktrees are folders here: git has tests of its own."""

    def __init__(self, folder: Path) -> None:
        file = folder / "fleet.toml"
        file.write_text(FLEET.format(python=sys.executable))
        self._root: Final = folder / "work"
        self._told: Final[list[tuple[str, str]]] = []
        place = FolderWorkplace(self._root)
        handlers = Handlers(load(file), FleetFolder(folder / "log.db"), place, self._tell, lambda: None)
        self.system = fleet.system
        self.interpreter = handlers.interpreter()
        plan = Plan("bench", (AgentPlan("ann"),), (TaskPlan("T1", "do it"),))
        worker: Aggregate = World(fleet.system, fleet.opening(plan, 0)).aggregates["worker/ann"]
        self.examples: Sequence[Example] = (
            Example(PrepareWorktree(), worker, "session", ends=True),
            Example(CheckOutWork("T1", 1), worker, "assignment", ends=True),
            Example(MergeWork("T1", 1, "T1"), worker, "assignment", ends=True),
            *(Example(each, worker, "session") for each in (StorePrompt("do it"), IncrementSession(1))),
            *(Example(each, worker, "session") for each in (CancelSession(), ForceStopSession())),
        )
        self._root.mkdir()

    def _tell(self, agent: str, message: str) -> None:
        self._told.append((agent, message))

    async def look(self) -> object:
        """Return what people were told, and the prompts: a place that was prepared may stay."""
        files = (self._root.parent / "log.db.files").rglob("*")
        return [*self._told], sorted((str(file), file.read_text()) for file in files if file.is_file())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return FleetBench(tmp_path)


class TestTheFleetsInterpreter(InterpreterConformance):
    """Every check of the kit."""


def test_the_bench_has_an_example_of_everything_else_that_the_handlers_do(bench: Bench) -> None:
    """A handler that is new has to be put on the bench, or to be tested elsewhere."""
    mine = {type(example.what) for example in bench.examples}
    assert mine | ELSEWHERE == {*bench.interpreter.effects, *bench.interpreter.activities}
    assert not mine & ELSEWHERE
