"""The kit for old logs: a machine or a system must read what its earlier versions have written, and go on with it.

Keep a log of each released version as test data, and give them all to ``check_evolution``.
"""

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio

from lifefold.core.kernel import (
    ENGINE,
    Aggregate,
    Machine,
    Outcomes,
    System,
    World,
    alone,
    broken,
    encode,
    misfits,
    written,
)
from lifefold.interpreters.called import must_be
from lifefold.interpreters.engine import Decision, Ledger, LogMismatchError
from lifefold.interpreters.engine.seam import Undone
from lifefold.interpreters.store import Entry, peek_log

OldLog: TypeAlias = Path | str | Sequence[Entry]
"""A log: the path of its file, which is not changed, or its entries."""


class EvolutionError(AssertionError):
    """An old log cannot be read or continued; the message names the log, the entry and the reason."""


def check_evolution(of: Machine[Any] | System, old_logs: Iterable[OldLog]) -> None:
    """Check that each old log folds, that these rules can go on with it, and that what is read is stable.

    The present state must suit the tables and the properties. Each input that is possible next must be decided: it may
    be refused, but no rule may raise. What is read must be the same after it is written and read again. The inputs are
    the examples of the events, so an event without defaults needs ``examples``.

    Raises ``EvolutionError``; ``TypeError`` for anything else than a machine or a system.

    >>> from lifefold.core.fleet.board import intake
    >>> from lifefold.interpreters.testing import check_evolution
    >>> check_evolution(intake.machine, [])
    """
    must_be(of, (Machine, System), "a Machine or a System")
    system = alone(of)[0] if isinstance(of, Machine) else of
    for number, log in enumerate(old_logs, 1):
        _Check(system, str(log) if isinstance(log, Path | str) else f"log {number}").run(log)


class _Check:
    """The check of one log."""

    def __init__(self, system: System, name: str) -> None:
        self._system: Final = system
        self._name: Final = name
        self._ledger: Final = Ledger(system)
        self._outcomes: Final = Outcomes(self._ledger.codec)

    def run(self, log: OldLog) -> None:
        """Check it."""
        entries = _read(Path(log)) if isinstance(log, Path | str) else log
        undone = Undone({})
        for position, entry in enumerate(entries, 1):
            before = self._ledger.aggregates.get(entry.stream)
            try:
                decision = next(self._ledger.fold([entry]))
            except LogMismatchError as error:
                raise self._failure(position, entry, f"cannot be read: {error}") from error
            undone.observe(decision)
            if entry.stream != ENGINE:
                self._must_be_stable(position, before, decision)
        for line in misfits(self._system, self._ledger.aggregates.values(), undone.untold.values()):
            raise EvolutionError(f"{self._name}: at its end, these rules cannot take {line}")
        for line in broken(self._system, undone.state(self._ledger)):
            raise EvolutionError(f"{self._name}: at its end, a property does not hold: {line}")
        self._must_go_on(undone)

    def _must_be_stable(self, position: int, before: Aggregate | None, decision: Decision) -> None:
        """Write what was read, and read it again."""
        name, envelope, reaction = decision.entry.stream, decision.envelope, decision.reaction
        of = self._system.type_of(name)
        start = of.start(name) if before is None else before
        again = self._ledger.codec.decode(name, encode(envelope), is_past=True)
        if again != envelope:
            raise self._failure(position, decision.entry, "is another input when it is written again")
        if self._outcomes.applied(of, start, again, written(start, envelope, reaction)) != reaction:
            raise self._failure(position, decision.entry, "its decision is not the same when it is written again")

    def _must_go_on(self, undone: Undone) -> None:
        """Let each aggregate take each input that is possible next."""
        world = World(self._system, self._ledger.aggregates, undone.untold, self._ledger.last_ms)
        for given in world.choices():
            try:
                world.outcome(given)
            except Exception as error:
                event = type(given.envelope.event).__name__
                where = f"{given.aggregate}{given.envelope.entity and f', {given.envelope.entity}'}"
                message = f"{self._name}: at its end, {where} cannot decide on {event}: {type(error).__name__}: {error}"
                raise EvolutionError(message) from error

    def _failure(self, position: int, entry: Entry, why: str) -> EvolutionError:
        return EvolutionError(f"{self._name}: entry {position} ({entry.stream}, version {entry.version}) {why}")


def _read(log: Path) -> Sequence[Entry]:
    """Return the entries of a log from a copy of its file: SQLite would make files beside the original."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, log.name)
        shutil.copyfile(log, copy)
        with peek_log(copy) as store:
            return anyio.run(store.read)
