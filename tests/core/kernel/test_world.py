"""The world: one immutable value for a whole system, and one step that every driver shares."""

import pytest

from kiln import Counted, Counting, Fired, Heat, Lit, PutAway, Stoked, opened, system
from lifefold.core.kernel import (
    ActivityEnded,
    Cause,
    Created,
    Envelope,
    Input,
    Phase,
    Refusal,
    RunnerRecovered,
    SystemStep,
    TimerFired,
    World,
    cause_of,
    delivery,
    possible,
    replace,
)
from lifefold.effects import Tell

KILN, TALLY = "kiln/a", "tally"


def after(world: World, *given: Input) -> World:
    """Return the world after these inputs, none of which is refused."""
    for each in given:
        stepped = world.step(each)
        assert not isinstance(stepped, Refusal), stepped
        world, _ = stepped
    return world


def began(*kilns: str) -> World:
    """Return the world after the opening of every aggregate."""
    return after(World(system), *(Input(*each) for each in opened(0, *kilns)))


def fired(world: World, kiln: str = KILN, at_ms: int = 0) -> World:
    """Let a kiln burn once, so that the tally is told."""
    generation = world.aggregate(kiln).entities["kiln"].version + 1
    return after(
        world,
        Input(kiln, Envelope("kiln", Lit(), at_ms)),
        Input(kiln, Envelope("kiln", Fired(3), at_ms, "Fire", slot="Fire", generation=generation)),
    )


def arrived(world: World, sender: str = KILN) -> World:
    """Let the next message of a kiln arrive at the tally."""
    return after(world, world.next_messages()[sender, TALLY])


def test_a_step_replaces_one_aggregate_and_leaves_the_world_before_it_as_it_was() -> None:
    before = began()
    stepped = before.step(Input(KILN, Envelope("kiln", Lit(), 7)))
    assert not isinstance(stepped, Refusal)
    now, step = stepped
    assert before == began()
    assert now.aggregate(KILN).record("kiln").state is Heat.FIRING
    assert now.aggregate(TALLY) is before.aggregate(TALLY)
    assert isinstance(step, SystemStep)
    assert (step.given.cause, step.cause) == (Cause.COMMAND, Cause.COMMAND)
    assert step.reaction.aggregate is now.aggregate(KILN)


def test_a_refused_input_is_returned_as_its_refusal() -> None:
    refused = began().step(Input(KILN, Envelope("kiln", Fired(1), 0)))
    assert isinstance(refused, Refusal)
    assert refused.kind == "unsolicited"


def test_an_aggregate_is_empty_before_its_first_input() -> None:
    """It has no name in the world, and nothing is possible in it."""
    world = World(system)
    assert world.aggregate(KILN) == system.type_of(KILN).start(KILN)
    assert not world.aggregates
    assert not [*world.choices_of(KILN)]
    with pytest.raises(KeyError):
        world.aggregate("oven/a")


def test_time_is_that_of_the_latest_input_and_never_goes_back() -> None:
    world = after(began(), Input(KILN, Envelope("kiln", Lit(), 90)), Input(TALLY, Envelope("tally", PutAway(), 40)))
    assert world.now_ms == 90
    assert world.later(100).now_ms == 100
    assert world.later(100).aggregates == world.aggregates
    assert world.later(20) is world


def test_operator_commands_are_counted_and_openings_are_not() -> None:
    world = began()
    assert world.commands == 0
    assert fired(world).commands == 1
    assert arrived(fired(world)).commands == 1


def test_messages_of_one_aggregate_arrive_in_order_and_each_once() -> None:
    world = after(began(), Input(KILN, Envelope("kiln", Lit(), 0)))
    world = after(world, Input(KILN, Envelope("kiln", Stoked(), 0, "Fire", slot="Fire", generation=2)))
    world = after(world, Input(KILN, Envelope("kiln", Fired(3), 0, "Fire", slot="Fire", generation=2)))
    assert [event for *_, event in world.system_state().in_flight] == [Counted(0), Counted(3)]
    first = world.next_messages()[KILN, TALLY]
    assert first.cause is Cause.MESSAGE
    world = arrived(arrived(world))
    assert world.aggregate(TALLY).record("tally").counted == (0, 3)
    assert not world.in_flight
    again = world.step(first)
    assert isinstance(again, Refusal)
    assert again.kind == "duplicate"


