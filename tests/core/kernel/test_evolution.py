"""A log of an older machine is read by a newer one: what the upcasters declare is applied to all that it has."""

from collections.abc import Sequence
from typing import Any, Never

import msgspec
import pytest

from lifefold.core.kernel import (
    STAY,
    Aggregate,
    AggregateType,
    Codec,
    Created,
    Envelope,
    Event,
    InvalidMachine,
    Machine,
    Opened,
    Outcomes,
    Reaction,
    Record,
    State,
    Step,
    System,
    UnreadableEntry,
    after,
    decide,
    does,
    encode,
    misfits,
    removed,
    removed_field,
    renamed,
    renamed_field,
    replace,
    row,
    upcast,
    written,
)
from lifefold.core.kernel.evolution import old_name
from lifefold.core.kernel.forgotten import ForgottenActivity, ForgottenEffect, ForgottenEvent, ForgottenState
from lifefold.effects import Activity, Begin, Effect, Tell

Written = tuple[Envelope, bytes, bytes]
"""An entry: its input, as bytes too, and its outcome."""


class OldState(State):
    """States of the old oven."""

    COLD = "Cold"
    WARM = "Warm"
    BROKEN = "Broken"


class Lit(Event, frozen=True):
    """The oven was lit."""

    minutes: int = 0


class Fed(Event, frozen=True):
    """Something was put in."""

    what: str = ""


class Poked(Event, frozen=True):
    """The fire was poked."""


class Cooled(Event, frozen=True):
    """The oven is cold again."""


class Burn(Activity, frozen=True):
    """Burn wood."""

    logs: int = 1


class Ring(Effect, frozen=True):
    """Ring the bell."""

    times: int = 1


class Whistle(Effect, frozen=True):
    """Blow a whistle."""


class OldOven(Record, frozen=True):
    """The old oven."""

    state: OldState = OldState.COLD
    minutes: int = 0
    colour: str = "red"


def light(oven: OldOven, event: Lit) -> Step[OldOven, Ring]:
    """Count the minutes, and ring."""
    return Step(replace(oven, minutes=oven.minutes + event.minutes), (Ring(2),))


def poke(oven: OldOven, _event: Poked) -> Step[OldOven, Whistle]:
    """Whistle."""
    return Step(oven, (Whistle(),))


def burn(_oven: OldOven) -> Burn:
    """Return the fire."""
    return Burn(3)


OLD = Machine(
    "oven",
    OldOven(),
    rows=(
        row(OldState.COLD, Lit, OldState.WARM, light),
        row(OldState.WARM, Poked, STAY, poke),
        row((OldState.WARM, OldState.BROKEN), Cooled, OldState.COLD),
        row(OldState.COLD, Fed, OldState.BROKEN),
    ),
    during={OldState.WARM: (does(burn), after(1_000, Cooled))},
    postpone={OldState.WARM: Fed},
)
OLD_KITCHEN = System("kitchen", AggregateType("kitchen", machines=(OLD,)))


class Heat(State):
    """States of the new oven."""

    IDLE = "Idle"
    WARM = "Warm"


class Kindled(Event, frozen=True):
    """The oven was lit."""

    seconds: int = 0
    by: str = "unknown"


class Bread(Event, frozen=True):
    """Bread was put in."""


class Cake(Event, frozen=True):
    """Cake was put in."""

    layers: int


class Out(Event, frozen=True):
    """The fire is out."""


class Fire(Activity, frozen=True):
    """Burn wood."""

    logs: int = 1


class Chime(Effect, frozen=True):
    """Ring the bell."""

    times: int = 1


class Oven(Record, frozen=True):
    """The new oven."""

    state: Heat = Heat.IDLE
    seconds: int = 0
    owner: str = "unknown"


class FedBefore(Event, frozen=True, tag="Fed"):
    """Something was put in, as the old oven has written it."""

    what: str = ""


class LitBefore(Event, frozen=True, tag="Lit"):
    """The old oven was lit."""

    minutes: int = 0


def in_seconds(minutes: int) -> int:
    """Return seconds."""
    return 60 * minutes


def fed(old: FedBefore) -> Bread | Cake:
    """Split the event."""
    return Cake(3) if old.what == "cake" else Bread()


def lit(old: LitBefore) -> Kindled:
    """Give a field another unit."""
    return Kindled(60 * old.minutes)


