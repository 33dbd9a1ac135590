"""Symmetry: of all states that differ only in the order of alike aggregates, one is the representative.

Aggregates are alike if the opening does not change when their names are exchanged, wherever they occur. The aggregates
of a state are ordered by their contents without names, and the whole state is renamed accordingly. If two have the
same contents, either order will do. Then a state may have several representatives, which costs time only.

The rules must treat them alike, and the search checks that: see ``Symmetry.hold``, and ``cross_check``.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import combinations, permutations
from typing import Any, Final, cast

import msgspec
import numpy as np
from pyrsistent import PMap, PSet, PVector, pmap, pset, pvector

from lifefold.core.kernel import PersistentMap, replace
from lifefold.interpreters.search.component import Component, LocalStep
from lifefold.interpreters.search.product_system import ProductSystem, StateRow
from lifefold.interpreters.search.state_set import Numbers

Columns = Sequence[Numbers]
"""States of a product system: one column for each number of a state."""

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class NotAlike(ValueError):
    """Aggregates were declared alike, and the rules distinguish them."""


class Renaming:
    """Renames aggregates in all texts in which they occur as words."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Take the new name of each old one."""
        self._names: Final = names
        self._word: Final = _word(names)
        self._known: Final[dict[int, tuple[Any, Any]]] = {}
        """By an address in memory: the value, so that it is kept, and its renamed form."""

    def __call__(self, value: Any) -> Any:
        """Return a value with the new names."""
        if type(value) is str:
            return self._word.sub(self._new, value)
        if not _has_parts(value):
            return value
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._renamed(value))
        return known[1]

    def _renamed(self, value: Any) -> Any:
        kind = cast("Callable[..., Any]", type(value))
        if isinstance(value, msgspec.Struct):
            news = {name: self(getattr(value, name)) for name in value.__struct_fields__}
            return replace(value, **{name: new for name, new in news.items() if new is not getattr(value, name)})
        if isinstance(value, _MAPS):
            news = {self(key): self(held) for key, held in _items(value)}
            return PersistentMap(news) if isinstance(value, PersistentMap) else pmap(news)
        made = map(self, value)
        if isinstance(value, tuple):
            return tuple(made) if kind is tuple else kind(*made)
        return next(make for kind, make in _MADE.items() if isinstance(value, kind))(made)

    def _new(self, found: "re.Match[str]") -> str:
        return self._names[found[0]]


_MAPS: Final = (PMap, PersistentMap)
_WITH_PARTS: Final = (msgspec.Struct, tuple, *_MAPS, PVector, PSet, frozenset)


def _has_parts(value: object) -> bool:
    return isinstance(value, _WITH_PARTS)


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    items: Iterable[tuple[Any, Any]] = value.items()
    return items


_MADE: Final[Mapping[type, Callable[[Iterable[Any]], Any]]] = {PVector: pvector, PSet: pset, frozenset: frozenset}
"""The constructors of values with parts."""


class Portrait:
    """A value as one aggregate sees it: its own name is known, and all other names are equal."""

    def __init__(self, own: str, names: Sequence[str], colours: dict[Hashable, int]) -> None:
        """Take the own name, and all; ``colours`` has the numbers of all values so far, of all aggregates."""
        self._own: Final = own
        self._colours: Final = colours
        self._word: Final = _word(names)
        self._known: Final[dict[int, tuple[Any, int]]] = {}

    def __call__(self, value: Any) -> Hashable:
        """Return the portrait: a number, if the value has parts."""
        if type(value) is str:
            return self._word.sub(self._blank, value)
        return self.of(value) if _has_parts(value) else value

    def of(self, value: Any) -> int:
        """Return the number of the portrait of a value with parts."""
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._colours.setdefault(self._seen(value), len(self._colours)))
        return known[1]

    def _seen(self, value: Any) -> Hashable:
        if isinstance(value, msgspec.Struct):
            return (type(value), *(self(getattr(value, name)) for name in value.__struct_fields__))
        if isinstance(value, _MAPS):
            return frozenset(Counter((self(key), self(held)) for key, held in _items(value)).items())
        seen = map(self, value)
        return frozenset(Counter(seen).items()) if isinstance(value, PSet | frozenset) else tuple(seen)

    def _blank(self, found: "re.Match[str]") -> str:
        return "\0" if found[0] == self._own else "\1"


def _word(names: Mapping[str, str] | Sequence[str]) -> "re.Pattern[str]":
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"(?<![\w-])(?:{longest_first or '(?!)'})(?![\w-])")


class Table:
    """A value for each number, computed when it is needed."""

    def __init__(self, of: Callable[[int], int]) -> None:
        """Begin without values."""
        self._of: Final = of
        self.values: Numbers = np.full(64, -1, dtype=np.int64)

    def __call__(self, numbers: Numbers) -> Numbers:
        """Return the values of these numbers."""
        largest = int(numbers.max(initial=0))
        if largest >= len(self.values):
            more = np.full(max(largest + 1, 2 * len(self.values)) - len(self.values), -1, dtype=np.int64)
            self.values = np.concatenate([self.values, more])
        missing: set[int] = set(numbers[self.values[numbers] < 0].tolist())
        for number in sorted(missing):
            self.values[number] = self._of(number)
        return self.values[numbers]


