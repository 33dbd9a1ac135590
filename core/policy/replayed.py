"""Transitions that may be asked for twice: what was done under which id (E14).

A ledger remembers, for an entity and an id of the caller's choice, what was asked for and what came of it. Asking again
for the same is answered with the original outcome; asking for something else under the same id is a conflict. Only what
succeeded is recorded: a refused transition uses up no id. The same id at another entity is another matter.

The ledger is a value and remembers the last ``LEDGER_LIMIT`` successes; older ones are forgotten, the oldest first.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec
from pyrsistent import PDeque, PMap, pdeque, pmap
from returns.result import Failure, Result, Success

T = TypeVar("T")

LEDGER_LIMIT: Final = 10_000
"""How many successes a ledger remembers."""

Key = tuple[str, str]
"""An entity, and an id that is unique within it."""


class Conflict(msgspec.Struct, frozen=True):
    """The id was used for something else at this entity."""

    entity: str
    id: str
    before: Any
    now: Any

    def __str__(self) -> str:
        """Say which id was used for what."""
        return f"transition id {self.id!r} of {self.entity} was used for {self.before!r}, not for {self.now!r}"


class Entry(msgspec.Struct, Generic[T], frozen=True):
    """What was asked for, and what came of it."""

    payload: Any
    outcome: T


class Ledger(msgspec.Struct, Generic[T], frozen=True):
    """What was done under which id, the oldest first in ``order``."""

    entries: PMap[Key, Entry[T]] = pmap()
    order: PDeque[Key] = pdeque()
    limit: int = LEDGER_LIMIT

    def recall(self, entity: str, name: str, payload: Any) -> Result[T | None, Conflict]:
        """Return what came of this before, None if it was never done, or the conflict with what was."""
        entry = self.entries.get((entity, name))
        if entry is None:
            return Success(None)
        if entry.payload != payload:
            return Failure(Conflict(entity, name, entry.payload, payload))
        return Success(entry.outcome)

    def with_success(self, entity: str, name: str, payload: Any, outcome: T) -> "Ledger[T]":
        """Return the ledger with one more success, and without the oldest if there are too many."""
        key = (entity, name)
        order = self.order if key in self.entries else self.order.append(key)
        entries = self.entries.set(key, Entry(payload, outcome))
        if len(order) > self.limit:
            return Ledger(entries.remove(order.left), order.popleft(), self.limit)
        return Ledger(entries, order, self.limit)