def kindle(oven: Oven, event: Kindled) -> Step[Oven, Chime]:
    """Count the seconds, and ring."""
    return Step(replace(oven, seconds=oven.seconds + event.seconds), (Chime(),))


def fire(_oven: Oven) -> Fire:
    """Return the fire."""
    return Fire()


def keep(oven: Oven, _event: Bread | Cake) -> Step[Oven, Never]:
    """Change nothing."""
    return Step(oven)


EVOLVED = (
    upcast(lit),
    upcast(fed),
    renamed("Cooled", Out),
    renamed("Ring", Chime),
    renamed("Burn", Fire),
    renamed("Cold", Heat.IDLE),
    renamed("Broken", Heat.IDLE),
    renamed_field("minutes", "seconds", by=in_seconds),
    removed_field("colour"),
    removed("Poked"),
    removed("Whistle"),
)
ROWS: Any = (
    row(Heat.IDLE, Kindled, Heat.WARM, kindle),
    row(Heat.WARM, Out, Heat.IDLE),
    row(Heat.IDLE, Bread, STAY, keep),
    row(Heat.IDLE, Cake, STAY, keep),
)
DURING: dict[Any, Any] = {Heat.WARM: (does(fire), after(1_000, Out))}


def oven(*evolved: Any, **parts: Any) -> Machine[Oven]:
    """Return a new oven with these declarations."""
    return Machine("oven", Oven(), rows=ROWS, during=DURING, postpone={Heat.WARM: Bread}, evolved=evolved, **parts)


NEW = oven(*EVOLVED)
KITCHEN = System("kitchen", AggregateType("kitchen", machines=(NEW,)))
FIELDS_ONLY = (renamed_field("minutes", "seconds"), removed_field("colour"), renamed("Cold", Heat.IDLE))
NAIVE = System("kitchen", AggregateType("kitchen", machines=(oven(*FIELDS_ONLY),)))


def log(*events: Event, system: System = OLD_KITCHEN) -> list[Written]:
    """Return the log of an oven that takes these events."""
    of = system.type_of("kitchen")
    aggregate, entries = of.start("kitchen"), list[Written]()
    for at_ms, event in enumerate(events):
        envelope = Envelope("" if isinstance(event, Opened) else "oven", event, at_ms)
        reaction = decide(of, aggregate, envelope)
        assert isinstance(reaction, Reaction)
        entries.append((envelope, encode(envelope), written(aggregate, envelope, reaction)))
        aggregate = reaction.aggregate
    return entries


def folded(entries: Sequence[Written], system: System = KITCHEN) -> list[tuple[Envelope, Reaction]]:
    """Fold a log with the rules of a system."""
    codec, of = Codec(system), system.type_of("kitchen")
    aggregate, outcomes, found = of.start("kitchen"), Outcomes(codec), list[tuple[Envelope, Reaction]]()
    for _, envelope, outcome in entries:
        given = codec.decode("kitchen", envelope, is_past=True)
        reaction = outcomes.applied(of, aggregate, given, outcome)
        aggregate = reaction.aggregate
        found.append((given, reaction))
    return found


def last(entries: Sequence[Written], system: System = KITCHEN) -> Aggregate:
    """Return what a log folds to."""
    return folded(entries, system)[-1][1].aggregate


FULL = log(Created(OldOven()), Lit(2), Poked(), Fed("cake"), Fed("bread"))


def test_what_was_renamed_split_and_given_another_unit_is_read_as_it_is_called_today() -> None:
    """Inputs, transitions, records, effects, running activities, timers and postponed events."""
    (created, first), (kindled, second), (poked, third), *_ = folded(FULL)
    assert created.event == Created(Oven())
    assert first.transitions[0].event == Created(Oven())
    assert kindled.event == second.transitions[0].event == Kindled(120)
    assert [each.effect for each in second.effects][:2] == [Chime(2), Begin("Fire", Fire(3), 2)]
    assert poked.event == ForgottenEvent("Poked", '{"type":"Poked"}')
    assert third.effects[0].effect == ForgottenEffect("Whistle", '{"type":"Whistle"}')
    entity = last(FULL).entities["oven"]
    assert entity.record == Oven(Heat.WARM, 120)
    assert [(each.slot, each.activity) for each in entity.running] == [("Fire", Fire(3)), ("Out", None)]
    assert [each.event for each in entity.postponed] == [Cake(3), Bread()]


