"""An excerpt of a log: the decisions about some entities, without a fold of all that has happened.

An entry keeps the changed fields of each entity that its input has changed. So the entries about one entity fold to it,
whatever happened to others. An excerpt has whole streams, and single entities of other streams. The views of such a
stream stay as they begin, because they are folded over all of its transitions.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from lifefold.core.kernel import Aggregate, Outcomes, UnreadableEntry, replace
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError
from lifefold.interpreters.store import Entry


class Excerpt:
    """Folds some of the entries that a ledger has folded, in their order.

    ``only`` has the references of the wanted entities, for each stream that is not wanted as a whole. All entries that
    have changed these entities must be given, and all entries of the other streams.
    """

    def __init__(self, ledger: Ledger, only: Mapping[str, Container[str]]) -> None:
        """Begin before the first entry."""
        self._system: Final = ledger.system
        self._codec: Final = ledger.codec
        self._outcomes: Final = Outcomes(ledger.codec)
        self._only: Final = only
        self._aggregates: Final[dict[str, Aggregate]] = {}

    def fold(self, entries: Iterable[Entry]) -> Iterator[Decision]:
        """Yield the decision of each entry. Raises ``LogMismatchError`` where an entry cannot be read."""
        for entry in entries:
            name, of = entry.stream, self._system.type_of(entry.stream)
            before = self._aggregates.get(name) or of.start(name)
            try:
                envelope = self._codec.decode(name, entry.envelope, is_past=True)
                reaction = self._outcomes.applied(of, before, envelope, entry.outcome, self._only.get(name))
            except UnreadableEntry as error:
                message = f"{name}, entry {entry.version}: {error}"
                raise LogMismatchError(message) from error
            now = replace(reaction.aggregate, version=entry.version)
            self._aggregates[name] = now
            yield Decision(envelope, entry, replace(reaction, aggregate=now))
