"""The properties of a system, evaluated in many states at once.

A property with a projection is evaluated once for all states with the same projection. The projection of an aggregate
is computed once for each of its states, so a system projection is a few numbers. Any other property is evaluated in
every state.
"""

from array import array
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, Final

import numpy as np

from lifefold.core.kernel import Projection
from lifefold.interpreters.search.configuration import NamedProperty
from lifefold.interpreters.search.liveness import Flags
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.search.rule_error import Place
from lifefold.interpreters.search.state_set import Numbers

Columns = Sequence[Numbers]
"""States of a product system: one column for each number of a state."""

Evaluation = Callable[[NamedProperty, Any], bool]


class SystemProperties:
    """Evaluates the properties of a system."""

    def __init__(self, product_system: ProductSystem) -> None:
        """Evaluate in the states of this product system."""
        self._product: Final = product_system
        self._glances: Final[dict[Callable[[Any], Hashable], _Glance]] = {}

    def holds(self, number: int, columns: Columns, begin: int = 0) -> Flags:
        """Tell of each state whether a property holds there; the first state has number ``begin``."""
        return self._ask(number, NamedProperty.holds, columns, begin)

    def is_due(self, number: int, columns: Columns, begin: int = 0) -> Flags:
        """Tell of each state whether a property is due there."""
        return self._ask(number, NamedProperty.is_due, columns, begin)

    def _ask(self, number: int, evaluation: Evaluation, columns: Columns, begin: int) -> Flags:
        prop = self._product.judge.properties[number]
        projection = prop.property.projection
        if projection is None:
            return self._ask_each(prop, evaluation, columns, begin)
        if projection not in self._glances:
            self._glances[projection] = _Glance(self._product, projection)
        return self._glances[projection].answers(number, evaluation, columns, begin)

    def _ask_each(self, prop: NamedProperty, evaluation: Evaluation, columns: Columns, begin: int) -> Flags:
        answers = np.zeros(len(columns[0]), dtype=np.bool_)
        place = 0
        with self._product.flawless(lambda: Place(state=begin + place)):
            for place, world in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
                answers[place] = evaluation(prop, self._product.system_state(world))
        return answers


class _Glance:
    """One projection of the states of a product system, evaluated once for all states with the same value."""

    def __init__(self, product_system: ProductSystem, projection: Callable[[Any], Hashable]) -> None:
        self._product = product_system
        self._sees = projection
        self._numbers: list[dict[Hashable, int]] = [{} for _ in product_system.components]
        self._values: list[list[Hashable]] = [[] for _ in product_system.components]
        self._seen = [array("q") for _ in product_system.components]
        self._rows: dict[tuple[int, ...], int] = {}
        self._overviews: list[Projection] = []
        self._answers: dict[tuple[int, Evaluation], list[bool]] = {}

    def answers(self, number: int, evaluation: Evaluation, columns: Columns, begin: int) -> Flags:
        """Evaluate a property or its condition in each of these states."""
        places = self._places(columns, begin)
        known = self._answers.setdefault((number, evaluation), [])
        prop = self._product.judge.properties[number]
        with self._product.flawless(lambda: Place(state=begin + int(np.flatnonzero(places == len(known))[0]))):
            for overview in self._overviews[len(known) :]:
                known.append(evaluation(prop, overview))
        return np.array(known, dtype=np.bool_)[places]

    def _places(self, columns: Columns, begin: int) -> Numbers:
        """Return the number of each state's projection."""
        components, channels = len(self._product.components), len(self._product.channels)
        with self._product.flawless(lambda: Place(state=begin)):
            seen = [np.array(self._of_part(component))[columns[component]] for component in range(components)]
        rows = np.stack([*seen, self._under_way(columns[components : components + channels], len(columns[0]))])
        different, which = _unique(rows)
        return np.array([self._number(tuple(row)) for row in different.T.tolist()], dtype=np.int64)[which]

    def _number(self, row: tuple[int, ...]) -> int:
        number = self._rows.setdefault(row, len(self._overviews))
        if number == len(self._overviews):
            seen = {
                component.name: values[value]
                for component, values, value in zip(self._product.components, self._values, row, strict=False)
            }
            self._overviews.append(Projection(seen, row[-1]))
        return number

    def _of_part(self, component: int) -> "array[int]":
        """Return, by the number of an aggregate's state, the number of its projection."""
        numbers, values, seen = self._numbers[component], self._values[component], self._seen[component]
        for aggregate in self._product.components[component].states[len(seen) :]:
            value = self._sees(aggregate)
            seen.append(numbers.setdefault(value, len(values)))
            if len(numbers) > len(values):
                values.append(value)
        return seen

    def _under_way(self, channels: Columns, count: int) -> Numbers:
        """Return the number of messages in flight in each state."""
        lengths = np.array([len(queue) for queue in self._product.queues], dtype=np.int64)
        return sum((lengths[channel] for channel in channels), start=np.zeros(count, dtype=np.int64))


def _unique(rows: Numbers) -> tuple[Numbers, Numbers]:
    """Return the different columns of an array, and the index of each column among them.

    A column is encoded as one number if the product of the ranges fits; otherwise columns are compared as they are.
    """
    sizes: list[int] = (rows.max(axis=1, initial=0) + 1).tolist()
    if prod(sizes) > _MOST:
        different, which = np.unique(rows, axis=1, return_inverse=True)
        return different, which.ravel()
    weights = np.array([1, *accumulate(sizes[:-1], mul)], dtype=np.int64)
    _, first, which = np.unique(weights @ rows, return_index=True, return_inverse=True)
    return rows[:, first], which.ravel()


_MOST: Final = int(np.iinfo(np.int64).max)
