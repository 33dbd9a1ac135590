"""Entities that change together: the unit of consistency, with one writer of one stream of events.

Its type (``system``) says which machines, rules and views it has.
"""

from collections import Counter
from typing import Any

import msgspec
from pyrsistent import PMap, pmap

from lifefold.core.kernel.entity import Entity
from lifefold.core.kernel.persistent_map import PersistentMap
from lifefold.core.kernel.shown import listed, shown


class Aggregate(msgspec.Struct, frozen=True, gc=False):
    """The state of one aggregate. ``version`` counts accepted inputs, ``sent`` and ``received`` the messages per peer.

    ``quarantined`` has the entities that accept no input, each with the reason.
    """

    name: str
    version: int = 0
    entities: PersistentMap[Entity[Any]] = PersistentMap()
    views: PersistentMap[Any] = PersistentMap()
    sent: PersistentMap[int] = PersistentMap()
    received: PersistentMap[int] = PersistentMap()
    quarantined: PMap[str, str] = pmap()

    def __repr__(self) -> str:
        """Return its name, its version and its entities by machine."""
        counts = Counter(ref.partition(":")[0] for ref in self.entities)
        entities = listed(f"{count} {name}" for name, count in sorted(counts.items()))
        return shown(f"Aggregate {self.name!r}: version {self.version}, {entities or 'no entities'}")

    @property
    def kind(self) -> str:
        """The part of the name before the slash: the name of its type."""
        return self.name.partition("/")[0]

    @property
    def key(self) -> str:
        """The part of the name after the slash."""
        return self.name.partition("/")[2]

    def record(self, ref: str) -> Any:
        """Return the record of an entity. Raises ``KeyError`` if there is none of that name."""
        return self.entities[ref].record
