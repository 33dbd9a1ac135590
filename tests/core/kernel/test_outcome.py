"""What was decided is kept as bytes, and makes the same reaction again: without the rules, and under other rules."""

from collections.abc import Iterator
from typing import Never

import msgspec
import pytest

from lifefold.core.kernel import (
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
    Outcomes,
    Reaction,
    Record,
    RunnerRecovered,
    State,
    Step,
    System,
    Transition,
    UnreadableEntry,
    does,
    encode,
    react,
    replace,
    row,
    rule,
    written,
)
from lifefold.core.kernel.forgotten import ForgottenActivity, ForgottenEffect, ForgottenEvent
from lifefold.effects import Activity, Begin, Effect, Tell
from oven import Baked, Doused, Knocked, Lit, Oven, Place, machine


@rule(on=machine)
def light_again(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """An oven that got cold is lit."""
    if transition.entered is Place.COLD and transition.before is not None:
        yield Dispatch(transition.entity, Lit(1))


HOUSE = AggregateType("house", machines=(machine,), rules=(light_again,))
CODEC = Codec(System("street", HOUSE))
HISTORY = (
    Envelope("", Opened({"oven": Oven(), "oven:b": Oven()}), 0, "plan"),
    Envelope("oven", Lit(9), 5, "cook", key="k"),
    Envelope("oven", Knocked(), 6, "guest"),
    Envelope("oven", Baked(), 7, "baker", slot="Bake", generation=2),
    Envelope("", RunnerRecovered(3), 8, "engine"),
    Envelope("oven:b", Lit(1), 9),
    Envelope("oven:b", Doused(), 10),
    Envelope("oven:b", ActivityEnded("Bake", 2), 11),
    Envelope("oven", Created(Oven()), 12, "shop/a", sender="shop/a", ordinal=1),
)


class Entry(msgspec.Struct):
    """An input, what was decided on it, and its bytes."""

    envelope: Envelope
    reaction: Reaction
    outcome: bytes


def decided(of: AggregateType, *envelopes: Envelope) -> list[Entry]:
    """Return what the rules decide on these inputs."""
    aggregate, log = of.start(f"{of.kind}/a"), list[Entry]()
    for envelope in envelopes:
        reaction = react(of, aggregate, envelope)
        assert isinstance(reaction, Reaction), reaction.reason
        log.append(Entry(envelope, reaction, written(aggregate, envelope, reaction)))
        aggregate = reaction.aggregate
    return log


def folded(of: AggregateType, log: list[Entry]) -> list[Reaction]:
    """Fold a log; the inputs are read from their bytes, too."""
    codec = Codec(System("street", of))
    outcomes, aggregate, reactions = Outcomes(codec), of.start(f"{of.kind}/a"), list[Reaction]()
    for each in log:
        envelope = codec.decode(aggregate.name, encode(each.envelope), is_past=True)
        reactions.append(outcomes.applied(of, aggregate, envelope, each.outcome))
        aggregate = reactions[-1].aggregate
    return reactions


def test_every_reaction_is_made_again_from_its_bytes() -> None:
    """Creations, postponed events, recoveries, confirmed ends, refused messages and rules."""
    log = decided(HOUSE, *HISTORY)
    assert folded(HOUSE, log) == [each.reaction for each in log]


def test_the_entries_about_one_entity_fold_to_it_without_the_others() -> None:
    """Its transitions are those of the whole fold; the entries that do not change it are not needed."""
    log, ref = decided(HOUSE, *HISTORY), "oven:b"
    outcomes, before = Outcomes(CODEC), HOUSE.start("house/a")
    found: list[Transition] = []
    for each in log:
        if f'"{ref}"'.encode() in each.outcome:
            reaction = outcomes.applied(HOUSE, before, each.envelope, each.outcome, {ref})
            before, found = reaction.aggregate, [*found, *reaction.transitions]
    assert found == [step for each in log for step in each.reaction.transitions if step.entity == ref]
    assert dict(before.entities) == {ref: log[-1].reaction.aggregate.entities[ref]}


def test_equal_histories_have_equal_bytes_and_each_other_decision_has_others() -> None:
    """A state, an effect, a postponed event, a refusal: each is in the bytes."""
    first, second = decided(HOUSE, *HISTORY), decided(HOUSE, *HISTORY)
    assert [each.outcome for each in first] == [each.outcome for each in second]
    assert len({each.outcome for each in first}) == len(first)


def test_an_outcome_is_plain_json_with_the_changed_fields_only() -> None:
    """A person can read it, and a large record costs nothing where it stays as it is."""
    log = decided(HOUSE, HISTORY[0], Envelope("oven", Lit(9), 5))
    bake = {"type": "Bake", "degrees": 9}
    assert msgspec.json.decode(log[1].outcome) == {
        "steps": [
            {
                "entity": "oven",
                "change": {
                    "record": {"state": "Baking", "at_ms": 5, "degrees": 9},
                    "version": 2,
                    "entered_ms": 5,
                    "running": [{"slot": "Bake", "generation": 2, "begun": 0}],
                },
                "effects": [0],
            }
        ],
        "effects": [["oven", {"type": "Begin", "slot": "Bake", "activity": bake, "generation": 2, "resumed": False}]],
    }


def test_rules_that_decide_otherwise_do_not_change_the_past() -> None:
    """The fold is equal without a rule of the log, and with a machine that refuses an event that it postponed."""
    log = decided(HOUSE, *HISTORY)
    silent = AggregateType("house", machines=(machine.without_rows((Place.BAKING, Knocked)),))
    assert [each.aggregate for each in folded(silent, log)] == [each.reaction.aggregate for each in log]
    assert any(each.reaction.rules for each in log)
    assert not any(each.rules for each in folded(silent, log))


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b'{"steps":[{"entity":"oven"}]}', b'{"steps":5}'])
def test_what_cannot_be_read_is_named(damage: bytes) -> None:
    """The message has the aggregate and the bytes."""
    with pytest.raises(UnreadableEntry, match="house/a: this program cannot read what was decided"):
        Outcomes(CODEC).applied(HOUSE, HOUSE.start("house/a"), HISTORY[0], damage)


