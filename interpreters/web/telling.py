"""A fold of a log from one of its positions on, and all that it tells of the entries after that.

A telling from the first entry knows the whole past. A telling from a later position begins with the fleet as it was
there. It has no line of what was before. It counts attempts from the first one, and knows the owners of tasks.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from lifefold.core.fleet import system
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import fold_at
from lifefold.interpreters.desk.history import Claims, Sessions
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.store import Entry, StoreError
from lifefold.interpreters.web.journal import Journal
from lifefold.interpreters.web.trails import Trails


class Moment(msgspec.Struct, frozen=True):
    """A fleet after the entry at position ``seq``, whose time is ``at_ms``. ``is_now``: no later entry is known."""

    seq: int
    at_ms: int
    aggregates: Mapping[str, Aggregate]
    account: Account
    is_now: bool = False


class Telling:
    """The fold, and the journal, stories, claims and sessions after the entry at position ``first``.

    One thread adds; any thread reads what is told up to a position that it knows.
    """

    def __init__(self, ledger: Ledger | None = None, account: Account | None = None) -> None:
        """Begin with a fleet at a position, which a ledger and its account have; else before the first entry."""
        self.ledger: Final = Ledger(system) if ledger is None else ledger
        self.account: Final = Account() if account is None else account
        self.first: Final = self.ledger.entries
        self.seq = self.first
        self.at_ms = self.ledger.last_ms
        there = self.ledger.aggregates
        self.journal: Final = Journal(self.account.attempts, there)
        self.trails: Final = Trails(self.account.attempts, there)
        self.claims: Final = Claims()
        self.sessions: Final = Sessions()

    def tell(self, entries: Iterable[Entry], after: "Callable[[Telling], None] | None" = None) -> None:
        """Fold further entries, and call ``after`` with the telling after each. Raises ``LogMismatchError``."""
        for decision in self.ledger.fold(entries):
            self.seq, self.at_ms = self.seq + 1, decision.entry.at_ms
            name, envelope, reaction = decision.entry.stream, decision.envelope, decision.reaction
            self.account.observe(name, reaction)
            self.journal.add(self.seq, name, envelope, reaction)
            self.trails.add(self.seq, name, envelope, reaction)
            self.claims.observe(name, reaction, self.seq)
            self.sessions.observe(name, reaction, self.seq)
            if after is not None:
                after(self)

    def moment(self, *, is_now: bool = False) -> Moment:
        """Return the fleet as it is after the last entry."""
        return Moment(self.seq, self.at_ms, dict(self.ledger.aggregates), self.account.copied(), is_now=is_now)


def folded(path: Path, seq: int) -> tuple[Ledger, Account]:
    """Return the fold of a log until the entry at a position, by the nearest mark. Raises ``StoreError``."""
    try:
        return fold_at(path, seq)
    except BadInput as error:
        raise StoreError(str(error)) from error
