"""A long life: fleet after fleet of 200 tasks on the shipped engine, in virtual time, with all faults.

A trial is one fleet of twenty agents, whose number is the seed of the run. The engine crashes between any two awaits,
its store refuses and is slow, handlers fail, operators give commands, and clocks go back (``simulate --engine``). A
trial is right if no property is broken, none is still owed at the end, and each entry of the engines' log is a step of
the model that is checked (``refinement``). Operators end some fleets early, so a fleet closes 200 tasks or fewer.

Each trial has the memory of its process with it, because a process makes many of them.
"""

from functools import partial
from pathlib import Path
from resource import getpagesize
from typing import ClassVar, Final

from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system import board
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.recorder.safety_monitor import SparingMonitor
from lifefold.interpreters.simulate import Faults, simulate
from lifefold.interpreters.simulate.engine_runner import EngineRunner
from lifefold.interpreters.store.memory import Shelf
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.testing.refinement import foreign_entry
from trials import Verdict

FLEET: Final = "fleet-20x200"


class SoakCampaign:
    """Fleets of one kind, one after the other in one process."""

    name: ClassVar[str] = "soak"

    def __init__(self, fleet: str = FLEET) -> None:
        """Run fleets of this kind; see ``named``."""
        self._target: Final = named(fleet)

    def attempt(self, number: int) -> Verdict:
        """Let one fleet live to its end, with the faults of this seed."""
        target, shelf = self._target, Shelf()
        run = simulate(
            target.subject,
            opening=target.opening,
            seed=number,
            environment=target.environment,
            faults=Faults(),
            runner=partial(EngineRunner, shelf=shelf),
            monitor=SparingMonitor,
        )
        wrong = [] if run.found is None else [f"seed {number}: {run.found}"]
        # The run has decided on each entry again when it was written.
        foreign = foreign_entry(target.system, shelf.entries, is_decided=True)
        if foreign is not None:
            wrong.append(f"seed {number}: {foreign}")
        ledger = Ledger(target.system)
        for _ in ledger.fold(each for each in shelf.entries if each.stream == board.NAME):
            pass
        closed = len(work_of(ledger.aggregates[board.NAME]).closed)
        counted = {"tasks": closed, "entries": len(shelf.entries), "crashes": run.counts.crashes}
        return Verdict("fleet", tuple(wrong), counted, _resident_mib())

    def close(self) -> None:
        """Keep nothing."""


def _resident_mib() -> int:
    """Return the memory of this process; 0 where the system does not tell it so."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * getpagesize() >> 20 if statm.exists() else 0
