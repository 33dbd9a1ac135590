"""Messages between aggregates: numbered, accepted once and in order, and only if they can be read back."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Event,
    Machine,
    Opened,
    Reaction,
    Record,
    RequestedEffect,
    RunnerRecovered,
    Step,
    System,
    TimerFired,
    Transition,
    react,
    row,
    rule,
)
from lifefold.effects import Effect, Tell
from oven import Lit, Oven
from tower import PULL, Bell, Faded, Pulled, Sound, bell, refused, taken, tower


def message(ordinal: int, event: Event, sender: str = "village/b") -> Envelope:
    """Return a message to the first bell."""
    return Envelope("bell:0", event, 0, sender, sender=sender, ordinal=ordinal)


def test_messages_are_numbered_per_receiver() -> None:
    """Each pair of aggregates counts for itself, over all reactions."""

    @rule(on=bell)
    def tell(_aggregate: Aggregate, transition: Transition) -> Iterator[Tell]:
        if transition.before is not None:
            yield Tell("village/b", "bell:0", transition.event)
            yield Tell("village/c", "bell:0", transition.event)
            yield Tell("village/b", "bell:1", transition.event, ordinal=99)

    of, aggregate = tower(tell)
    first = taken(of, aggregate, PULL)
    second = taken(of, first.aggregate, Envelope("bell:0", Faded(), 8))
    told: list[Effect] = [asked.effect for asked in (*first.effects, *second.effects)]
    assert [(each.aggregate, each.ordinal) for each in told if isinstance(each, Tell)] == [
        ("village/b", 1), ("village/c", 1), ("village/b", 2), ("village/b", 3), ("village/c", 2), ("village/b", 4),
    ]  # fmt: skip
    assert dict(second.aggregate.sent) == {"village/b": 4, "village/c": 2}


class Ring(Record, frozen=True):
    """A bell that calls the next tower by itself."""

    state: Sound = Sound.QUIET


def call(ring: Ring, event: Pulled) -> Step[Ring, Tell]:
    """Call the next tower, and one that does not exist."""
    return Step(ring, (Tell("tower/b", "bell", event), Tell("castle/b", "bell", event)))


def test_what_a_row_tells_is_numbered_as_what_a_rule_tells() -> None:
    """It is numbered in its place among the other messages; one without a receiver is not sent."""
    rows = (row(Sound.QUIET, Pulled, Sound.RINGING, call), row(Sound.RINGING, Pulled, Sound.QUIET, call))
    machine: Machine[Any] = Machine("bell", Ring(), rows=rows)

    @rule(on=machine)
    def tell(_aggregate: Aggregate, transition: Transition) -> Iterator[Tell]:
        if transition.before is not None:
            yield Tell("tower/b", "bell", transition.event)

    of = System("country", AggregateType("tower", machines=(machine,), rules=(tell,))).type_of("tower/a")
    first = taken(of, of.start("tower/a"), Envelope("bell", Created(Ring()), 0))
    second = taken(of, first.aggregate, Envelope("bell", Pulled(), 7, "ringer"))
    third = taken(of, second.aggregate, Envelope("bell", Pulled(), 8, "ringer"))
    assert [each.effect for each in (*second.effects, *third.effects)] == [
        Tell("tower/b", "bell", Pulled(), ordinal) for ordinal in (1, 2, 3, 4)
    ]
    assert [(each.kind, each.envelope.at_ms, each.envelope.actor) for each in third.refusals] == [
        ("unknown", 8, "bell")
    ]


def test_a_message_is_taken_once_and_in_order() -> None:
    """A repeated one is a duplicate, one that comes too soon is overtaking; both are refused and change nothing."""
    of, aggregate = tower()
    soon = refused(of, aggregate, message(2, Pulled()))
    assert (soon.kind, soon.reason) == ("overtaking", "message 2 of village/b, expected 1")
    first = taken(of, aggregate, message(1, Pulled())).aggregate
    again = refused(of, first, message(1, Pulled()))
    assert (again.kind, again.reason) == ("duplicate", "message 1 of village/b, expected 2")
    second = taken(of, first, message(2, Faded())).aggregate
    assert dict(second.received) == {"village/b": 2}


def test_senders_are_counted_apart() -> None:
    """Each pair begins with number 1."""
    of, aggregate = tower()
    first = taken(of, aggregate, message(1, Pulled())).aggregate
    assert taken(of, first, message(1, Faded(), "village/c")).aggregate.record("bell:0").state is Sound.QUIET


def test_a_message_that_its_entity_does_not_take_uses_up_its_number() -> None:
    """It is accepted as a message, so that the next one comes through; the refusal is kept."""
    of, aggregate = tower()
    reaction = taken(of, aggregate, message(1, Faded()))
    assert [each.kind for each in reaction.refusals] == ["illegal"]
    assert reaction.refused is reaction.refusals[0]
    assert (reaction.transitions, reaction.aggregate.version) == ((), aggregate.version + 1)
    assert reaction.aggregate.entities == aggregate.entities
    taken_now = taken(of, reaction.aggregate, message(2, Pulled()))
    assert (taken_now.refusals, taken_now.refused) == ((), None)


UNREADABLE: dict[str, tuple[str, Event]] = {
    "machine": ("gong:1", Pulled()),
    "event": ("bell:0", Lit()),
    "no-receiver": ("", Pulled()),
    "recovery-of-one": ("bell:0", RunnerRecovered(0)),
    "opening-of-one": ("bell:0", Opened({})),
    "record-of-another": ("bell:x", Created(Oven())),
    "record-without-machine": ("", Opened({"gong:1": Bell()})),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_message_that_could_not_be_read_back_is_not_taken(name: str) -> None:
    """Not even its number is used up: nothing of it may stand in the log."""
    of, aggregate = tower()
    ref, event = UNREADABLE[name]
    refusal = refused(of, aggregate, Envelope(ref, event, 0, "village/b", sender="village/b", ordinal=1))
    assert (refusal.kind, refusal.reason) == ("unknown", f"tower/a knows no {type(event).__name__} for {ref!r}")
    assert taken(of, aggregate, message(1, Pulled())).refusals == ()


@pytest.mark.parametrize(
    ("ref", "event"),
    [
        ("", RunnerRecovered(0)),
        ("", Opened({"bell:0": Bell()})),
        ("bell:x", TimerFired("x", 1)),
        ("bell:x", ActivityEnded("x", 1)),
    ],
    ids=["recovered", "opened", "elapsed", "ended"],
)
def test_the_kernels_own_inputs_can_be_read_wherever_they_are_for(ref: str, event: Event) -> None:
    """For all of the aggregate, or for an entity of one of its machines, known or not."""
    of, _ = tower()
    assert of.reads(ref, event)


def test_a_message_without_a_receiver_in_the_system_is_not_sent() -> None:
    """It is a refusal for the record, and takes no number, so that the messages after it come through."""

    @rule(on=bell)
    def tell(_aggregate: Aggregate, transition: Transition) -> Iterator[Tell]:
        if transition.entered is Sound.RINGING:
            yield Tell("castle/b", "bell:0", Pulled())
            yield Tell("tower/b", "gong:1", Pulled())
            yield Tell("tower/b", "bell:0", Lit())
            yield Tell("tower/b", "bell:0", Pulled())

    of = System("country", tower(tell)[0]).type_of("tower/a")
    aggregate = taken(of, of.start("tower/a"), Envelope("", Opened({"bell:0": Bell()}), 0)).aggregate
    reaction = taken(of, aggregate, PULL)
    assert reaction.effects == (RequestedEffect("", Tell("tower/b", "bell:0", Pulled(), 1)),)
    assert {(each.kind, each.envelope.actor) for each in reaction.refusals} == {("unknown", "rule:tell")}
    assert [each.reason for each in reaction.refusals] == [
        "tower: no 'castle/b' knows Pulled for 'bell:0'",
        "tower: no 'tower/b' knows Pulled for 'gong:1'",
        "tower: no 'tower/b' knows Lit for 'bell:0'",
    ]


@given(st.lists(st.integers(1, 6), max_size=30))
def test_whatever_the_transport_does_the_receiver_goes_through_the_messages_in_order(deliveries: list[int]) -> None:
    """Duplicated, lost and overtaking deliveries: what was taken is a prefix of what was sent."""
    of, aggregate = tower(bells=1)
    sent = [Pulled() if n % 2 else Faded() for n in range(1, 7)]
    accepted = 0
    for ordinal in deliveries:
        reaction = react(of, aggregate, message(ordinal, sent[ordinal - 1]))
        if isinstance(reaction, Reaction):
            assert (ordinal, reaction.refusals) == (accepted + 1, ())
            accepted, aggregate = ordinal, reaction.aggregate
    assert aggregate.record("bell:0").state is (Sound.RINGING if accepted % 2 else Sound.QUIET)
