"""Aggregates as bytes: what is read back is equal, settled entities stay bytes, and what does not fit is refused."""

import msgspec
import pytest
from pyrsistent import PMap, PSet, PVector, pmap, pset, pvector

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Codec,
    Envelope,
    Opened,
    Reaction,
    RunnerRecovered,
    System,
    Transition,
    UnreadableEntry,
    View,
    react,
    replace,
)
from lifefold.core.kernel.forgotten import ForgottenActivity, ForgottenEvent
from lifefold.core.kernel.persistent_map import Archive
from lifefold.core.kernel.snapshot import Snapshots, has_forgotten, must_recover
from lifefold.effects import Tell
from oven import Baked, Knocked, Lit, Oven, Place, Scrapped, machine


class Counts(msgspec.Struct, frozen=True):
    """A view with every persistent collection; the keys of its map are no texts."""

    by_place: PMap[tuple[str, int], PVector[str]] = pmap()
    seen: PSet[str] = pset()
    total: int = 0


def counted(counts: Counts, transition: Transition) -> Counts:
    """Count a transition."""
    key = transition.after.state.value, counts.total % 2
    names = counts.by_place.get(key, pvector()).append(transition.entity)
    return Counts(counts.by_place.set(key, names), counts.seen.add(transition.entity), counts.total + 1)


HOUSE = AggregateType("house", machines=(machine,), views={"counts": View(Counts(), counted, Counts)})
STREET = System("street", HOUSE)
SNAPSHOTS = Snapshots(STREET, Codec(STREET))
OF = STREET.type_of("house/a")
HISTORY = (
    Envelope("", Opened({"oven": Oven(), "oven:b": Oven(), "oven:c": Oven(), "oven:d": Oven()}), 0, "plan"),
    Envelope("oven", Lit(9), 5, "cook", key="k"),
    Envelope("oven", Knocked(), 6, "guest"),
    Envelope("oven:b", Lit(1), 7),
    Envelope("oven:b", Baked(), 8, "baker", slot="Bake", generation=2),
    Envelope("oven:c", Scrapped(), 9),
)


def accepted(aggregate: Aggregate, envelope: Envelope) -> Aggregate:
    """Return an aggregate after an input."""
    reaction = react(OF, aggregate, envelope)
    assert isinstance(reaction, Reaction), reaction
    return reaction.aggregate


def house() -> Aggregate:
    """Return a house with ovens that bake, cool down, are scrapped and are cold."""
    aggregate = OF.start("house/a")
    for each in HISTORY:
        aggregate = accepted(aggregate, each)
    return replace(aggregate, quarantined=pmap({"oven:z": "broken"}))


