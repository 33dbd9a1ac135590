"""What a macrostep has changed of a persistent map, before all of it becomes persistent at once.

A persistent map copies a part of itself with each change. A macrostep changes several entities, some of them several
times, and its rules read them often. So it keeps changes in a dictionary over the map until it ends.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from pyrsistent import PMap

V = TypeVar("V")


class Overlay(dict[str, V]):
    """A persistent map with changes over it, read like a map. It belongs to one macrostep, which changes it by ``put``.

    The dictionary itself has the entries that have changed, and those that were read before.
    """

    __slots__ = ("_base", "_changed")

    def __init__(self, base: PMap[str, V]) -> None:
        """Begin without changes."""
        self._base: Final = base
        self._changed: Final[dict[str, None]] = {}

    def put(self, key: str, value: V) -> None:
        """Change one entry, or add it."""
        self[key] = value
        self._changed[key] = None

    def persistent(self) -> PMap[str, V]:
        """Return the map with all changes; the same map if there are none."""
        now = self._base
        for key in self._changed:
            now = now.set(key, self[key])
        return now

    def __missing__(self, key: str) -> V:
        """Read an entry for the first time. Raises ``KeyError`` if there is none."""
        value = self._base[key]
        self[key] = value
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, or the default if there is none."""
        return self[key] if key in self else default  # noqa: SIM401 - this is what it does

    def __contains__(self, key: object) -> bool:
        """Tell whether there is an entry."""
        return super().__contains__(key) or key in self._base

    def __iter__(self) -> Iterator[str]:
        """Yield the keys: those of the map, then those that were added."""
        yield from self._base
        yield from (key for key in self._changed if key not in self._base)

    def __len__(self) -> int:
        """Count the entries."""
        return sum(1 for _ in self)

    def keys(self) -> Any:
        """Return the keys."""
        return list(self)

    def values(self) -> Any:
        """Return the values, in the order of the keys."""
        return [self[key] for key in self]

    def items(self) -> Any:
        """Return the keys with their values."""
        return [(key, self[key]) for key in self]
