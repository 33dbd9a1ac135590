"""A persistent map of an aggregate: every version stays as it is, and a change is cheap.

It has two levels. A dictionary has the recent entries, a ``PMap`` below it all others. A change copies the dictionary
only. When that has more than ``RECENT`` entries, they move into the ``PMap`` at once. So a small map is one dictionary,
and a large one shares most of its entries with its earlier versions.

A map that was read from a snapshot can have an ``Archive`` below both levels: entries that stay bytes until they are
asked for.
"""

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Final, TypeVar, cast

from pyrsistent import PMap, pmap

V = TypeVar("V")

_new: Final = object.__new__

RECENT: Final = 32
"""The most entries that are copied with a change."""


class Archive(Mapping[str, V]):
    """Entries as bytes. An entry is decoded when it is first asked for, and kept.

    >>> Archive({"a": b"1"}, lambda _key, data: int(data))["a"]
    1
    """

    __slots__ = ("_data", "_decode", "_values")

    def __init__(self, data: Mapping[str, bytes], decode: Callable[[str, bytes], V]) -> None:
        """Keep these entries; ``decode`` returns the value of a key and its bytes."""
        self._data: Final = data
        self._decode: Final = decode
        self._values: Final[dict[str, V]] = {}

    def __getitem__(self, key: str) -> V:
        """Return an entry. Raises ``KeyError`` if there is none, and what ``decode`` raises."""
        if key not in self._values:
            self._values[key] = self._decode(key, self._data[key])
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        """Tell whether there is an entry, without decoding it."""
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        """Yield the keys, without decoding the entries."""
        return iter(self._data)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._data)


class PersistentMap(Mapping[str, V]):
    """An immutable map of texts to values.

    ``set`` returns a changed map. A series of changes is made by ``put`` in a ``draft``, before its owner hands it on.
    """

    __slots__ = ("_archive", "_below", "_hash", "_recent")

    def __init__(self, entries: Mapping[str, V] | None = None, archive: Archive[V] | None = None) -> None:
        """Make a map with these entries, and with those of an archive that are not among them."""
        self._recent: dict[str, V] = dict(entries or {})
        self._below: PMap[str, V] | None = pmap() if archive else None
        self._archive: Archive[V] | None = archive or None
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
        made._archive = self._archive
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
        if self._archive is None or key in self._below:
            return self._below[key]
        return self._archive[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, or the default if there is none."""
        if key in self._recent or self._below is None:
            return self._recent.get(key, default)
        try:
            return self._below[key]
        except KeyError:
            return default if self._archive is None else self._archive.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Tell whether there is an entry."""
        if key in self._recent or self._below is None:
            return key in self._recent
        return key in self._below or (self._archive is not None and key in self._archive)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys: first those of the lower levels. An archive decodes nothing for that."""
        return iter(self._all() if self._archive is None else {**dict.fromkeys(self._archive), **self.unarchived()})

    def __len__(self) -> int:
        """Count the entries."""
        if self._below is None:
            return len(self._recent)
        if self._archive is not None:
            return len(self._archive) + sum(key not in self._archive for key in self.unarchived())
        return len(self._below) + sum(key not in self._below for key in self._recent)

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        return self._all().keys() if self._archive is None else KeysView(self)

    def values(self) -> ValuesView[V]:
        """Return the values, in the order of the keys."""
        return self._all().values()

    def items(self) -> ItemsView[str, V]:
        """Return the keys with their values."""
        return self._all().items()

    def unarchived(self) -> Mapping[str, V]:
        """Return the entries that are not in the archive, or have changed since; without an archive these are all."""
        return self._recent if self._below is None else dict(self._below.items()) | self._recent

    def _all(self) -> Mapping[str, V]:
        """Return all entries in a mapping that must not be changed."""
        return self.unarchived() if self._archive is None else {**self._archive, **self.unarchived()}

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