def kept(aggregate: Aggregate) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the written form of live and archived entities."""
    every = list(SNAPSHOTS.entities(aggregate, [*aggregate.entities, "oven:nowhere"]))
    live = {each.ref: each.data for each in every if each.is_live}
    return live, {each.ref: each.data for each in every if not each.is_live}


def test_an_aggregate_is_read_back_with_its_messages_and_its_failed_attempts() -> None:
    """Running activities, timers, postponed events and views are equal, and so is the next reaction."""
    before, tell = house(), Tell("house/b", "oven", Lit(3), 7)
    failed = Envelope("oven", Knocked(), 0, "engine")
    head, (live, archived) = SNAPSHOTS.head(before, [tell], [failed]), kept(before)
    assert (sorted(live), sorted(archived)) == (["oven", "oven:b", "oven:d"], ["oven:c"])
    restored = SNAPSHOTS.restored("house/a", head, live, archived)
    assert restored.aggregate == before
    assert (restored.untold, restored.failures) == ((tell,), (failed,))
    for envelope in (
        Envelope("oven:c", Lit(), 20),
        Envelope("", RunnerRecovered(3), 20),
        Envelope("oven:d", Lit(), 20),
    ):
        assert react(OF, restored.aggregate, envelope) == react(OF, before, envelope)


def test_a_view_without_a_declared_type_keeps_its_aggregates_out_of_snapshots() -> None:
    """Its value could not be read back."""
    other = AggregateType("shed", machines=(machine,), views={"counts": View(Counts(), counted)})
    system = System("street", HOUSE, other)
    snapshots = Snapshots(system, Codec(system))
    assert (snapshots.can_keep("house/a"), snapshots.can_keep("shed")) == (True, False)


def test_only_aggregates_with_a_live_entity_recover() -> None:
    """A scrapped oven expects nothing; neither does one that stayed bytes."""
    before = accepted(OF.start("house/a"), Envelope("", Opened({"oven": Oven()}), 0))
    assert must_recover(OF, before)
    settled = accepted(before, Envelope("oven", Scrapped(), 1))
    assert settled.entities["oven"].state is Place.SCRAPPED
    assert not must_recover(OF, settled)
    head, (live, archived) = SNAPSHOTS.head(settled, (), ()), kept(settled)
    assert not must_recover(OF, SNAPSHOTS.restored("house/a", head, live, archived).aggregate)


def test_forgotten_parts_are_found() -> None:
    """They can be shown only, so their aggregate has no snapshot."""
    before = house()
    oven = before.entities["oven"]
    activity = replace(oven, running=(replace(oven.running[0], activity=ForgottenActivity("Roast", "{}")),))
    event = replace(oven, postponed=(Envelope("oven", ForgottenEvent("Rang", "{}"), 1),))
    refs = ["oven", "oven:nowhere"]
    assert not has_forgotten(before, refs)
    assert has_forgotten(replace(before, entities=before.entities.set("oven", activity)), refs)
    assert has_forgotten(replace(before, entities=before.entities.set("oven", event)), refs)


@pytest.mark.parametrize(
    ("head", "live"),
    [
        (b"{", {}),
        (b'{"version": 3}', {}),
        (b'{"version": 3, "views": {"counts": {}}, "failures": [{}]}', {}),
        (b'{"version": 3, "views": {"counts": {}}}', {"oven": b"{}"}),
        (b'{"version": 3, "views": {"counts": {}}}', {"oven": kept(house())[0]["oven:b"]}),
        (b'{"version": 3, "views": {"counts": {}}}', {"stove": kept(house())[0]["oven"].replace(b"oven", b"stove")}),
    ],
)
def test_a_damaged_snapshot_is_refused(head: bytes, live: dict[str, bytes]) -> None:
    """The message names the aggregate."""
    with pytest.raises(UnreadableEntry, match="house/a"):
        SNAPSHOTS.restored("house/a", head, live, {})


def test_a_damaged_view_is_refused_when_it_is_asked_for() -> None:
    """Views stay bytes until then."""
    restored = SNAPSHOTS.restored("house/a", b'{"version": 3, "views": {"counts": 7}}', {}, {})
    with pytest.raises(UnreadableEntry, match="view counts"):
        restored.aggregate.views["counts"]


def test_the_form_tells_other_types_apart() -> None:
    """An equal system in another process has the same form; another view or another machine does not."""
    again = System(
        "street", AggregateType("house", machines=(machine,), views={"counts": View(Counts(), counted, Counts)})
    )
    assert Snapshots(again, Codec(again)).form == SNAPSHOTS.form
    others = [
        AggregateType("house", machines=(machine,)),
        AggregateType("house", machines=(machine,), views={"counts": View(Counts(), max, Counts)}),
    ]
    forms = {Snapshots(System("street", each), Codec(System("street", each))).form for each in others}
    assert len({SNAPSHOTS.form, *forms}) == 3


class Odd:
    """No collection that a view can have."""


def test_a_view_of_another_collection_is_refused() -> None:
    """Both ways: it cannot be written, and it cannot be read."""
    odd = AggregateType("house", machines=(machine,), views={"odd": View(Odd(), lambda odd, _: odd, Odd)})
    system = System("street", odd)
    snapshots = Snapshots(system, Codec(system))
    with pytest.raises(TypeError, match="Odd cannot be in a snapshot"):
        snapshots.head(odd.start("house/a"), (), ())
    restored = snapshots.restored("house/a", b'{"version": 1, "views": {"odd": 1}}', {}, {})
    with pytest.raises(UnreadableEntry, match="Odd"):
        restored.aggregate.views["odd"]


def test_an_archive_decodes_an_entry_once() -> None:
    """Only when it is asked for; its keys need no decoding."""
    asked: list[str] = []

    def decode(key: str, data: bytes) -> int:
        asked.append(key)
        return int(data)

    archive = Archive({"a": b"1", "b": b"2"}, decode)
    assert (list(archive), len(archive), "a" in archive, "c" in archive, asked) == (["a", "b"], 2, True, False, [])
    assert (archive["b"], archive["b"], asked) == (2, 2, ["b"])
