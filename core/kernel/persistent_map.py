"""A persistent map of an aggregate: every version stays as it is, and a change is cheap.

It has two levels. A dictionary has the recent entries, a ``PMap`` below it all others. A change copies the dictionary
only. When that has more than ``RECENT`` entries, they move into the ``PMap`` at once. So a small map is one dictionary,
and a large one shares most of its entries with its earlier versions.
"""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Final, TypeVar, cast

from pyrsistent import PMap, pmap

V = TypeVar("V")

_new: Final = object.__new__

RECENT: Final = 32
"""The most entries that are copied with a change."""


class PersistentMap(Mapping[str, V]):
    """An immutable map of texts to values.

    ``set`` returns a changed map. A series of changes is made by ``put`` in a ``draft``, before its owner hands it on.
    """

    __slots__ = ("_below", "_hash", "_recent")

    def __init__(self, entries: Mapping[str, V] | None = None) -> None:
        """Make a map with these entries."""
        self._recent: dict[str, V] = dict(entries or {})
        self._below: PMap[str, V] | None = None
        self._hash: int | None = None

    def draft(self) -> "PersistentMap[V]":
        """Return a copy that its owner changes with ``put``, and hands on or hashes only after that."""
        made: PersistentMap[V] = _new(type(self))
        recent, below = self._recent, self._below
        if len(recent) > RECENT:
            lower: PMap[str, V] = pmap() if below is None else below
            evolver = lower.evolver()
            for key, value in recent.items():
                evolver.set(key, value)
            made._recent, made._below = {}, evolver.persistent()
        else:
            made._recent, made._below = recent.copy(), below
        made._hash = None
        return made

    def put(self, key: str, value: V) -> None:
        """Change or add one entry of a draft."""
        self._recent[key] = value

    def set(self, key: str, value: V) -> "PersistentMap[V]":
        """Return the map with one entry changed or added."""
        changed = self.draft()
        changed.put(key, value)
        return changed

    def __getitem__(self, key: str) -> V:
        """Return an entry. Raises ``KeyError`` if there is none."""
        if key in self._recent or self._below is None:
            return self._recent[key]
        return self._below[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, or the default if there is none."""
        if key in self._recent or self._below is None:
            return self._recent.get(key, default)
        try:
            return self._below[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        """Tell whether there is an entry."""
        return key in self._recent or (self._below is not None and key in self._below)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys: first those of the lower level."""
        return iter(self._all())

    def __len__(self) -> int:
        """Count the entries."""
        if self._below is None:
            return len(self._recent)
        return len(self._below) + sum(key not in self._below for key in self._recent)

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        return self._all().keys()

    def values(self) -> ValuesView[V]:
        """Return the values, in the order of the keys."""
        return self._all().values()

    def items(self) -> ItemsView[str, V]:
        """Return the keys with their values."""
        return self._all().items()

    def _all(self) -> dict[str, V]:
        """Return all entries in a dictionary that must not be changed."""
        return self._recent if self._below is None else dict(self._below.items()) | self._recent

    def __eq__(self, other: object) -> bool:
        """Compare the entries, in any order."""
        if isinstance(other, PersistentMap):
            return bool(self._all() == other._all())
        return isinstance(other, Mapping) and self._all() == dict(cast("Mapping[str, Any]", other).items())

    def __hash__(self) -> int:
        """Hash the entries; all values must be hashable."""
        if self._hash is None:
            self._hash = hash(frozenset(self.items()))
        return self._hash

    def __repr__(self) -> str:
        """Return all entries."""
        return f"PersistentMap({self._all()})"