class Order:
    """A permutation of alike aggregates."""

    def __init__(self, product_system: ProductSystem, to: Sequence[int]) -> None:
        """Take, for each aggregate, the one whose place it gets."""
        components = product_system.components
        self._product: Final = product_system
        self.to: Final = tuple(to)
        exchanged = (
            (component, components[place])
            for component, place in zip(components, to, strict=True)
            if component.number != place
        )
        self._names: Final = {_key(component): _key(other) for component, other in exchanged}
        self._renaming: Final = Renaming(self._names)
        self.images: Final = [Table(partial(self._image, component)) for component in components]
        self._queues: Final = Table(self._queue)
        self._channels: Final = [
            product_system.channels.index((to[sender], to[receiver])) for sender, receiver in product_system.channels
        ]

    def __call__(self, columns: Columns) -> list[Numbers]:
        """Return the permuted states."""
        components = len(self.to)
        after = list(columns)
        for component, place in enumerate(self.to):
            after[place] = self.images[component](columns[component])
        for channel, place in enumerate(self._channels):
            after[components + place] = self._queues(columns[components + channel])
        return after

    def _image(self, component: Component, local: int) -> int:
        return self._product.components[self.to[component.number]].number_of(self._renaming(component.states[local]))

    def _queue(self, queue: int) -> int:
        return self._product.queue(tuple(self.sent_message(each) for each in self._product.queues[queue]))

    def sent_message(self, sent_message: int) -> int:
        """Return the permuted message."""
        return self._product.sent_message(self._renaming(self._product.messages[sent_message]))

    def hold(self, number: int, local: int, received: Iterable[tuple[int, int]]) -> None:
        """Check that the steps of an aggregate are those of the aggregate whose place it gets.

        ``received`` are channels with messages that it has accepted. Raises ``NotAlike``.
        """
        one, other = self._product.components[number], self._product.components[self.to[number]]
        image = int(self.images[number].values[local])
        mine = {self._step(number, step) for step in one.steps(local)}
        if mine != {_essence(step, step.to, step.sent) for step in other.steps(image)}:
            raise self._distinguished(one, local, "something else can happen")
        for channel, sent_message in received:
            step = other.reception(image, self._channels[channel], self.sent_message(sent_message))
            if self._step(number, one.reception(local, channel, sent_message)) != _essence(step, step.to, step.sent):
                raise self._distinguished(one, local, f"{self._product.messages[sent_message]} is not accepted alike")
        opinions = [
            Counter(
                (prop, *said)
                for (prop, _), said in self._product.judge.opinion(component.of, component.states[at]).items()
            )
            for component, at in ((one, local), (other, image))
        ]
        if opinions[0] != opinions[1]:
            raise self._distinguished(one, local, "a property has another truth")

    def _distinguished(self, component: Component, local: int, how: str) -> NotAlike:
        to = ", ".join(f"{old} for {new}" for old, new in self._names.items())
        return NotAlike(
            f"{how} if names are exchanged ({to}): they are not alike, so check without symmetry:"
            f" {component.states[local]}"
        )

    def _step(self, component: int, step: LocalStep) -> Hashable:
        to = int(self.images[component](np.array([step.to]))[0])
        return _essence(
            step,
            to,
            tuple((self._channels[channel], self.sent_message(sent_message)) for channel, sent_message in step.sent),
        )

    def is_fixed(self, world: StateRow) -> bool:
        """Tell whether a state does not change, without adding new ones."""
        components, queues = self._product.components, self._product.queues
        same = all(
            components[place].known(self._renaming(components[component].states[world[component]])) == world[place]
            for component, place in enumerate(self.to)
        )
        under_way = [[self._product.messages[each] for each in queues[number]] for number in world[len(components) :]]
        return same and all(
            [self._renaming(sent_message) for sent_message in under_way[channel]] == under_way[place]
            for channel, place in enumerate(self._channels)
        )


def _essence(step: LocalStep, to: int, sent: tuple[tuple[int, int], ...]) -> Hashable:
    """Return the relevant parts of a step: its target, its messages, whether it is a command, its broken properties."""
    by_channel = {channel: tuple(sent_message for each, sent_message in sent if each == channel) for channel, _ in sent}
    return to, frozenset(by_channel.items()), step.said, frozenset(step.wrong)


def _key(component: Component) -> str:
    return component.name.partition("/")[2]


def _colour(portrait: Portrait, component: Component, local: int) -> int:
    return portrait.of(component.states[local])


