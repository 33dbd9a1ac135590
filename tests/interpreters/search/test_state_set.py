"""The set of states met: rows are one state if and only if they are equal, however they are packed."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lifefold.interpreters.search.state_set import StateSet

Row = tuple[int, ...]
WIDTH = 5
rows = st.tuples(*(st.sampled_from([0, 1, 2, 3, largest]) for largest in (1, 7, 300, 2**31, 2**50)))


@settings(max_examples=200)
@given(batches=st.lists(st.lists(rows, min_size=1, max_size=40), max_size=12))
def test_every_row_has_one_number_for_ever(batches: list[list[Row]]) -> None:
    """A set of tuples agrees: on how many there are, on which are new, and on the order of the numbers."""
    seen, known = StateSet(WIDTH, capacity=4), list[Row]()
    for batch in batches:
        columns = [np.array(column, dtype=np.int64) for column in zip(*batch, strict=True)]
        seen.widen([max(column) for column in zip(*batch, strict=True)])
        numbers, firsts = seen.add(seen.pack(columns))
        places: list[int] = firsts.tolist()
        new = [batch[place] for place in places]
        assert sorted(new) == sorted({*batch} - {*known})
        assert all(batch.index(batch[place]) == place for place in places)
        known += new
        assert [known[number] for number in numbers.tolist()] == batch
        assert seen.count == len(known)
    assert [seen.row(number) for number in range(len(known))] == known
    assert [seen.column(2).tolist()] == [[row[2] for row in known]]


@given(row=rows, other=rows)
def test_packed_rows_can_be_changed(row: Row, other: Row) -> None:
    """A column at a time, upwards and downwards, without a trace in the other columns."""
    seen = StateSet(WIDTH, capacity=4)
    seen.widen([max(pair) for pair in zip(row, other, strict=True)])
    words = seen.pack([np.array([number]) for number in row])
    for column, (old, new) in enumerate(zip(row, other, strict=True)):
        seen.change(words, column, (slice(None), np.array([old]), np.array([new])))
    seen.add(words)
    assert seen.row(0) == other
