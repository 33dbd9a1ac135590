"""What is promised of a system as a whole, asked about many of its states at once.

A promise that says what it looks at (``sees``) is asked once about all states that look alike: what is seen of an
aggregate is found out once for each of its states, and an ``Overview`` is a few numbers. Any other promise is asked
about every state, one by one.
"""

from array import array
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, Final

import numpy as np

from lifefold.core.kernel import Overview
from lifefold.interpreters.search.configuration import Promise
from lifefold.interpreters.search.liveness import Flags
from lifefold.interpreters.search.product_system import House
from lifefold.interpreters.search.rule_error import Place
from lifefold.interpreters.search.state_set import Numbers

Columns = Sequence[Numbers]
"""States of a house: one column for each number that a state has."""

Question = Callable[[Promise, Any], bool]


class Scenes:
    """Asks the promises of a system."""

    def __init__(self, house: House) -> None:
        """Ask about the states of this house."""
        self._house: Final = house
        self._glances: Final[dict[Callable[[Any], Hashable], _Glance]] = {}

    def holds(self, number: int, columns: Columns, begin: int = 0) -> Flags:
        """Tell of each state, the first of which is number ``begin``, whether a promise holds there."""
        return self._ask(number, Promise.holds, columns, begin)

    def is_due(self, number: int, columns: Columns, begin: int = 0) -> Flags:
        """Tell of each state whether something has to follow by a promise."""
        return self._ask(number, Promise.is_due, columns, begin)

    def _ask(self, number: int, question: Question, columns: Columns, begin: int) -> Flags:
        promise = self._house.judge.promises[number]
        sees = promise.property.sees
        if sees is None:
            return self._ask_each(promise, question, columns, begin)
        if sees not in self._glances:
            self._glances[sees] = _Glance(self._house, sees)
        return self._glances[sees].answers(number, question, columns, begin)

    def _ask_each(self, promise: Promise, question: Question, columns: Columns, begin: int) -> Flags:
        answers = np.zeros(len(columns[0]), dtype=np.bool_)
        place = 0
        with self._house.flawless(lambda: Place(state=begin + place)):
            for place, world in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
                answers[place] = question(promise, self._house.scene(world))
        return answers


class _Glance:
    """What is seen of the states of a house by one function: an overview for all that look alike."""

    def __init__(self, house: House, sees: Callable[[Any], Hashable]) -> None:
        self._house = house
        self._sees = sees
        self._numbers: list[dict[Hashable, int]] = [{} for _ in house.parts]
        self._values: list[list[Hashable]] = [[] for _ in house.parts]
        self._seen = [array("q") for _ in house.parts]
        self._rows: dict[tuple[int, ...], int] = {}
        self._overviews: list[Overview] = []
        self._answers: dict[tuple[int, Question], list[bool]] = {}

    def answers(self, number: int, question: Question, columns: Columns, begin: int) -> Flags:
        """Answer a question about a promise, of each of these states."""
        places = self._places(columns, begin)
        known = self._answers.setdefault((number, question), [])
        promise = self._house.judge.promises[number]
        with self._house.flawless(lambda: Place(state=begin + int(np.flatnonzero(places == len(known))[0]))):
            for overview in self._overviews[len(known) :]:
                known.append(question(promise, overview))
        return np.array(known, dtype=np.bool_)[places]

    def _places(self, columns: Columns, begin: int) -> Numbers:
        """Return the number of each state's overview."""
        parts, channels = len(self._house.parts), len(self._house.channels)
        with self._house.flawless(lambda: Place(state=begin)):
            seen = [np.array(self._of_part(part))[columns[part]] for part in range(parts)]
        rows = np.stack([*seen, self._under_way(columns[parts : parts + channels], len(columns[0]))])
        different, which = _unique(rows)
        return np.array([self._number(tuple(row)) for row in different.T.tolist()], dtype=np.int64)[which]

    def _number(self, row: tuple[int, ...]) -> int:
        number = self._rows.setdefault(row, len(self._overviews))
        if number == len(self._overviews):
            seen = {
                part.name: values[value]
                for part, values, value in zip(self._house.parts, self._values, row, strict=False)
            }
            self._overviews.append(Overview(seen, row[-1]))
        return number

    def _of_part(self, part: int) -> "array[int]":
        """Return, by the number of an aggregate's state, the number of what is seen of it."""
        numbers, values, seen = self._numbers[part], self._values[part], self._seen[part]
        for aggregate in self._house.parts[part].states[len(seen) :]:
            value = self._sees(aggregate)
            seen.append(numbers.setdefault(value, len(values)))
            if len(numbers) > len(values):
                values.append(value)
        return seen

    def _under_way(self, channels: Columns, count: int) -> Numbers:
        """Return how many messages are under way in each state."""
        lengths = np.array([len(queue) for queue in self._house.queues], dtype=np.int64)
        return sum((lengths[channel] for channel in channels), start=np.zeros(count, dtype=np.int64))


def _unique(rows: Numbers) -> tuple[Numbers, Numbers]:
    """Return the different columns of an array, and which of them each is.

    A column is one number where that is large enough for all of them; otherwise columns are compared as they are.
    """
    sizes: list[int] = (rows.max(axis=1, initial=0) + 1).tolist()
    if prod(sizes) > _MOST:
        different, which = np.unique(rows, axis=1, return_inverse=True)
        return different, which.ravel()
    weights = np.array([1, *accumulate(sizes[:-1], mul)], dtype=np.int64)
    _, first, which = np.unique(weights @ rows, return_index=True, return_inverse=True)
    return rows[:, first], which.ravel()


_MOST: Final = int(np.iinfo(np.int64).max)
