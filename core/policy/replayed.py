"""Repeated requests for a transition: the outcomes of earlier ones, by their ids (E14).

A ledger keeps, for an entity and an id of the caller's choice, the request and its outcome. The same request again gets
the original outcome. Another request under the same id is a conflict. Only successes are recorded: a refused transition
uses up no id. Ids of different entities are independent.

The ledger is a value and keeps the last ``LEDGER_LIMIT`` successes; the oldest are dropped first.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec
from pyrsistent import PDeque, PMap, pdeque, pmap
from returns.result import Failure, Result, Success

T = TypeVar("T")

LEDGER_LIMIT: Final = 10_000
"""The number of successes that a ledger keeps."""

Key = tuple[str, str]
"""An entity, and an id that is unique within it."""


class Conflict(msgspec.Struct, frozen=True):
    """The id was used for another request at this entity."""

    entity: str
    id: str
    before: Any
    now: Any

    def __str__(self) -> str:
        """Return a sentence with the id, the earlier request and the present one."""
        return f"transition id {self.id!r} of {self.entity} was used for {self.before!r}, not for {self.now!r}"


class Entry(msgspec.Struct, Generic[T], frozen=True):
    """A request, and its outcome."""

    payload: Any
    outcome: T


class Ledger(msgspec.Struct, Generic[T], frozen=True):
    """The recorded successes by entity and id; ``order`` has the oldest first."""

    entries: PMap[Key, Entry[T]] = pmap()
    order: PDeque[Key] = pdeque()
    limit: int = LEDGER_LIMIT

    def recall(self, entity: str, name: str, payload: Any) -> Result[T | None, Conflict]:
        """Return the recorded outcome, None if there is none, or the conflict with the recorded request."""
        entry = self.entries.get((entity, name))
        if entry is None:
            return Success(None)
        if entry.payload != payload:
            return Failure(Conflict(entity, name, entry.payload, payload))
        return Success(entry.outcome)

    def with_success(self, entity: str, name: str, payload: Any, outcome: T) -> "Ledger[T]":
        """Return the ledger with one more success, without the oldest if the limit is exceeded."""
        key = (entity, name)
        order = self.order if key in self.entries else self.order.append(key)
        entries = self.entries.set(key, Entry(payload, outcome))
        if len(order) > self.limit:
            return Ledger(entries.remove(order.left), order.popleft(), self.limit)
        return Ledger(entries, order, self.limit)
