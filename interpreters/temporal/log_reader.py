"""Reads decisions from the log of a fleet, on a host that does not write it.

A host begins with the newest snapshot of an aggregate, and folds the entries after it. An entry that the snapshot has
is folded from an earlier one, or from the begin of its stream.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from lifefold.core.kernel import Aggregate, Envelope, System, UnreadableEntry
from lifefold.interpreters.engine.failures import Failures
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError
from lifefold.interpreters.engine.snapshots import form_of, restored
from lifefold.interpreters.store import Entry, EventStore, LogStore
from lifefold.interpreters.temporal.wire import Place

KEPT: Final = 1_000
"""The number of decisions that stay in memory: several effects of one entry are read one after the other."""

_logger: Final = logging.getLogger(__name__)


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
            earlier = Ledger(self.ledger.system)
            await self._begin(earlier, aggregate, before=at.version)
            self._keep_all(earlier, await self._store.read(aggregate, _version(earlier, aggregate)), until=at.version)
        if key not in self._kept:
            raise LogMismatchError(f"{aggregate}: the log has no entry {at.version}")
        return self._kept[key]

    async def _catch_up(self, aggregate: str) -> None:
        if aggregate not in self.ledger.aggregates:
            for envelope in await self._begin(self.ledger, aggregate):
                self._failures.note(aggregate, envelope)
        entries = await self._store.read(aggregate, _version(self.ledger, aggregate))
        # Another task may have read the same entries meanwhile.
        version = _version(self.ledger, aggregate)
        self._keep_all(self.ledger, [each for each in entries if each.version > version])

    async def _begin(self, ledger: Ledger, aggregate: str, before: int | None = None) -> tuple[Envelope, ...]:
        """Give a ledger an aggregate by its newest snapshot, and return the failed attempts of its running activities.

        With ``before`` the snapshot does not have the entry of this version. Without a snapshot nothing is given.
        """
        if not isinstance(self._store, LogStore):
            return ()
        parts = await self._store.parts_of(form_of(self.ledger), aggregate, before)
        try:
            found = next(restored(ledger, parts), None)
        except UnreadableEntry as error:
            _logger.warning("the snapshot is not used, and the log is folded from its first entry: %s", error)
            return ()
        if found is None or aggregate in ledger.aggregates:  # another task may have begun with it meanwhile
            return ()
        ledger.aggregates[aggregate] = found.aggregate
        return found.failures

    def _keep_all(self, ledger: Ledger, entries: Iterable[Entry], until: int | None = None) -> None:
        for decision in ledger.fold(entries):
            name, version = decision.entry.stream, decision.entry.version
            if ledger is self.ledger:  # the failures of earlier entries are known, and later ones with them
                self._failures.note(name, decision.envelope)
            self._kept[name, version] = decision
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            if version == until:
                return


def _version(ledger: Ledger, aggregate: str) -> int:
    """Return the version of an aggregate in a ledger; 0 if it is unknown there."""
    known = ledger.aggregates.get(aggregate)
    return 0 if known is None else known.version
