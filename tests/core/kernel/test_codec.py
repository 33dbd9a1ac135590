"""The log: what is written can be read, by a program and by a person, and what cannot be read is said plainly."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrsistent import pmap, pset, pvector

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Codec,
    Created,
    Dispatch,
    Elapsed,
    Ended,
    Envelope,
    Event,
    Opened,
    Reaction,
    Recovered,
    System,
    Transition,
    UnreadableEntry,
    digest,
    encode,
    react,
    replace,
    rule,
)
from oven import Baked, Knocked, Lit, Oven, Place, machine


@rule(on=machine)
def light_again(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """An oven that got cold is lit."""
    if transition.entered is Place.COLD and transition.before is not None:
        yield Dispatch(transition.entity, Lit(1))


HOUSE = AggregateType("house", machines=(machine,), rules=(light_again,))
CODEC = Codec(System("street", HOUSE))

OVENS = st.builds(Oven, st.sampled_from(Place), st.integers(0, 2**53), st.integers(0, 500))
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Lit, st.integers(-(2**63), 2**63 - 1)),
    st.builds(Baked),
    st.builds(Created, OVENS),
    st.builds(Elapsed, st.text(), st.integers(0, 9)),
    st.builds(Ended, st.text(), st.integers(0, 9)),
)
WHOLE: st.SearchStrategy[Event] = st.one_of(
    st.builds(Recovered, st.integers(0, 9)),
    st.builds(Opened, st.dictionaries(st.from_regex(r"oven(:\w+)?", fullmatch=True), OVENS)),
)
SMALL = st.integers(0, 2**53)


def envelopes(entity: st.SearchStrategy[str], event: st.SearchStrategy[Event]) -> st.SearchStrategy[Envelope]:
    """Make envelopes with anything in their other fields."""
    return st.builds(Envelope, entity, event, SMALL, st.text(), st.text(), st.text(), SMALL, st.text(), SMALL)


@given(st.one_of(envelopes(st.sampled_from(["oven", "oven:1"]), EVENTS), envelopes(st.just(""), WHOLE)))
def test_every_envelope_is_read_as_it_was_written(envelope: Envelope) -> None:
    """Events of the machine and of the kernel, for one entity or for all of them."""
    assert CODEC.decode("house/a", encode(envelope)) == envelope


def test_an_entry_is_plain_json() -> None:
    """A person can read it."""
    assert encode(Envelope("oven", Lit(5), 3, "you", key="k")) == (
        b'{"entity":"oven","event":{"type":"Lit","degrees":5},"at_ms":3,"actor":"you","key":"k","slot":"","generation":0,'
        b'"sender":"","ordinal":0}'
    )


def test_what_a_newer_version_added_is_passed_over_and_what_an_older_one_lacked_has_its_default() -> None:
    """A log outlives the program that wrote it."""
    entry = b'{"entity":"oven","event":{"type":"Lit","fuel":"wood"},"at_ms":3,"actor":"you","colour":"red"}'
    assert CODEC.decode("house/a", entry) == Envelope("oven", Lit(), 3, "you")


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'{"entity":"oven"}',
        b'{"entity":"oven","event":{"type":"Melted"},"at_ms":3,"actor":"you"}',
        b'{"entity":"oven","event":{"type":"Lit","degrees":"hot"},"at_ms":3,"actor":"you"}',
        b'{"entity":"stove","event":{"type":"Lit"},"at_ms":3,"actor":"you"}',
        b'{"entity":"","event":{"type":"Lit"},"at_ms":3,"actor":"you"}',
        b'{"entity":"","event":{"type":"Opened","records":{"stove":{}}},"at_ms":3,"actor":"you"}',
        b'{"entity":"oven","event":{"type":"Created","record":{"state":"Molten"}},"at_ms":3,"actor":"you"}',
        b'{"entity":"ov\xffen","event":{"type":"Lit"},"at_ms":3,"actor":"you"}',
        b'{"entity":"oven","event":{"type":"Lit"},"at_ms":3,"actor":"y\xffou"}',
    ],
    ids=[
        "empty", "torn", "no-json", "no-object", "no-event", "unknown-event", "wrong-field", "unknown-machine",
        "not-for-all", "unknown-record", "unknown-state", "broken-name", "broken-text",
    ],
)  # fmt: skip
def test_an_entry_that_does_not_fit_is_unreadable_and_says_where(entry: bytes) -> None:
    """The error names the aggregate and shows the entry."""
    with pytest.raises(UnreadableEntry, match="house/a: this version of lifefold cannot read the entry b'"):
        CODEC.decode("house/a", entry)


def test_an_aggregate_of_an_unknown_kind_is_unreadable() -> None:
    """A log of another system."""
    with pytest.raises(UnreadableEntry, match="castle/a: "):
        CODEC.decode("castle/a", encode(Envelope("oven", Lit(), 0)))


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_unreadable(data: bytes) -> None:
    """Whatever is on the disk."""
    with pytest.raises(UnreadableEntry):
        CODEC.decode("house/a", data)


def test_persistent_collections_are_written_as_plain_ones() -> None:
    """Maps in the order of their keys, so that equal values have equal bytes."""
    many = pmap({str(n): n for n in range(50)})
    assert encode(many) == msgspec.json.encode({key: int(key) for key in sorted(many)})
    assert encode(pvector([2, 1])) == b"[2,1]"
    with pytest.raises(TypeError, match="cannot write a PSet to a log"):
        encode(pset([1]))


# Digests


def fold(*envelopes: Envelope) -> tuple[Aggregate, bytes]:
    """Fold inputs over a house with one oven."""
    aggregate, last = HOUSE.start("house/a"), b""
    for envelope in (Envelope("", Opened({"oven": Oven()}), 0), *envelopes):
        reaction = react(HOUSE, aggregate, envelope)
        assert isinstance(reaction, Reaction), reaction.reason
        aggregate, last = reaction.aggregate, digest(last, reaction)
    return aggregate, last


def test_equal_histories_have_equal_digests() -> None:
    """However often they are folded."""
    history = (Envelope("oven", Lit(9), 5), Envelope("oven", Baked(), 6, slot="Bake", generation=2))
    assert fold(*history) == fold(*history)
    assert len(fold()[1]) == 16


@pytest.mark.parametrize(
    "other",
    [
        (),
        (Envelope("oven", Lit(8), 5),),
        (Envelope("oven", Lit(9), 6),),
        (Envelope("oven", Lit(9), 5), Envelope("oven", Knocked(), 6)),
    ],
    ids=["shorter", "another-event", "another-time", "longer"],
)
def test_different_histories_have_different_digests(other: tuple[Envelope, ...]) -> None:
    """A state or an effect that differs shows, and so does one input more."""
    assert fold(Envelope("oven", Lit(9), 5))[1] != fold(*other)[1]


def test_a_digest_covers_what_came_before_it() -> None:
    """The same reaction after another history has another digest."""
    reaction: Any = react(HOUSE, fold()[0], Envelope("oven", Lit(), 1))
    assert digest(b"one", reaction) != digest(b"other", reaction)
    assert digest(b"one", reaction) == digest(b"one", reaction)


def test_the_digest_sees_what_is_only_postponed() -> None:
    """An event that waits is a part of the state: two aggregates that differ in it have different digests."""
    lit = Envelope("oven", Lit(), 0, "cook")
    opened = react(HOUSE, HOUSE.start("house/a"), Envelope("", Opened({"oven": Oven()}), 0, "plan"))
    assert isinstance(opened, Reaction)
    burning = react(HOUSE, opened.aggregate, lit)
    assert isinstance(burning, Reaction)
    waiting = react(HOUSE, burning.aggregate, Envelope("oven", Knocked(), 1, "guest"))
    assert isinstance(waiting, Reaction)
    assert (waiting.transitions, waiting.changed) == ((), ("oven",))
    assert digest(b"", waiting) != digest(b"", replace(waiting, changed=()))
