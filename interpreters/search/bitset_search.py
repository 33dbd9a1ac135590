"""The bitset search, for independent aggregates (see ``independence``): sets of states as bits, one level at a time.

A set of states is an array of words. Each aggregate but the last has an axis, with an index for each of its states.
The states of the last aggregate are bits of a word, or of several words. So every possible state has a place, and its
bit tells whether it was reached.

All steps from the states of a level are taken together, until no new state is reached. A step of one aggregate is the
same in all states of the others. So one slice of the level is joined to another slice of the next level. The steps of
the last aggregate are looked up in a table, some bits of a word at a time. The new states are those of the next level
that were not reached before.

The result is that of the search in ``graph``, for a few instructions for each state and a bit of memory.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from lifefold.interpreters.search.component import Move
from lifefold.interpreters.search.findings import BrokenAt, Findings, Progress, Watch
from lifefold.interpreters.search.graph import Graph, explore
from lifefold.interpreters.search.independence import Alone, Liveness, Numbers, locals_of, may_be, number
from lifefold.interpreters.search.product_system import ProductSystem, StateRow
from lifefold.interpreters.search.rule_error import RuleError

Words = npt.NDArray[np.uint64]

_WORD_BITS: Final = 64
_LOOKED_UP_BITS: Final = 11
"""The number of bits of a word that are looked up at a time."""
_LOOKED_UP: Final = np.uint64((1 << _LOOKED_UP_BITS) - 1)
BLOCK_WORDS: Final = 1 << 16
"""The number of words that are processed together, so that they stay in the cache of the processor."""
_MOST_STATES: Final = 512
"""The most states of an aggregate. With more, the table of the aggregate takes most of the time, and levels are many.
"""
_SETS: Final = 3
"""The number of sets of states that exist at a time."""


def search(
    product_system: ProductSystem, *, tell: Callable[[Progress], None] | None = None, block_words: int = BLOCK_WORDS
) -> "Graph | Product":
    """Reach every state within the bounds, with the bitset search if it is possible."""
    found = (
        _Search(product_system, tell, block_words).run()
        if not product_system.bounds.symmetry and may_be(product_system)
        else None
    )
    return explore(product_system, tell=tell) if found is None else found


class Product(Findings):
    """The state space of independent aggregates. The reached states are not kept: they are all combinations."""

    def __init__(self, product_system: ProductSystem) -> None:
        """Begin with the first state only."""
        super().__init__(product_system)
        self.alone: Final = [Alone(component) for component in product_system.components]
        self.met = 1

    @property
    def count(self) -> int:
        """The number of states that were reached."""
        return self.met

    def world(self, state: int) -> StateRow:
        """Return a state by its number."""
        return (*locals_of(state, len(self.alone)), *(0 for _ in self.product_system.channels))

    def way(self, state: int) -> list[Move]:
        """Return a shortest trace to a state from the opening: the aggregates take their steps one after the other."""
        locals_ = locals_of(state, len(self.alone))
        return [move for each, local in zip(self.alone, locals_, strict=True) for move in each.way(local)]

    def only(self, component: int, local: int) -> int:
        """Return the state nearest to the opening in which an aggregate has one local state."""
        return number([local if place == component else 0 for place in range(len(self.alone))])

    def nearest(self, component: int, locals_: Collection[int]) -> int:
        """Return the state nearest to the opening in which an aggregate has one of these local states."""
        return self.only(component, min(locals_, default=-1))

    def liveness(self) -> Liveness:
        """Return the check of liveness properties, after a complete search."""
        return Liveness(self.product_system, self.alone)


class _Search:
    def __init__(
        self, product_system: ProductSystem, tell: Callable[[Progress], None] | None, block_words: int
    ) -> None:
        self._system = product_system
        self._product = Product(product_system)
        self._watch = Watch(self._product, tell)
        self._sets = _Sets(self._product.alone, block_words)

    def run(self) -> Product | None:
        """Return the findings; None if the bitset search is not possible."""
        found, product_system = self._product, self._system
        found.broken.update((prop, BrokenAt(0)) for prop in product_system.wrong_at_birth)
        self._judge()
        try:
            if not self._go_on():
                return None
        except (RuleError, KeyboardInterrupt) as why:
            found.end(why)
        found.seconds = self._watch.seconds
        return found

    def _go_on(self) -> bool:
        """Search level by level until no state is new; return whether the bitset search is possible."""
        found, sets, more = self._product, self._sets, True
        while more and not found.truncated:
            if not all(each.look() for each in found.alone) or not sets.fit(self._system.bounds.states):
                return False
            found.truncated = self._watch.limit(more_mib=sets.growing_mib)
            more = not found.truncated and self._look()
        return True

    def _look(self) -> bool:
        """Take all steps from the last level; return whether a state is new."""
        found, sets = self._product, self._sets
        sets.grow()
        for alone in found.alone:
            for prop, (local, to) in alone.broken.items():
                finding = BrokenAt(*(found.only(alone.component.number, each) for each in (local, to)))
                found.broken.setdefault(prop, finding)
        found.stuck.extend(sets.stuck())
        found.steps += sets.take_steps()
        new = sets.renew()
        if new:
            found.levels.append(found.met)
            found.met += new
            self._judge()
            self._watch.report(new)
            found.truncated = self._watch.limit()
        return new > 0

    def _judge(self) -> None:
        """Judge the local states that the last level reached."""
        found, judge = self._product, self._system.judge
        for alone in found.alone:
            component = alone.component.number
            for local in alone.level:
                for prop in judge.wrong.get((component, local), ()):
                    found.broken.setdefault(prop, BrokenAt(found.only(component, local)))
            for prop, places in judge.seen.items():
                for local in filter(places.get(component, set()).__contains__, alone.level):
                    found.witnesses.setdefault(prop, found.only(component, local))


class _Sets:
    """The last level, the next one, and all states that were not reached."""

    def __init__(self, alone: Sequence[Alone], block_words: int) -> None:
        self._block_words = block_words
        *self._placed, self._packed = alone
        self._level: Words = np.ones((1,) * len(alone), dtype=np.uint64)
        self._after = np.zeros_like(self._level)
        self._unmet = ~self._level
        self._known = 0

    @property
    def _shape(self) -> tuple[int, ...]:
        width = -(-len(self._packed.component.states) // _WORD_BITS)
        return (*(len(each.component.states) for each in self._placed), width)

    def fit(self, most_words: int) -> bool:
        """Tell whether the sets of states are worth their memory after they grow, up to so many words."""
        states = (len(each.component.states) for each in (*self._placed, self._packed))
        return prod(self._shape) <= most_words and max(states) <= _MOST_STATES

    @property
    def growing_mib(self) -> int:
        """The memory for growing, in MiB."""
        growing = self._shape != self._level.shape
        return (_SETS * self._level.itemsize * prod(self._shape) >> 20) if growing else 0

    def grow(self) -> None:
        """Make room for all known states of aggregates, and take over their steps."""
        known, shape = sum(len(each.steps) for each in (*self._placed, self._packed)), self._shape
        if known == self._known:
            return
        self._known = known
        if shape != self._level.shape:
            self._level = _grown(self._level, shape, 0)
            self._unmet = _grown(self._unmet, shape, ~np.uint64(0))
            self._after = np.zeros(shape, dtype=np.uint64)
        self._links = [sorted(each.links) for each in self._placed]
        self._counts = [_per_state(each) for each in self._placed]
        self._ends = [each.ends for each in (*self._placed, self._packed)]
        self._lookups = list(_lookups(self._packed, shape[-1]))
        self._first = next(
            n for n in range(len(shape) - 1) if prod(shape[n:]) <= self._block_words or n == len(shape) - 2
        )
        weights = np.zeros(1, dtype=np.int64)
        for counts in self._counts[self._first :]:
            weights = np.add.outer(weights, counts).ravel()
        self._weights = weights

    def take_steps(self) -> int:
        """Take all steps from the last level; return their number."""
        return self._from(0, self._level, self._after)[1]

    def _from(self, axis: int, level: Words, after: Words) -> tuple[int, int]:
        """Take the steps from a part of the level, beginning with an axis; return the numbers of states and steps."""
        if axis == self._first:
            return self._from_block(level, after)
        found = [self._from(axis + 1, one, to) for one, to in zip(level, after, strict=True)]
        for source, target in self._links[axis]:
            if found[source][0]:
                np.bitwise_or(after[target], level[source], out=after[target])
        counts = self._counts[axis].tolist()
        steps = sum(each + count * states for (states, each), count in zip(found, counts, strict=True))
        return sum(states for states, _ in found), steps

    def _from_block(self, level: Words, after: Words) -> tuple[int, int]:
        states, steps = self._from_words(level.reshape(-1, level.shape[-1]), after.reshape(-1, level.shape[-1]))
        if states:
            for axis in range(level.ndim - 2):
                _join(self._links[self._first + axis], np.moveaxis(level, axis, 0), np.moveaxis(after, axis, 0))
            # The innermost axis has adjacent states: it is turned outwards, so that slices are contiguous.
            turned = np.ascontiguousarray(np.moveaxis(level, -2, 0))
            joined = np.zeros_like(turned)
            _join(self._links[-1], turned, joined)
            after |= np.moveaxis(joined, 0, -2)
        return states, steps

    def _from_words(self, level: Words, after: Words) -> tuple[int, int]:
        """Take the steps of the last aggregate; return the number of states, and of steps of the block's states."""
        states = steps = 0
        for column, lookups in enumerate(self._lookups):
            rows = np.flatnonzero(level[:, column] != 0)
            words = level[rows, column]
            sizes = np.bitwise_count(words).astype(np.int64)
            states += int(sizes.sum())
            steps += int((sizes * self._weights[rows]).sum())
            reached = np.zeros((len(rows), level.shape[1]), dtype=np.uint64)
            for shift, images, counts in lookups:
                bits = ((words >> np.uint64(shift)) & _LOOKED_UP).astype(np.int64)
                reached |= np.take(images, bits, axis=0)
                steps += int(counts[bits].sum())
            after[rows] |= reached
        return states, steps

    def renew(self) -> int:
        """Let the new states of the next level be the last level; return their number."""
        new = 0
        flat = [each.reshape(-1) for each in (self._level, self._after, self._unmet)]
        for begin in range(0, self._level.size, self._block_words):
            level, after, unmet = (each[begin : begin + self._block_words] for each in flat)
            after &= unmet
            unmet ^= after
            level[:] = 0
            new += int(np.bitwise_count(after).sum(dtype=np.int64))
        self._level, self._after = self._after, self._level
        return new

    def stuck(self) -> Iterator[int]:
        """Yield the states of the last level without a step."""
        if all(self._ends):
            *placed, packed = self._ends
            held = self._level[np.ix_(*placed)]
            for place, last in product(np.argwhere(held.any(axis=-1)).tolist(), packed):
                if int(held[(*place, last // _WORD_BITS)]) >> last % _WORD_BITS & 1:
                    yield number([*(of[at] for of, at in zip(placed, place, strict=True)), last])


def _join(links: Sequence[tuple[int, int]], level: Words, after: Words) -> None:
    for source, target in links:
        np.bitwise_or(after[target], level[source], out=after[target])


def _grown(words: Words, shape: tuple[int, ...], fill: int | np.uint64) -> Words:
    grown = np.full(shape, fill, dtype=np.uint64)
    grown[tuple(slice(size) for size in words.shape)] = words
    return grown


def _per_state(alone: Alone) -> Numbers:
    """Return the number of steps of each state of an aggregate."""
    return np.array([alone.steps.get(local, 0) for local in range(len(alone.component.states))], dtype=np.int64)


_Lookup = tuple[int, Words, Numbers]
"""The first of the looked-up bits; by their value, the targets of the steps and their number."""


def _lookups(packed: Alone, width: int) -> Iterator[list[_Lookup]]:
    """Yield for each word of the packed aggregate its lookup tables."""
    images = np.zeros((width * _WORD_BITS, width), dtype=np.uint64)
    for source, target in packed.links:
        images[source, target // _WORD_BITS] |= np.uint64(1 << target % _WORD_BITS)
    counts = _per_state(packed)
    for word in range(width):
        begin, end = word * _WORD_BITS, min((word + 1) * _WORD_BITS, len(counts))
        yield [
            (at - begin, _sums(images[at:to], np.bitwise_or), _sums(counts[at:to], np.add))
            for at in range(begin, end, _LOOKED_UP_BITS)
            for to in [min(at + _LOOKED_UP_BITS, end)]
        ]


def _sums(of: npt.NDArray[Any], join: np.ufunc) -> npt.NDArray[Any]:
    """Return, for every set of these, as a number, the join of its members."""
    sums = np.zeros((1 << len(of), *of.shape[1:]), dtype=of.dtype)
    for bit, each in enumerate(of):
        join(sums[: 1 << bit], each, out=sums[1 << bit : 2 << bit])
    return sums