def test_a_field_that_no_record_has_is_named() -> None:
    """A decision about a record of another kind is not half read."""
    log = decided(HOUSE, *HISTORY[:2])
    log[1].outcome = log[1].outcome.replace(b'"degrees":9}', b'"warmth":9}', 1)
    with pytest.raises(UnreadableEntry, match="warmth"):
        folded(HOUSE, log)


class Light(State):
    """A lamp's states."""

    OFF = "Off"
    ON = "On"


class Bulb(Record, frozen=True):
    """A lamp."""

    state: Light = Light.OFF
    hours: int = 0


class Switched(Event, frozen=True):
    """The switch was pressed."""


class Flickered(Event, frozen=True):
    """The light went off and on."""

    times: int


class Bell(Effect, frozen=True):
    """Ring a bell."""

    tone: str = "high"


class Burn(Activity, frozen=True):
    """Give light."""

    watts: int = 60


def burn(_bulb: Bulb) -> Burn:
    """Return the work of a lamp that is on."""
    return Burn()


def press(bulb: Bulb, _event: Switched) -> Step[Bulb, Bell]:
    """Ring."""
    return Step(bulb, (Bell(),))


def flicker(bulb: Bulb, event: Flickered) -> Step[Bulb, Never]:
    """Count the times as hours."""
    return Step(replace(bulb, hours=bulb.hours + event.times))


LAMP = Machine(
    "lamp",
    Bulb(),
    rows=(row(Light.OFF, Switched, Light.ON, press), row(Light.ON, Flickered, Light.ON, flicker)),
    during={Light.ON: does(burn, yields=(Flickered,))},
    final={Light.ON},
)
PLAIN = Machine("lamp", Bulb(), rows=(row(Light.OFF, Knocked, Light.ON),), final={Light.ON})


