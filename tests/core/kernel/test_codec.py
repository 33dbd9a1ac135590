"""The log: entries can be read by programs and people, and an unreadable entry is reported."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrsistent import PMap, PSet, PVector, pmap, pset, pvector

from lifefold.core.kernel import (
    ANY,
    ActivityEnded,
    Aggregate,
    AggregateType,
    Codec,
    Created,
    Dispatch,
    Envelope,
    Event,
    Machine,
    Opened,
    Record,
    RunnerRecovered,
    State,
    Step,
    System,
    TimerFired,
    Transition,
    UnreadableEntry,
    does,
    encode,
    replace,
    row,
    rule,
)
from lifefold.effects import Activity, Effect
from oven import Baked, Lit, Oven, Place, Scrapped, machine

HOT = {Place.BAKING, Place.COOLING}


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
    st.builds(TimerFired, st.text(), st.integers(0, 9)),
    st.builds(ActivityEnded, st.text(), st.integers(0, 9)),
)
WHOLE: st.SearchStrategy[Event] = st.one_of(
    st.builds(RunnerRecovered, st.integers(0, 9)),
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
        b'{"a":' * 50_000,
    ],
    ids=[
        "empty", "torn", "no-json", "no-object", "no-event", "unknown-event", "wrong-field", "unknown-machine",
        "not-for-all", "unknown-record", "unknown-state", "broken-name", "broken-text", "too-deep",
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


class Crumb(msgspec.Struct, frozen=True):
    """Something small."""

    grams: int


class Basket(Record, frozen=True):
    """A record with persistent collections in it, typed and untyped."""

    state: Place = Place.COLD
    loaves: PMap[str, Crumb] = pmap()
    shelves: PMap[int, PVector[Crumb]] = pmap()
    crumbs: PVector[Crumb] | None = None
    anything: PMap = pmap()  # type: ignore[type-arg]
    whatever: PVector = pvector()  # type: ignore[type-arg]


basket: Machine[Any] = Machine(
    "basket", Basket(), rows=(row(ANY, Scrapped, Place.SCRAPPED),), final={Place.SCRAPPED}, detached=HOT
)


@given(
    st.dictionaries(st.text(), st.builds(Crumb, st.integers(0, 9))),
    st.dictionaries(st.integers(), st.lists(st.builds(Crumb, st.integers(0, 9)))),
)
def test_persistent_collections_in_a_record_are_read_as_they_were_written(
    loaves: dict[str, Crumb], shelves: dict[int, list[Crumb]]
) -> None:
    """With their elements of their types, one in the other."""
    record = Basket(
        loaves=pmap(loaves),
        shelves=pmap({shelf: pvector(crumbs) for shelf, crumbs in shelves.items()}),
        crumbs=pvector(loaves.values()),
        anything=pmap({"x": 1}),
        whatever=pvector([1, "x"]),
    )
    codec = Codec(System("market", AggregateType("stall", machines=(basket,))))
    envelope = Envelope("", Opened({"basket": record}), 0)
    assert codec.decode("stall/a", encode(envelope)) == envelope
    created = Envelope("basket", Created(record), 0)
    assert codec.decode("stall/a", encode(created)) == created


def test_a_collection_that_does_not_fit_its_type_is_unreadable() -> None:
    """Its elements are checked like everything else."""
    codec = Codec(System("market", AggregateType("stall", machines=(basket,))))
    created = b'{"type":"Created","record":{"state":"Cold","loaves":{"x":{}}}}'
    bad = b'{"entity":"basket","event":' + created + b',"at_ms":0,"actor":""}'
    with pytest.raises(UnreadableEntry, match="grams"):
        codec.decode("stall/a", bad)


class Odd(Record, frozen=True):
    """A record with something in it that no log knows."""

    state: Place = Place.COLD
    number: complex = 0j


def test_what_a_log_does_not_know_is_unreadable() -> None:
    """It could not have been written either."""
    odd: Machine[Any] = Machine("odd", Odd(), rows=basket.rows, final=basket.final, detached=HOT)
    codec = Codec(System("market", AggregateType("stall", machines=(odd,))))
    bad = b'{"entity":"odd","event":{"type":"Created","record":{"state":"Cold","number":1}},"at_ms":0,"actor":""}'
    with pytest.raises(UnreadableEntry, match="complex"):
        codec.decode("stall/a", bad)


class Tags(msgspec.Struct, frozen=True):
    """A part with a set in it, and itself."""

    words: frozenset[str] = frozenset()
    more: "tuple[Tags, ...]" = ()


class Tagged(Record, frozen=True):
    """A record with a set somewhere inside."""

    state: Place = Place.COLD
    tags: PMap[str, Tags] = pmap()


class Sorted(Event, frozen=True):
    """An event with a set."""

    words: AbstractSet[str] = frozenset()


class Sort(Activity, frozen=True):
    """An activity with a set."""

    words: set[str]


class Shout(Effect, frozen=True):
    """An effect with a set."""

    words: PSet[str]


def sort(_basket: Basket) -> Sort:
    return Sort(set())


def shout(basket: Basket, _event: Scrapped) -> Step[Basket, Shout]:
    return Step(basket, (Shout(pset()),))


UNORDERED: dict[str, tuple[Machine[Any], str]] = {
    "record": (Machine("m", Tagged(), rows=basket.rows, final=basket.final, detached=HOT), "Tagged has a frozenset"),
    "event": (basket.with_rows(row(Place.COLD, Sorted, Place.COLD), name="m"), "Sorted has a Set"),
    "activity": (basket.with_rows(during={Place.COLD: does(sort)}, name="m"), "Sort has a set"),
    "effect": (
        basket.with_rows(row(Place.COLD, Scrapped, Place.SCRAPPED, shout), name="m"),
        "Shout has a PSet",
    ),
}


@pytest.mark.parametrize("name", UNORDERED)
def test_a_log_holds_no_sets(name: str) -> None:
    """Their order differs between processes, and so would the log's bytes and digests."""
    machine, complaint = UNORDERED[name]
    with pytest.raises(TypeError, match=f"machine 'm': {complaint}; its order differs between processes"):
        Codec(System("market", AggregateType("stall", machines=(machine,))))


