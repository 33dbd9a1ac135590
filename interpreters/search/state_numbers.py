"""The states of an aggregate in their form (see ``canonical``), numbered as they are met.

An entity that many states have in common is kept once, and known by where it is: what a reaction has not changed need
not be brought into the form again, nor be compared.
"""

from collections.abc import Iterable
from typing import Any, Final

from pyrsistent import pmap

from lifefold.core.kernel import Aggregate, Entity
from lifefold.interpreters.search.canonical import NONE, Canonical, Found, Unusable, rewritten

Key = tuple[Any, ...]
"""What tells states apart: the numbers of the entities, and the views."""

_UNKNOWN: Final = -1


class Numbered:
    """All states of one aggregate that were met."""

    def __init__(self, canonical: Canonical) -> None:
        """Begin with none."""
        self.states: Final[list[Aggregate]] = []
        self._canonical: Final = canonical
        self._numbers: Final[dict[Key, int]] = {}
        self._entities: Final[list[Entity[Any]]] = []
        self._serials: Final[list[Found]] = []
        self._by_value: Final[dict[Entity[Any], int]] = {}
        self._by_place: Final[dict[int, int]] = {}
        """By where in memory an entity is that is kept: its number."""

    def add(self, aggregate: Aggregate) -> int:
        """Return the number of a state; it gets the next one if it was not met before."""
        entities = [self._keep(entity) for entity in self._form(aggregate)]
        number = self._numbers.setdefault(_key(entities, aggregate), len(self.states))
        if number == len(self.states):
            kept = (self._entities[each] for each in entities)
            of = pmap({entity.ref: entity for entity in kept})
            self.states.append(Aggregate(aggregate.name, 0, of, aggregate.views))
        return number

    def find(self, aggregate: Aggregate) -> int:
        """Return the number of a state; -1 if it was not met."""
        entities = [self._by_value.get(entity, _UNKNOWN) for entity in self._form(aggregate)]
        return self._numbers.get(_key(entities, aggregate), _UNKNOWN)

    def _form(self, aggregate: Aggregate) -> list[Entity[Any]]:
        """Return the entities in the form, which those that are kept are in already, but for what others change."""
        entities: list[Entity[Any]] = []
        identifiers = NONE
        for entity in aggregate.entities.values():
            number = self._by_place.get(id(entity))
            form = self._canonical.alone(entity) if number is None else entity
            entities.append(form)
            identifiers |= self._canonical.serials_of(form) if number is None else self._serials[number]
        change = self._canonical.change(identifiers)
        return entities if change is None else [rewritten(entity, change) for entity in entities]

    def _keep(self, entity: Entity[Any]) -> int:
        number = self._by_place.get(id(entity))
        if number is None:
            number = self._number(entity)
        if number == len(self._entities):
            self._entities.append(entity)
            self._serials.append(self._canonical.serials_of(entity))
            self._by_place[id(entity)] = number
        return number

    def _number(self, entity: Entity[Any]) -> int:
        try:
            return self._by_value.setdefault(entity, len(self._entities))
        except TypeError as error:
            name = type(entity.record).__name__
            message = f"{name} of {entity.ref!r} is no value: {error}; what is in a record has to be, as a tuple is"
            raise Unusable(message) from error


def _key(entities: Iterable[int], aggregate: Aggregate) -> Key:
    return (*sorted(entities), aggregate.views)
