"""Overlays: a macrostep's changes of a persistent map are read at once, and become persistent at its end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrsistent import pmap

from lifefold.core.kernel.overlay import Overlay

KEYS = st.sampled_from("abcdef")


@given(st.dictionaries(KEYS, st.integers()), st.lists(st.tuples(KEYS, st.integers())), st.sets(KEYS))
def test_an_overlay_is_read_like_the_map_that_it_becomes(
    base: dict[str, int], changes: list[tuple[str, int]], read: set[str]
) -> None:
    """Whatever was read before the changes, and in between."""
    of = Overlay(pmap(base))
    expected = dict(base)
    for key, value in changes:
        assert {each: of.get(each) for each in read} == {each: expected.get(each) for each in read}
        of.put(key, value)
        expected[key] = value
    assert of.persistent() == pmap(expected)
    assert {each: each in of for each in "abcdefg"} == {each: each in expected for each in "abcdefg"}
    assert (len(of), sorted(of), sorted(of.keys())) == (len(expected), sorted(expected), sorted(expected))
    assert sorted(of.items()) == sorted(expected.items())
    assert sorted(of.values()) == sorted(expected.values())
    assert {each: of[each] for each in expected} == expected


def test_an_overlay_without_changes_becomes_the_same_map() -> None:
    """Also if entries of it were read; what is not there is a ``KeyError``, or the default."""
    base = pmap({"a": 1})
    of = Overlay(base)
    assert (of["a"], of.get("b"), of.get("b", 2)) == (1, None, 2)
    with pytest.raises(KeyError, match="b"):
        of["b"]
    assert of.persistent() is base
