"""Which parts of an aggregate a property reads: an aggregate that notes them.

A property is a pure function. It has the same value again as long as all the parts that it has read are the same. A
part is an entity, a view, or one of the other fields of the aggregate. Reading an entity that is not there is reading a
part, too. Whatever looks at all entities, such as an iteration or a length, reads ``EVERYTHING``.
"""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Final, TypeVar

import msgspec

from lifefold.core.kernel import Aggregate
from lifefold.core.kernel.persistent_map import PersistentMap

V = TypeVar("V")

EVERYTHING: Final = "everything"
"""The part that every step changes."""

VIEW: Final = "view "
"""The beginning of the name of a view as a part."""


class WatchedMap(PersistentMap[V]):
    """A map that notes the keys that are read, with a prefix."""

    __slots__ = ("_of", "_prefix", "_read")

    def __init__(self, of: PersistentMap[V], read: set[str], prefix: str = "") -> None:
        """Note in ``read`` what is read of a map."""
        super().__init__()
        self._of: Final = of
        self._read: Final = read
        self._prefix: Final = prefix

    def __getitem__(self, key: str) -> V:
        """Return an entry. Raises ``KeyError`` if there is none."""
        self._read.add(self._prefix + key)
        return self._of[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, or the default if there is none."""
        self._read.add(self._prefix + key)
        return self._of.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Tell whether there is an entry."""
        self._read.add(f"{self._prefix}{key}")
        return key in self._of

    def whole(self) -> PersistentMap[V]:
        """Return the map, all of which is then read."""
        self._read.add(EVERYTHING)
        return self._of

    def draft(self) -> PersistentMap[V]:
        """Return a copy that its owner changes."""
        return self.whole().draft()

    def __iter__(self) -> Iterator[str]:
        """Yield the keys."""
        return iter(self.whole())

    def __len__(self) -> int:
        """Count the entries."""
        return len(self.whole())

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        return self.whole().keys()

    def values(self) -> ValuesView[V]:
        """Return the values, in the order of the keys."""
        return self.whole().values()

    def items(self) -> ItemsView[str, V]:
        """Return the keys with their values."""
        return self.whole().items()

    def unarchived(self) -> Mapping[str, V]:
        """Return the entries that are not in the archive."""
        return self.whole().unarchived()

    def __eq__(self, other: object) -> bool:
        """Compare the entries."""
        return self.whole() == other

    def __hash__(self) -> int:
        """Hash the entries."""
        return hash(self.whole())

    def __repr__(self) -> str:
        """Return all entries."""
        return repr(self.whole())


class Watched(Aggregate, frozen=True, gc=False):
    """An aggregate that notes in ``read`` the parts that are read of it."""

    read: set[str] = msgspec.field(default_factory=set[str])
    of: Aggregate = Aggregate("")


def _noting(name: str) -> property:
    """Return a field that every step can change: its reader reads everything."""

    def field(self: Watched) -> Any:
        self.read.add(EVERYTHING)
        return getattr(self.of, name)

    return property(field)


_FIELDS: Final = {name: _noting(name) for name in ("version", "sent", "received", "quarantined")}
_Watched: Final[Any] = msgspec.StructMeta("Watched", (Watched,), _FIELDS, frozen=True, gc=False)
"""The class with these fields as properties. It is made at run time, because a type checker knows only plain fields."""


def watched(of: Aggregate) -> Watched:
    """Return an aggregate that notes what is read of it."""
    read = set[str]()
    entities, views = WatchedMap(of.entities, read), WatchedMap(of.views, read, VIEW)
    made: Watched = _Watched(of.name, of.version, entities, views, read=read, of=of)
    return made