def test_a_plain_dictionary_keeps_its_order() -> None:
    """A value is read back as it was written, in the order of its iteration."""
    envelope = Envelope("", Opened({"oven:b": Oven(), "oven:a": Oven()}), 0)
    opened = CODEC.decode("house/a", encode(envelope)).event
    assert isinstance(opened, Opened)
    assert list(opened.records) == ["oven:b", "oven:a"]


class Attic(State):
    STORED = "Stored"


def test_a_record_in_an_added_state_is_read_as_it_was_written() -> None:
    """By the machine that has the state; another one, and a state that there is not, are said."""
    stored = machine.replacing(
        row(Place.COOLING, Lit, Attic.STORED), row(Attic.STORED, Lit, Place.COLD), added=Attic, name="oven"
    )
    codec = Codec(System("street", AggregateType("house", machines=(stored,))))
    for state in stored.states:
        written = Envelope("oven", Created(replace(Oven(degrees=7), state=state)), 0)
        assert codec.decode("house/1", encode(written)) == written
        opened = Envelope("", Opened({"oven": replace(Oven(degrees=7), state=state)}), 0)
        assert codec.decode("house/1", encode(opened)) == opened
    unknown = encode(Envelope("oven", Created(replace(Oven(), state=Attic.STORED)), 0))
    with pytest.raises(UnreadableEntry, match="Stored"):
        CODEC.decode("house/1", unknown)
    with pytest.raises(UnreadableEntry, match="Burnt"):
        codec.decode("house/1", unknown.replace(b"Stored", b"Burnt"))


class Jar(Record, frozen=True, omit_defaults=True):
    """A record without a default state, which is written without its default values."""

    state: Place
    labels: PMap[str, int] = pmap()
    full: bool = False


class Filled(Event, frozen=True):
    """There is something in it."""


JAR: Machine[Any] = Machine(
    "jar",
    Jar(Place.COLD),
    rows=(row(Place.COLD, Filled, Place.BAKING), row(Place.BAKING, Filled, Place.COLD)),
    detached={Place.COOLING, Place.SCRAPPED},
).replacing(row(Place.COLD, Filled, Attic.STORED), row(Attic.STORED, Filled, Place.BAKING), added=Attic)
JARS = Codec(System("street", AggregateType("shelf", machines=(JAR,))))


@pytest.mark.parametrize("state", [Place.COLD, Attic.STORED])
def test_a_record_that_has_to_be_told_its_state_is_read_in_an_added_one(state: State) -> None:
    for jar in (Jar(Place.COLD), Jar(Place.COLD, pmap({"plum": 3}), full=True)):
        written = Envelope("jar", Created(replace(jar, state=state)), 0)
        read = JARS.decode("shelf", encode(written))
        assert read == written
        assert isinstance(read.event, Created)
        assert type(read.event.record) is Jar
        assert read.event.record.state is state


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (b'{"state":"Burnt"}', r"Invalid enum value 'Burnt' - at `\$.state`"),
        (b'{"state":["Stored"]}', r"Expected `str`, got `array` - at `\$.state`"),
        (b'{"state":{}}', r"Expected `str`, got `object` - at `\$.state`"),
        (b'{"state":7}', r"Expected `str`, got `int` - at `\$.state`"),
        (b'{"full":true}', r"missing required field `state`"),
        (b'{"state":"Stored","full":3}', r"Expected `bool`, got `int` - at `\$.full`"),
        (b'{"state":"Stored","labels":{"plum":"x"}}', r"Expected `int`, got `str`"),
        (b'{"state":"Stored","labels":[1]}', r"Expected `object`, got `array`"),
        (b"[1]", r"Expected `object`, got `array`"),
        (b"null", r"Expected `object`, got `null`"),
        (b'"Stored"', r"Expected `object`, got `str`"),
        (b'{"state":"St', r"malformed|truncated"),
    ],
)
def test_a_damaged_record_of_a_machine_with_added_states_is_named(record: bytes, why: str) -> None:
    """As one of any other machine is: with its aggregate, the entry, and what is wrong in it."""
    sound = encode(Envelope("jar", Created(replace(Jar(Place.COLD), state=Attic.STORED)), 0))
    for written in (sound, encode(Envelope("", Opened({"jar": replace(Jar(Place.COLD), state=Attic.STORED)}), 0))):
        damaged = written.replace(b'{"state":"Stored"}', record)
        assert damaged != written
        with pytest.raises(UnreadableEntry, match=why) as caught:
            JARS.decode("shelf", damaged)
        assert str(caught.value).startswith("shelf: this version of lifefold cannot read the entry")
