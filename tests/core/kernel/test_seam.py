"""Other rules go on with a state: what they cannot take, and which properties do not hold, is named."""

from typing import Any, Never

import pytest

from lifefold.core.kernel import (
    ENGINE,
    Aggregate,
    AggregateType,
    Codec,
    Created,
    Entity,
    EntityQuarantined,
    Envelope,
    Machine,
    Phase,
    Property,
    Reaction,
    Record,
    RulesChanged,
    Running,
    State,
    Step,
    System,
    SystemState,
    UnreadableEntry,
    after,
    always,
    broken,
    decide,
    does,
    encode,
    misfits,
    replace,
    row,
    sometimes,
)
from lifefold.core.kernel.forgotten import ForgottenActivity, ForgottenEffect, ForgottenEvent
from lifefold.core.kernel.record import Event
from lifefold.effects import Activity, Tell


class Door(State):
    """A door's states."""

    SHUT = "Shut"
    OPEN = "Open"


class Other(State):
    """States of another door."""

    AJAR = "Ajar"


class Pushed(Event, frozen=True):
    """The door is pushed."""


class Fell(Event, frozen=True):
    """The door fell shut."""


class Creaked(Event, frozen=True):
    """The door has creaked."""


class Creak(Activity, frozen=True):
    """Creak while open."""


class Leaf(Record, frozen=True):
    """A door."""

    state: Door = Door.SHUT
    pushes: int = 0


def creak(_leaf: Leaf) -> Creak:
    """Return what an open door does."""
    return Creak()


def push(leaf: Leaf, _event: Pushed) -> Step[Leaf, Never]:
    """Count."""
    return Step(replace(leaf, pushes=leaf.pushes + 1))


def few_pushes(leaf: Leaf) -> bool:
    """Hold of a door that was pushed at most once."""
    return leaf.pushes <= 1


DOOR = Machine(
    "door",
    Leaf(),
    rows=(row(Door.SHUT, Pushed, Door.OPEN, push), row(Door.OPEN, Fell, Door.SHUT), row(Door.OPEN, Creaked, Door.OPEN)),
    during={Door.OPEN: (does(creak, yields=Creaked), after(100, Fell))},
    invariants=(few_pushes,),
    properties=(always("a shut door is quiet", lambda of: of.state is Door.OPEN or not of.running),),
)


def houses(**parts: Any) -> System:
    """Return a system of houses with a door."""
    return System("houses", AggregateType("house", machines=(DOOR,), **parts))


HOUSES = houses()
OPEN = replace(Leaf(), state=Door.OPEN, pushes=1)
LIVE = Running("Creak", 2, Creak())
TIMER = Running("Fell", 2, None, 200)


def house(*entities: Entity[Any], **parts: Any) -> Aggregate:
    """Return a house with these entities."""
    empty = HOUSES.type_of("house").start("house")
    draft = empty.entities.draft()
    for each in entities:
        draft.put(each.ref, each)
    return replace(empty, entities=draft, **parts)


def door(record: Record = OPEN, *running: Running, **parts: Any) -> Entity[Any]:
    """Return a door with what runs for it."""
    return Entity("door", record, 2, 0, running, **parts)


def test_the_rules_that_wrote_a_state_can_go_on_with_it() -> None:
    ending = replace(LIVE, phase=Phase.ENDING)
    for entity in (door(OPEN, LIVE, TIMER), door(Leaf(), ending), door(OPEN, postponed=(Envelope("door", Fell(), 1),))):
        assert misfits(HOUSES, [house(entity)], [Tell("house", "door", Pushed())]) == ()
    assert broken(HOUSES, SystemState({"house": house(door(OPEN, LIVE, TIMER))})) == ()


@pytest.mark.parametrize(
    ("entity", "said"),
    [
        (Entity("gate", Leaf()), "house, gate: the machine gate"),
        (door(replace(Leaf(), state=Other.AJAR)), "the state Ajar of house, door"),
        (door(OPEN, Running("Slam", 2, ForgottenActivity("Slam", "{}"))), "the activity Slam of house, door"),
        (door(OPEN, Running("Creak", 2, ForgottenActivity("", ""))), "the activity Creak of house, door"),
        (door(OPEN, Running("Creak", 2, None, 200)), "the timer Creak of house, door"),
        (door(OPEN, Running("Slammed", 2, None, 200)), "the timer Slammed of house, door"),
        (door(Leaf(), LIVE), "the activity Creak of house, door"),
        (
            door(postponed=(Envelope("door", ForgottenEvent("Kicked", "{}"), 1),)),
            "the postponed event Kicked of house, door",
        ),
    ],
)
def test_a_part_of_an_entity_that_no_table_takes_is_named(entity: Entity[Any], said: str) -> None:
    assert misfits(HOUSES, [house(entity)], ()) == (said,)


def test_owed_effects_and_messages_without_a_type_are_named_once() -> None:
    effect, message = ForgottenEffect("Ring", "{}"), Tell("house", "door", ForgottenEvent("Kicked", "{}"))
    assert misfits(HOUSES, [], [effect, message, effect]) == ("the effect Ring", "the message Kicked to house")


def test_each_property_that_does_not_hold_is_named_with_its_subject() -> None:
    """Invariants, properties of machines, aggregates and the system; one that raises does not hold."""

    def raises(of: Any) -> bool:
        return bool(of.no_such_field)

    whole: Property[SystemState] = always("there are no houses", lambda state: not state.aggregates)
    once: Property[Any] = sometimes("there is no end of houses", raises)
    strict = houses(properties=(once, always("it raises", raises)))
    system = System("houses", *strict.aggregates.values(), properties=(once, whole))
    state = SystemState({"house": house(door(replace(Leaf(), pushes=2), LIVE))})
    assert broken(system, state) == (
        "house, door: few pushes",
        "house, door: a shut door is quiet",
        "house: it raises (AttributeError: 'Aggregate' object has no attribute 'no_such_field')",
        "houses: there are no houses",
    )


def test_properties_of_a_quarantined_entity_are_not_asked() -> None:
    """It accepts nothing until it is released, and the reason of its quarantine is in the log."""
    of, reaction = HOUSES.type_of("house"), None
    aggregate = of.start("house")
    for event in (Created(Leaf()), EntityQuarantined("a fault")):
        reaction = decide(of, aggregate, Envelope("door", event, 1, "engine"))
        assert isinstance(reaction, Reaction)
        aggregate = reaction.aggregate
    pushed = replace(aggregate, entities=house(door(replace(Leaf(), pushes=2))).entities)
    assert broken(HOUSES, SystemState({"house": pushed})) == ()


def test_a_change_of_rules_is_written_and_read_for_every_system() -> None:
    codec, envelope = Codec(HOUSES), Envelope("", RulesChanged("v1", "v2"), 7, "engine")
    assert codec.decode(ENGINE, encode(envelope)) == envelope
    with pytest.raises(UnreadableEntry):
        codec.decode("house", encode(envelope))


def test_no_aggregate_has_the_name_of_the_entries_about_a_log() -> None:
    with pytest.raises(ValueError, match="accepted: another kind"):
        AggregateType(ENGINE, machines=(DOOR,))