def test_the_new_machine_goes_on_where_the_old_one_was() -> None:
    """It takes the timer's event and the postponed ones, and a fold of both parts is the same."""
    aggregate, of = last(FULL), KITCHEN.type_of("kitchen")
    assert misfits(KITCHEN, [aggregate], [ForgottenEffect("Whistle", "{}")]) == ()
    envelope = Envelope("oven", Out(), 9)
    reaction = decide(of, aggregate, envelope)
    assert isinstance(reaction, Reaction)
    assert reaction.aggregate.entities["oven"].state is Heat.IDLE
    assert not reaction.aggregate.entities["oven"].postponed
    entries = [*FULL, (envelope, encode(envelope), written(aggregate, envelope, reaction))]
    assert last(entries) == reaction.aggregate


def test_a_state_that_another_one_replaces_is_that_one() -> None:
    """In a change of a record, and in the records that an aggregate begins with."""
    assert last(log(Created(OldOven()), Fed())).entities["oven"].state is Heat.IDLE
    opened = log(Opened({"oven": OldOven(OldState.BROKEN, 1)}))
    assert last(opened).entities["oven"].record == Oven(Heat.IDLE, 60)


def test_a_state_without_a_name_of_today_is_folded_and_named_while_an_entity_is_in_it() -> None:
    """Also as the first state of an entity; a past one does not matter."""
    lacking = oven(renamed("Cold", Heat.IDLE), removed_field("colour"), removed_field("minutes"))
    system = System("kitchen", AggregateType("kitchen", machines=(lacking,)))
    for entries in (log(Created(OldOven()), Fed()), log(Created(OldOven(OldState.BROKEN)))):
        broken = last(entries, system)
        assert broken.entities["oven"].state == "Broken"
        assert isinstance(broken.entities["oven"].state, ForgottenState)
        assert misfits(system, [broken], ()) == ("the state Broken of kitchen, oven",)
    repaired = last(log(Created(OldOven()), Fed(), Cooled()), system)
    assert misfits(system, [repaired], ()) == ()


def test_without_declarations_all_that_is_pending_is_named() -> None:
    aggregate = last(log(Created(OldOven()), Lit(), Fed("x")), NAIVE)
    assert misfits(NAIVE, [aggregate], ()) == (
        "the activity Burn of kitchen, oven",
        "the timer Cooled of kitchen, oven",
        "the postponed event Fed of kitchen, oven",
    )


def test_a_field_of_a_record_without_a_name_of_today_is_never_dropped_in_silence() -> None:
    system = System("kitchen", AggregateType("kitchen", machines=(oven(renamed("Cold", Heat.IDLE)),)))
    with pytest.raises(
        UnreadableEntry, match=r"has no field '(colour|minutes)'; an old name is declared by renamed_field"
    ):
        folded(log(Created(OldOven())), system)


def test_a_changed_field_without_a_name_of_today_is_not_read() -> None:
    system = System("kitchen", AggregateType("kitchen", machines=(oven(*EVOLVED[:-4]),)))
    entries = log(Opened({"oven": Oven()}), Kindled(), system=KITCHEN)
    envelope, wire, outcome = entries[-1]
    changed = (envelope, wire, outcome.replace(b'"record":{', b'"record":{"colour":"red",'))
    with pytest.raises(UnreadableEntry, match="Oven has no field 'colour'"):
        folded([entries[0], changed], system)


def test_a_field_of_an_event_is_renamed_or_gone_also_in_an_event_that_was_renamed() -> None:
    evolved = (
        renamed("Lit", Kindled),
        renamed_field("minutes", "seconds", of=Kindled, by=in_seconds),
        removed_field("what", of=Bread),
        renamed("Fed", Bread),
    )
    codec = Codec(System("kitchen", AggregateType("kitchen", machines=(oven(*evolved),))))
    for event, now in ((Lit(2), Kindled(120)), (Fed("x"), Bread()), (Kindled(5), Kindled(5))):
        assert codec.decode("kitchen", encode(Envelope("oven", event, 1)), is_past=True).event == now


def test_a_field_with_a_default_needs_no_declaration() -> None:
    entries = log(Opened({"oven": Oven()}), Kindled(5), system=KITCHEN)
    later = (b',"owner":"unknown"', b',"by":"unknown"')
    shorter = [(e, wire.replace(later[0], b"").replace(later[1], b""), out) for e, wire, out in entries]
    assert shorter[0][1] != entries[0][1]
    assert last(shorter) == last(entries)


