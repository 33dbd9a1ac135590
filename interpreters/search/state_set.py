"""The set of all reached states: rows of small numbers, packed into words, and a table with the place of each row.

Rows are added in batches. Each column has as many bits as its numbers need; when one needs more, all rows are packed
again. A row with few bits is its own place in the table. Otherwise a hash gives the first place to look. Two rows are
the same state only if they are equal.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]

Change = tuple[Numbers | slice, Numbers, Numbers]
"""The rows of a batch, their numbers, and their new numbers."""

_WORD_BITS: Final = 64
_DIRECT_BITS: Final = 28
"""The most bits of a row that is its own place: the table then has four bytes for each, and unused ones cost nothing.
"""
_FREE: Final = 0
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(32)


class StateSet:
    """Rows of equal width, each with a number, in the order in which they were added."""

    def __init__(self, width: int, capacity: int = 1 << 12) -> None:
        """Begin without rows; ``capacity`` is a power of two."""
        self.count = 0
        self._bits = [1] * width
        self._places = _places(self._bits)
        self._words: list[Words] = [np.empty(capacity, dtype=np.uint64) for _ in range(self._places[-1][0] + 1)]
        self._table: npt.NDArray[np.int32]
        """At each slot the number of a row, plus one."""
        self._index()

    def column(self, number: int, begin: int = 0, end: int | None = None) -> Numbers:
        """Return a column of the rows from ``begin`` to before ``end``."""
        word, shift = self._places[number]
        mask = np.uint64((1 << self._bits[number]) - 1)
        component = self._words[word][begin : self.count if end is None else end]
        return ((component >> np.uint64(shift)) & mask).astype(np.int64)

    def row(self, number: int) -> tuple[int, ...]:
        """Return a row."""
        return tuple(int(self.column(each, number, number + 1)[0]) for each in range(len(self._bits)))

    def words(self, begin: int, end: int) -> list[Words]:
        """Return the rows from ``begin`` to before ``end``, packed. They are valid until ``widen``."""
        return [word[begin:end] for word in self._words]

    def change(self, words: Sequence[Words], number: int, change: Change) -> None:
        """Give packed rows new numbers in a column: some of them, or all."""
        which, old, new = change
        word, shift = self._places[number]
        words[word][which] += (new - old).astype(np.uint64) << np.uint64(shift)

    def pack(self, columns: Sequence[Numbers]) -> list[Words]:
        """Return rows, packed. Every column must be wide enough."""
        words = [np.zeros(len(columns[0]), dtype=np.uint64) for _ in self._words]
        for column, (word, shift) in zip(columns, self._places, strict=True):
            words[word] |= column.astype(np.uint64) << np.uint64(shift)
        return words

    def widen(self, largest: Sequence[int]) -> None:
        """Give every column bits enough for numbers up to the largest."""
        if all(number < 1 << bits for number, bits in zip(largest, self._bits, strict=True)):
            return
        columns = [self.column(number) for number in range(len(self._bits))]
        wider = [max(bits, number.bit_length() + 1) for number, bits in zip(largest, self._bits, strict=True)]
        capacity = len(self._words[0])
        self._bits, self._places = wider, _places(wider)
        self._words = [np.empty(capacity, dtype=np.uint64) for _ in range(self._places[-1][0] + 1)]
        for word, packed in zip(self._words, self.pack(columns), strict=True):
            word[: self.count] = packed
        self._index()

    def add(self, words: Sequence[Words]) -> tuple[Numbers, Numbers]:
        """Add packed rows; return the number of each, and for each new one the place of its first occurrence.

        The new ones are in the order of their numbers.
        """
        self._make_room(len(words[0]))
        slots = self._slots(words)
        numbers = np.empty(len(slots), dtype=np.int64)
        waiting = np.arange(len(slots), dtype=np.int64)
        firsts: list[Numbers] = []
        while True:
            free = np.flatnonzero(self._table[slots[waiting]] == _FREE)
            firsts.append(self._claim(waiting[free], slots, words))
            held = self._table[slots[waiting]] - 1
            if self._is_direct:
                return held.astype(np.int64), firsts[0]
            same = np.ones(len(waiting), dtype=np.bool_)
            for ours, theirs in zip(self._words, words, strict=True):
                same &= ours[held] == theirs[waiting]
            numbers[waiting[same]] = held[same]
            waiting = waiting[~same]
            if not len(waiting):
                return numbers, np.concatenate(firsts)
            slots[waiting] = (slots[waiting] + 1) & (len(self._table) - 1)

    def __contains__(self, row: Sequence[int]) -> bool:
        """Tell whether a row was added."""
        if any(number >> bits for number, bits in zip(row, self._bits, strict=True)):
            return False
        words = self.pack([np.array([number], dtype=np.int64) for number in row])
        slot = int(self._slots(words)[0])
        while (held := int(self._table[slot]) - 1) >= 0:
            if all(ours[held] == theirs[0] for ours, theirs in zip(self._words, words, strict=True)):
                return True
            slot = (slot + 1) & (len(self._table) - 1)
        return False

    def _claim(self, wanting: Numbers, slots: Numbers, words: Sequence[Words]) -> Numbers:
        """Give a free slot to the first of the rows that need it, with a new number."""
        at = slots[wanting]
        marks = (-1 - wanting).astype(np.int32)
        self._table[at[::-1]] = marks[::-1]  # the last write to a slot stays: here the first row's
        won: Numbers = wanting[self._table[at] == marks]
        new = np.arange(self.count, self.count + len(won), dtype=np.int64)
        for ours, theirs in zip(self._words, words, strict=True):
            ours[new] = theirs[won]
        self._table[slots[won]] = new + 1
        self.count += len(won)
        return won

    @property
    def _is_direct(self) -> bool:
        return sum(self._bits) <= _DIRECT_BITS

    def _slots(self, words: Sequence[Words]) -> Numbers:
        """Return for each row the slot to begin with."""
        return words[0].astype(np.int64) if self._is_direct else _hashed(words, len(self._table))

    def _make_room(self, more: int) -> None:
        capacity = len(self._words[0])
        if self.count + more <= capacity:
            return
        while capacity < self.count + more:
            capacity *= 2
        for number, word in enumerate(self._words):
            grown = np.empty(capacity, dtype=np.uint64)
            grown[: self.count] = word[: self.count]
            self._words[number] = grown
        if not self._is_direct:
            self._index()

    def _index(self) -> None:
        """Build the table again."""
        size = 1 << sum(self._bits) if self._is_direct else 2 * len(self._words[0])
        self._table = np.zeros(size, dtype=np.int32)
        slots = self._slots([word[: self.count] for word in self._words])
        waiting = np.arange(self.count, dtype=np.int64)
        while len(waiting):
            at = slots[waiting]
            free = self._table[at] == _FREE
            self._table[at[free]] = waiting[free] + 1
            waiting = waiting[self._table[at] != waiting + 1]
            slots[waiting] = (slots[waiting] + 1) & (size - 1)


def _places(bits: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each column its word, and its first bit there."""
    places: list[tuple[int, int]] = []
    word, used = 0, 0
    for each in bits:
        if used + each > _WORD_BITS:
            word, used = word + 1, 0
        places.append((word, used))
        used += each
    return places


def _hashed(words: Sequence[Words], slots: int) -> Numbers:
    """Return for each row the slot to begin with."""
    hashes = words[0] * _MIX
    for word in words[1:]:
        hashes = ((hashes ^ (hashes >> _SHIFT)) + word) * _MIX
    hashes ^= hashes >> _SHIFT
    return (hashes & np.uint64(slots - 1)).astype(np.int64)