def test_a_message_that_its_entity_refuses_is_no_longer_in_flight() -> None:
    world = after(fired(began()), Input(TALLY, Envelope("tally", PutAway(), 0)))
    world = arrived(world)
    assert world.aggregate(TALLY).record("tally").state is Counting.AWAY
    assert not world.in_flight


def test_every_choice_of_a_world_is_a_possible_input_in_a_fixed_order() -> None:
    """Aggregates come in the order of their openings, and the next message of each channel at the end."""
    world = fired(fired(began("b", "a"), "kiln/b"), "kiln/a")
    every = [*world.choices()]
    assert every == [*world.choices()]
    assert [*dict.fromkeys(name for name, _ in every if name != TALLY)] == ["kiln/b", "kiln/a"]
    assert [each.envelope.sender for each in every if each.cause is Cause.MESSAGE] == ["kiln/b", "kiln/a"]
    assert {each.cause for each in world.choices_of("kiln/a")} == {Cause.COMMAND, Cause.TIMER, Cause.RECOVERY}
    assert [*world.choices_of("kiln/a")] == [each for each in every if each.aggregate == "kiln/a"]


def test_choices_may_be_those_of_a_later_time() -> None:
    reports = [each.envelope.at_ms for each in after(began(), Input(KILN, Envelope("kiln", Lit(), 5))).choices(10)]
    assert set(reports) == {15}


def test_running_activities_and_pending_timers_are_read_from_the_entities() -> None:
    world = after(fired(began("a", "b")), Input("kiln/b", Envelope("kiln", Lit(), 0)))
    found = [(name, entity.ref, part.slot, part.phase) for name, entity, part in world.running()]
    assert found == [
        ("kiln/a", "kiln", "Cooled", Phase.LIVE),
        ("kiln/a", "kiln", "Rested", Phase.LIVE),
        ("kiln/b", "kiln", "Fire", Phase.LIVE),
    ]


def test_worlds_are_equal_if_only_messages_of_different_channels_were_sent_in_another_order() -> None:
    one = fired(fired(began("a", "b"), "kiln/a"), "kiln/b")
    other = fired(fired(began("a", "b"), "kiln/b"), "kiln/a")
    assert [*one.in_flight] != [*other.in_flight]
    assert one == other
    assert hash(one) == hash(other)
    assert one != arrived(one)
    assert len({one, other, arrived(one)}) == 2


@pytest.mark.parametrize(
    ("envelope", "cause"),
    [
        (Envelope("kiln", Lit(), 0), Cause.COMMAND),
        (Envelope("kiln", Created(None), 0), Cause.COMMAND),
        (Envelope("kiln", Fired(1), 0, slot="Fire", generation=2), Cause.REPORT),
        (Envelope("kiln", TimerFired("Cooled", 3), 0), Cause.TIMER),
        (Envelope("kiln", ActivityEnded("Fire", 2), 0), Cause.CONFIRMATION),
        (Envelope("", RunnerRecovered(0), 0), Cause.RECOVERY),
        (delivery(KILN, Tell(TALLY, "tally", Counted(1), 1), 4).envelope, Cause.MESSAGE),
    ],
)
def test_the_cause_of_an_input_is_read_from_its_envelope(envelope: Envelope, cause: Cause) -> None:
    assert cause_of(envelope) is cause
    assert Input(KILN, replace(envelope, at_ms=9)).cause is cause


def test_the_cause_of_every_possible_input_is_the_one_that_its_environment_gives() -> None:
    world = after(fired(began("a", "b")), Input("kiln/b", Envelope("kiln", Lit(), 0)))
    for name, aggregate in world.aggregates.items():
        for each in possible(system.type_of(name), aggregate, world.now_ms):
            assert each.cause is cause_of(each.envelope)