def test_an_input_from_outside_is_not_upcast() -> None:
    with pytest.raises(UnreadableEntry):
        Codec(KITCHEN).decode("kitchen", encode(Envelope("oven", Lit(), 1)))


def test_slots_of_envelopes_follow_the_renamed_activity_and_timer() -> None:
    codec = Codec(KITCHEN)
    old = encode(Envelope("oven", Cooled(), 1, slot="Burn", generation=2))
    assert codec.decode("kitchen", old, is_past=True).slot == "Fire"
    assert codec.slot("kitchen", "oven", "Cooled") == "Out"
    assert Codec(NAIVE).slot("kitchen", "oven", "Cooled") == "Cooled"


@pytest.mark.parametrize(
    "forgotten",
    [ForgottenEvent("Sung", "{}"), Tell("kitchen", "oven", ForgottenEvent("Sung", "{}")), ForgottenEffect("Hum", "{}")],
    ids=["event", "message", "effect"],
)
def test_what_is_forgotten_is_read_as_it_was_once_it_is_written_again(forgotten: Any) -> None:
    codec, data = Codec(KITCHEN), msgspec.Raw(encode(forgotten))
    read = codec.event if isinstance(forgotten, Event) else codec.effect
    assert read("kitchen", "oven", data) == forgotten


def test_a_forgotten_activity_is_read_as_it_was_once_it_is_written_again() -> None:
    forgotten = ForgottenActivity("Dig", "{}")
    data = msgspec.Raw(encode(forgotten))
    assert Codec(KITCHEN).activity("kitchen", "oven", "Fire", data) == forgotten
    assert Codec(KITCHEN).activity("kitchen", "oven", "Dig", data) == forgotten


def to_old(old: FedBefore) -> Poked:
    """Return an event that the new oven has not."""
    del old
    return Poked()


@pytest.mark.parametrize(
    ("evolved", "said"),
    [
        ((renamed("Lit", Poked),), r"renamed\('Lit'\): the machine has no Poked"),
        ((renamed("Cold", OldState.COLD),), r"renamed\('Cold'\): the machine has no Cold"),
        ((upcast(to_old),), r"upcast\(to_old\): the machine has no Poked"),
        ((renamed_field("a", "b"),), r"renamed_field\('a', 'b'\): the machine has no b"),
        ((removed_field("a", of=Poked),), r"removed_field\('a'\): the machine has no Poked"),
        ((renamed("Bread", Cake),), "'Bread' has a meaning today"),
        ((renamed("Warm", Heat.IDLE),), "'Warm' has a meaning today"),
        ((removed_field("seconds"),), "'seconds' has a meaning today"),
        ((renamed_field("layers", "layers", of=Cake),), "'layers' has a meaning today"),
        ((removed("Chime"),), r"removed\('Chime'\): 'Chime' has a meaning today"),
        ((upcast(fed), renamed("Fed", Bread)), r"renamed\('Fed'\): 'Fed' is declared twice"),
        ((renamed_field("a", "seconds"), removed_field("a")), "'a' is declared twice"),
    ],
)  # fmt: skip
def test_an_ambiguous_or_unreachable_declaration_is_refused_when_the_machine_is_made(evolved: Any, said: str) -> None:
    with pytest.raises(InvalidMachine, match=said):
        oven(*evolved)


def test_an_event_and_an_effect_of_one_old_name_are_told_apart() -> None:
    codec = Codec(System("kitchen", AggregateType("kitchen", machines=(oven(renamed("X", Out), renamed("X", Chime)),))))
    data = msgspec.Raw(b'{"type":"X"}')
    assert codec.event("kitchen", "oven", data) == Out()
    assert codec.effect("kitchen", "oven", data) == Chime()


def test_a_function_without_annotations_is_no_upcaster() -> None:
    with pytest.raises(TypeError, match=r"upcast\(.*<lambda>\) needs annotations"):
        upcast(lambda old: old)


def test_a_profile_keeps_what_it_can_use() -> None:
    """A profile without an event needs no name for it."""
    profile = NEW.without_rows((Heat.IDLE, Cake))
    assert set(NEW.evolved) - set(profile.evolved) == {EVOLVED[1]}
    assert oven().starting(Oven(seconds=1)).evolved == ()
    assert NEW._but(evolved=()).evolved == ()


def test_the_name_that_a_declaration_is_about_is_its_old_one() -> None:
    assert [old_name(each) for each in EVOLVED[2:8]] == ["Cooled", "Ring", "Burn", "Cold", "Broken", "minutes"]
