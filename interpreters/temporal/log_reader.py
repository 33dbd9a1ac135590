"""Reads decisions from the log of a fleet, on a host that does not write it."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from lifefold.core.kernel import Aggregate, System
from lifefold.interpreters.engine.failures import Failures
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError
from lifefold.interpreters.store import Entry, EventStore
from lifefold.interpreters.temporal.wire import Place

KEPT: Final = 1_000
"""The number of decisions that stay in memory: several effects of one entry are read one after the other."""


class LogReader:
    """Folds the streams of those aggregates that a host works for."""

    def __init__(self, system: System, store: EventStore, failures: Failures) -> None:
        """Read from a store that is open. ``failures`` gets to know the failed attempts of handlers."""
        self.ledger: Final = Ledger(system)
        self._store: Final = store
        self._failures: Final = failures
        self._kept: Final[OrderedDict[tuple[str, int], Decision]] = OrderedDict()

    async def present(self, aggregate: str) -> Aggregate:
        """Return the present state of an aggregate. Raises ``KeyError`` if there is none."""
        await self._catch_up(aggregate)
        return self.ledger.aggregates[aggregate]

    async def decision(self, aggregate: str, at: Place) -> Decision:
        """Return the decision of an entry. Raises ``LogMismatchError`` if the log does not have it."""
        key = aggregate, at.version
        if key not in self._kept:
            await self._catch_up(aggregate)
        if key not in self._kept:
            self._keep_all(Ledger(self.ledger.system), await self._store.read(aggregate), until=at.version)
        if key not in self._kept:
            raise LogMismatchError(f"{aggregate}: the log has no entry {at.version}")
        return self._kept[key]

    async def _catch_up(self, aggregate: str) -> None:
        known = self.ledger.aggregates.get(aggregate)
        entries = await self._store.read(aggregate, 0 if known is None else known.version)
        # Another task may have read the same entries meanwhile.
        now = self.ledger.aggregates.get(aggregate)
        version = 0 if now is None else now.version
        self._keep_all(self.ledger, [each for each in entries if each.version > version])

    def _keep_all(self, ledger: Ledger, entries: Iterable[Entry], until: int | None = None) -> None:
        for decision in ledger.fold(entries):
            name, version = decision.entry.stream, decision.entry.version
            self._failures.note(name, decision.envelope)
            self._kept[name, version] = decision
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            if version == until:
                return