class Symmetry:
    """The alike aggregates of a product system, and the representatives of its states."""

    def __init__(self, product_system: ProductSystem, beginning: StateRow) -> None:
        """Find the alike aggregates of the opening. Raises ``NotAlike`` if there are none."""
        self._product: Final = product_system
        self._beginning: Final = beginning
        self._orders: Final[dict[tuple[int, ...], Order]] = {}
        self._colours: Final[dict[Hashable, int]] = {}
        self.groups: Final = self._alike()
        if not self.groups:
            raise NotAlike("no two aggregates of the opening are alike: check without symmetry")
        self._portraits: Final[dict[tuple[int, int], Table]] = {}
        self._of_queues: Final[dict[int, Table]] = {}
        for group in self.groups:
            self._prepare(group)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The names of the alike aggregates."""
        return tuple(tuple(self._product.components[component].name for component in group) for group in self.groups)

    def _alike(self) -> list[tuple[int, ...]]:
        components, groups = self._product.components, dict[int, list[int]]()
        placed: set[int] = set()
        for one, other in combinations(range(len(components)), 2):
            named = components[one].of is components[other].of and _key(components[one]) and _key(components[other])
            if named and one not in placed and self._order({one: other, other: one}).is_fixed(self._beginning):
                groups.setdefault(one, [one]).append(other)
                placed.add(other)
        return [tuple(group) for group in groups.values()]

    def _order(self, exchanged: Mapping[int, int]) -> Order:
        to = tuple(exchanged.get(component, component) for component in range(len(self._product.components)))
        if to not in self._orders:
            self._orders[to] = Order(self._product, to)
        return self._orders[to]

    def _prepare(self, group: tuple[int, ...]) -> None:
        components = self._product.components
        names = [_key(components[component]) for component in group]
        for own in group:
            portrait = Portrait(_key(components[own]), names, self._colours)
            for component in components:
                if component.number == own or component.number not in group:
                    self._portraits[own, component.number] = Table(partial(_colour, portrait, component))
            self._of_queues[own] = Table(partial(self._colour_of_queue, portrait))

    def _colour_of_queue(self, portrait: Portrait, queue: int) -> int:
        return portrait.of(tuple(self._product.messages[each] for each in self._product.queues[queue]))

    def hold(self, most: int) -> int:
        """Check that the rules and the properties treat alike aggregates alike; return the number of compared states.

        These are states of aggregates, in the order in which they were reached, and their permutations in the search.
        In both, the same steps are possible, with the same targets, messages and broken properties, but for the names.
        Raises ``NotAlike``.
        """
        every = [
            (local, component, order)
            for order in self._orders.values()
            for component, table in enumerate(order.images)
            for local in np.flatnonzero(table.values >= 0).tolist()
        ]
        every.sort(key=lambda each: each[0])
        received = [component.received() for component in self._product.components]
        for local, component, order in every[:most]:
            order.hold(component, local, received[component].get(local, ()))
        return len(every[:most])

    def representatives(self, columns: Columns) -> list[Numbers]:
        """Return the representative of each of these states."""
        return reduce(self._in_order, self.groups, list(columns))

    def of(self, world: StateRow) -> StateRow:
        """Return the representative of a state."""
        return tuple(int(column[0]) for column in self.representatives([np.array([number]) for number in world]))

    def _in_order(self, columns: list[Numbers], group: tuple[int, ...]) -> list[Numbers]:
        looks = np.stack([self._look(component, group, columns) for component in group])
        order = np.argsort(looks, axis=0, kind="stable")
        codes = (len(group) ** np.arange(len(group))) @ order
        after = [column.copy() for column in columns]
        found: list[int] = np.unique(codes).tolist()
        for code in found:
            rows = np.flatnonzero(codes == code)
            who: list[int] = order[:, rows[0]].tolist()
            if who != sorted(who):
                exchanged = {group[one]: place for one, place in zip(who, group, strict=True)}
                for column, new in zip(after, self._order(exchanged)([each[rows] for each in columns]), strict=True):
                    column[rows] = new
        return after

    def _look(self, own: int, group: tuple[int, ...], columns: Columns) -> Numbers:
        """Return, as a number for each state, the portrait of an aggregate: of itself, in others, on its channels."""
        components = self._product.components
        look = np.zeros(len(columns[0]), dtype=np.uint64)
        places = [own, *(component.number for component in components if component.number not in group)]
        for place in places:
            look = look * _MIX + self._portraits[own, place](columns[place]).astype(np.uint64)
        for outside in places[1:]:
            for pair in ((own, outside), (outside, own)):
                queues = columns[len(components) + self._product.channels.index(pair)]
                look = look * _MIX + self._of_queues[own](queues).astype(np.uint64)
        return look.astype(np.int64)

    def images(self, world: StateRow) -> Iterator[StateRow]:
        """Yield all states with the same representative, the state itself among them."""
        worlds = {world}
        for group in self.groups:
            orders = [self._order(dict(zip(group, places, strict=True))) for places in permutations(group)]
            columns = [[np.array([number]) for number in each] for each in worlds]
            worlds = {tuple(int(column[0]) for column in order(each)) for each in columns for order in orders}
        yield from sorted(worlds)
