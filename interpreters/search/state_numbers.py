"""The states of an aggregate in canonical form (see ``canonical``), numbered in the order in which they are reached.

An entity in several states is kept once, and compared by identity. An entity that a reaction did not change is neither
brought into canonical form nor compared again.
"""

from collections.abc import Iterable
from typing import Any, Final

from lifefold.core.kernel import Aggregate, Entity, PersistentMap
from lifefold.interpreters.search.canonical import NONE, Canonical, Found, Unusable, rewritten

Key = tuple[Any, ...]
"""The key of a state: the numbers of its entities, and the views."""

_UNKNOWN: Final = -1


class Numbered:
    """All reached states of one aggregate."""

    def __init__(self, canonical: Canonical) -> None:
        """Begin without states."""
        self.states: Final[list[Aggregate]] = []
        self._canonical: Final = canonical
        self._numbers: Final[dict[Key, int]] = {}
        self._entities: Final[list[Entity[Any]]] = []
        self._identifiers: Final[list[Found]] = []
        self._by_value: Final[dict[Entity[Any], int]] = {}
        self._by_place: Final[dict[int, int]] = {}
        """By its address in memory: the number of an entity that is kept."""

    def add(self, aggregate: Aggregate) -> int:
        """Return the number of a state; a new state gets the next one."""
        entities = [self._keep(entity) for entity in self._form(aggregate)]
        number = self._numbers.setdefault(_key(entities, aggregate), len(self.states))
        if number == len(self.states):
            kept = (self._entities[each] for each in entities)
            of = PersistentMap({entity.ref: entity for entity in kept})
            self.states.append(Aggregate(aggregate.name, 0, of, aggregate.views))
        return number

    def find(self, aggregate: Aggregate) -> int:
        """Return the number of a state; -1 if it was not reached."""
        entities = [self._by_value.get(entity, _UNKNOWN) for entity in self._form(aggregate)]
        return self._numbers.get(_key(entities, aggregate), _UNKNOWN)

    def _form(self, aggregate: Aggregate) -> list[Entity[Any]]:
        """Return the entities in canonical form; kept ones need it only for identifiers that other entities change."""
        entities: list[Entity[Any]] = []
        identifiers = NONE
        for entity in aggregate.entities.values():
            number = self._by_place.get(id(entity))
            form = self._canonical.alone(entity) if number is None else entity
            entities.append(form)
            identifiers |= self._canonical.identifiers_of(form) if number is None else self._identifiers[number]
        change = self._canonical.change(identifiers)
        return entities if change is None else [rewritten(entity, change) for entity in entities]

    def _keep(self, entity: Entity[Any]) -> int:
        number = self._by_place.get(id(entity))
        if number is None:
            number = self._number(entity)
        if number == len(self._entities):
            self._entities.append(entity)
            self._identifiers.append(self._canonical.identifiers_of(entity))
            self._by_place[id(entity)] = number
        return number

    def _number(self, entity: Entity[Any]) -> int:
        try:
            return self._by_value.setdefault(entity, len(self._entities))
        except TypeError as error:
            name = type(entity.record).__name__
            message = (
                f"{name} of {entity.ref!r} is not a value: {error}; a record contains immutable values, such as tuples"
            )
            raise Unusable(message) from error


def _key(entities: Iterable[int], aggregate: Aggregate) -> Key:
    return (*sorted(entities), aggregate.views)