def test_what_a_newer_program_has_forgotten_is_still_folded_and_named() -> None:
    """Events, effects and activities without a type of today keep their names and fields; the records are the same."""
    log = decided(
        AggregateType("room", machines=(LAMP,)),
        Envelope("lamp", Created(Bulb()), 0),
        Envelope("lamp", Switched(), 1),
        Envelope("lamp", Flickered(3), 2, slot="Burn", generation=2),
    )
    room = AggregateType("room", machines=(PLAIN,))
    reactions = folded(room, log)
    assert reactions[-1].aggregate.record("lamp") == Bulb(Light.ON, 3)
    events = [each.event for reaction in reactions for each in reaction.transitions]
    assert events[1:] == [
        ForgottenEvent("Switched", '{"type":"Switched"}'),
        ForgottenEvent("Flickered", '{"type":"Flickered","times":3}'),
    ]
    bell, begin = (each.effect for each in reactions[1].effects)
    assert bell == ForgottenEffect("Bell", '{"type":"Bell","tone":"high"}')
    assert isinstance(begin, Begin)
    assert begin.activity == ForgottenActivity("Burn", '{"type":"Burn","watts":60}')


def test_an_activity_with_other_fields_is_forgotten() -> None:
    """Its name is known, its fields are not those of today."""
    codec = Codec(System("street", AggregateType("room", machines=(LAMP,))))
    raw = msgspec.Raw(b'{"type":"Burn","watts":"many"}')
    assert codec.activity("room", "lamp", "Burn", raw) == ForgottenActivity("Burn", '{"type":"Burn","watts":"many"}')


def test_a_step_of_an_entity_that_does_not_exist_is_unreadable() -> None:
    """Only a creation has no entity before it."""
    step = b'{"steps":[{"entity":"oven","change":{},"event":{"type":"Lit","degrees":1}}]}'
    with pytest.raises(UnreadableEntry, match="oven"):
        Outcomes(CODEC).applied(HOUSE, HOUSE.start("house/a"), HISTORY[1], step)


def call(bulb: Bulb, _event: Switched) -> Step[Bulb, Tell]:
    """Send a message to an aggregate that no system has."""
    return Step(bulb, (Tell("attic", "lamp", Switched()),))


CALLER = Machine("lamp", Bulb(), rows=(row(Light.OFF, Switched, Light.ON, call),), final={Light.ON})


def test_a_message_that_reaches_no_aggregate_is_an_effect_of_its_transition_only() -> None:
    """It is refused, has no number, and is not sent; the fold says the same."""
    of = System("street", AggregateType("room", machines=(CALLER,))).aggregates["room"]
    log = decided(of, Envelope("lamp", Created(Bulb()), 0), Envelope("lamp", Switched(), 1))
    (_, last) = folded(of, log)
    assert (last.aggregate, last.effects) == (log[1].reaction.aggregate, ())
    (step,) = last.transitions
    assert step.effects == (Tell("attic", "lamp", ForgottenEvent("Switched", '{"type":"Switched"}')),)
    assert [each.reason for each in last.refusals] == [each.reason for each in log[1].reaction.refusals]


def build(bulb: Bulb, _event: Switched) -> Step[Bulb, Tell]:
    """Open another room."""
    return Step(bulb, (Tell("room/new", "", Opened({"lamp": Bulb(hours=3)})),))


BUILDER = Machine("lamp", Bulb(), rows=(row(Light.OFF, Switched, Light.ON, build),), final={Light.ON})


def test_a_message_that_opens_an_aggregate_is_read_as_it_was() -> None:
    """It has no entity: its event is one of the whole aggregate, and a restarted runner delivers it."""
    of = System("street", AggregateType("room", machines=(BUILDER,))).aggregates["room"]
    log = decided(of, Envelope("lamp", Created(Bulb()), 0), Envelope("lamp", Switched(), 1))
    assert folded(of, log) == [each.reaction for each in log]
