"""Persistent maps: read like dictionaries, in every version as it was, whatever their size."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrsistent import pmap

from lifefold.core.kernel.persistent_map import RECENT, Archive, PersistentMap

KEYS = st.integers(0, 3 * RECENT).map(str)
"""More keys than a map keeps at its upper level."""

CHANGES = st.lists(st.tuples(KEYS, st.integers()), min_size=1, max_size=2 * RECENT)

SIZES = st.sampled_from([0, 1, RECENT - 1, RECENT, RECENT + 1, 2 * RECENT])


@given(SIZES, CHANGES, st.sampled_from(["draft", "set"]))
def test_a_map_is_read_like_a_dictionary_with_the_same_changes(
    size: int, changes: list[tuple[str, int]], way: str
) -> None:
    """Changes are made with ``set`` or in drafts, at both levels; earlier versions stay as they were."""
    expected = {str(key): -key for key in range(size)}
    of = PersistentMap(expected)
    versions = [(of, dict(expected))]
    for key, value in changes:
        if way == "draft":
            of = of.draft()
            of.put(key, value)
            of.put(key, value)
        else:
            of = of.set(key, value)
        expected[key] = value
        versions.append((of, dict(expected)))
    for version, content in versions:
        assert version == content
        assert len(version) == len(content)
        assert sorted(version) == sorted(version.keys()) == sorted(content)
        assert sorted(version.items()) == sorted(content.items())
        assert sorted(version.values()) == sorted(content.values())
        assert {key: version[key] for key in content} == content
        absent = [str(each) for each in range(-1, 3 * RECENT + 1) if str(each) not in content]
        assert not any(each in version for each in absent)
        assert [version.get(each, 7) for each in absent] == [7] * len(absent)
        assert {key: version.get(key) for key in content} == content


@given(st.dictionaries(KEYS, st.integers()), st.dictionaries(KEYS, st.integers()), CHANGES)
def test_a_map_with_an_archive_is_read_like_one_without(
    archived: dict[str, int], entries: dict[str, int], changes: list[tuple[str, int]]
) -> None:
    """Its keys decode nothing, and changed entries hide those of the archive."""
    asked: set[str] = set()

    def decode(key: str, data: bytes) -> int:
        asked.add(key)
        return int(data)

    of = PersistentMap(entries, Archive({key: str(value).encode() for key, value in archived.items()}, decode))
    expected = archived | entries
    for key, value in changes:
        of = of.set(key, value)
        expected[key] = value
        assert len(of) == len(expected)
        assert set(of) == set(of.keys()) == expected.keys()
    assert of.unarchived() == entries | dict(changes)
    assert not asked
    absent = [str(each) for each in range(-1, 3 * RECENT + 1) if str(each) not in expected]
    assert [of.get(each, 7) for each in absent] == [7] * len(absent)
    assert not any(each in of for each in absent)
    assert all(key in of and of[key] == value == of.get(key) for key, value in expected.items())
    assert (of, dict(of.items()), sorted(of.values())) == (PersistentMap(expected), expected, sorted(expected.values()))
    assert hash(of) == hash(PersistentMap(expected))


@pytest.mark.parametrize("size", [1, 2 * RECENT + 1])
def test_equal_maps_are_interchangeable(size: int) -> None:
    """Equality and hash depend on the entries alone, and copies are equal; a missing key is a ``KeyError``."""
    content = {str(each): each for each in range(size)}
    whole, stepwise = PersistentMap(content), PersistentMap[int]()
    for key in reversed(content):
        stepwise = stepwise.set(key, content[key])
    assert whole == stepwise == content == pmap(content)
    assert hash(whole) == hash(stepwise) == hash(stepwise)
    assert stepwise != whole.set("0", 1)
    assert copy.deepcopy(stepwise) == whole
    assert repr(stepwise.draft()).startswith("PersistentMap({")
    with pytest.raises(KeyError, match="none"):
        stepwise["none"]
    assert stepwise.get("none") is None
