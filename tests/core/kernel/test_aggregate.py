"""Aggregates: one input and everything that follows from it, with messages and views."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from lifefold.core.kernel import (
    ANY,
    ActivityEnded,
    Aggregate,
    AggregateType,
    Create,
    Created,
    Dispatch,
    Envelope,
    Event,
    Machine,
    Opened,
    Phase,
    Property,
    RequestedEffect,
    RunnerRecovered,
    State,
    System,
    SystemState,
    TimerFired,
    Transition,
    View,
    after,
    always,
    row,
    rule,
)
from lifefold.core.kernel.reaction import MACROSTEP_LIMIT
from lifefold.effects import Begin, CancelTimer, Tell
from oven import Bake, Baked, Cooled, Doused, Knocked, Lit, Oven, Place, Scrapped, machine
from tower import PULL, Bell, Faded, Pulled, Sound, bell, refused, steps, taken, tower


class Tolled(Event, frozen=True):
    """The hour has come."""


class Hushed(Event, frozen=True):
    """It has rung for long enough."""


class Like(State):
    """States that are spelled like those of a bell."""

    QUIET = "Quiet"


# Rules


@rule(on=bell)
def pull_the_next(aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A bell that begins to ring pulls the next one."""
    following = f"bell:{int(transition.entity.partition(':')[2]) + 1}"
    if transition.entered is Sound.RINGING and following in aggregate.entities:
        yield Dispatch(following, Pulled())


@rule(on=bell)
def fade(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A bell that begins to ring fades."""
    if transition.entered is Sound.RINGING:
        yield Dispatch(transition.entity, Faded())


def test_an_input_runs_to_completion_and_is_one_version() -> None:
    """Everything that follows happens in the one reaction; no rule action is left for later."""
    of, aggregate = tower(pull_the_next)
    reaction = taken(of, aggregate, PULL)
    assert steps(reaction) == [(f"bell:{n}", "Pulled") for n in range(4)]
    assert all(reaction.aggregate.record(f"bell:{n}").state is Sound.RINGING for n in range(4))
    assert reaction.aggregate.version == aggregate.version + 1
    assert (reaction.refusals, reaction.effects) == ((), ())


def test_a_consequence_is_settled_before_the_next_cause_is_looked_at() -> None:
    """The actions of the first rule come first, with all of their consequences. Then come those of the second."""
    of, aggregate = tower(pull_the_next, fade, bells=3)
    assert steps(taken(of, aggregate, PULL)) == [
        ("bell:0", "Pulled"), ("bell:1", "Pulled"), ("bell:2", "Pulled"),
        ("bell:2", "Faded"), ("bell:1", "Faded"), ("bell:0", "Faded"),
    ]  # fmt: skip


def test_a_reaction_names_the_rules_that_asked_for_something() -> None:
    """Once for each transition that a rule answered; a rule that was triggered and asked for nothing is not named."""

    @rule(on=bell)
    def listen(_aggregate: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
        yield from ()

    of, aggregate = tower(pull_the_next, listen, fade, bells=2)
    assert taken(of, aggregate, PULL).rules == (pull_the_next, fade, fade)


def test_rules_run_in_the_order_of_the_aggregate() -> None:
    """The other order of the same rules gives another order of the same transitions."""
    of, aggregate = tower(fade, pull_the_next, bells=3)
    assert steps(taken(of, aggregate, PULL)) == [
        ("bell:0", "Pulled"), ("bell:0", "Faded"), ("bell:1", "Pulled"),
        ("bell:1", "Faded"), ("bell:2", "Pulled"), ("bell:2", "Faded"),
    ]  # fmt: skip


def test_all_rules_see_the_aggregate_before_any_rule_action_is_done() -> None:
    """One snapshot for all of them: the order of the rules decides what is done first, not what the later ones see."""
    seen: list[State] = []

    @rule(on=bell)
    def watch(aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        if transition.entity == "bell:0":
            seen.append(aggregate.record("bell:1").state)
        yield from ()

    of, aggregate = tower(pull_the_next, watch, bells=2)
    seen.clear()
    assert taken(of, aggregate, PULL).aggregate.record("bell:1").state is Sound.RINGING
    assert seen == [Sound.QUIET]


def test_rules_see_an_entity_that_is_through_with_an_event_and_with_what_had_waited_for_it() -> None:
    """The postponed event's transition is one of the same step: rules on the first one see what came of both."""
    seen: list[tuple[object, State, int]] = []

    @rule(on=machine)
    def watch(aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        if isinstance(transition.event, Doused | Knocked):
            seen.append((transition.event, transition.after.state, aggregate.record("oven").visitors))
        yield from ()

    of = AggregateType("house", machines=(machine,), rules=(watch,))
    opened = taken(of, of.start("house/a"), Envelope("", Opened({"oven": Oven(Place.BAKING)}), 0)).aggregate
    waits = taken(of, opened, Envelope("oven", Knocked(), 1)).aggregate
    taken(of, waits, Envelope("oven", Doused(), 2))
    assert seen == [(Doused(), Place.COLD, 1), (Knocked(), Place.COLD, 1)]


def test_what_one_rule_asks_for_is_done_in_its_order() -> None:
    """Several actions of one rule: each is completed before the next."""

    @rule(on=machine)
    def pull_all(aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        if transition.entered is Place.BAKING:
            for ref in sorted(aggregate.entities):
                if ref.startswith("bell:"):
                    yield Dispatch(ref, Pulled())

    of, aggregate = tower(pull_all, fade, bells=2)
    assert steps(taken(of, aggregate, Envelope("oven", Lit(), 0))) == [
        ("oven", "Lit"), ("bell:0", "Pulled"), ("bell:0", "Faded"), ("bell:1", "Pulled"), ("bell:1", "Faded"),
    ]  # fmt: skip


def test_a_rule_sees_only_the_transitions_of_its_machine() -> None:
    """It names the machine it is on, and is known by the name of its function."""
    seen: list[str] = []

    @rule(on=machine)
    def watch(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        seen.append(transition.entity)
        yield from ()

    of, aggregate = tower(watch)
    taken(of, aggregate, PULL)
    taken(of, aggregate, Envelope("oven", Lit(), 0))
    assert seen == ["oven", "oven"]
    assert (watch.name, watch.on) == ("watch", "oven")
    assert of.rules == (watch,)


# Triggers


class Heard(Protocol):
    """What a rule has been asked about, in short."""

    def __call__(self, **triggers: Any) -> list[str]:
        """Return the transitions that triggered a rule with these triggers."""
        ...


@pytest.fixture
def heard() -> Heard:
    """Return what triggers a rule on the bells of a tower: they are made, ring, and fade."""

    def hear(**triggers: Any) -> list[str]:
        found: list[str] = []

        @rule(on=bell, **triggers)
        def listen(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
            found.append(f"{transition.entity} {type(transition.event).__name__}")
            yield from ()

        of, aggregate = tower(listen, fade, bells=1)
        taken(of, aggregate, PULL)
        taken(of, aggregate, Envelope("oven", Lit(), 0))
        return found

    return hear


CREATED, PULLED, FADED = (f"bell:0 {each}" for each in ("Created", "Pulled", "Faded"))


@pytest.mark.parametrize(
    ("triggers", "which"),
    [
        ({}, [CREATED, PULLED, FADED]),
        ({"event": Pulled}, [PULLED]),
        ({"event": (Pulled, Created)}, [CREATED, PULLED]),
        ({"event": Event}, [CREATED, PULLED, FADED]),
        ({"enters": Sound.QUIET}, [CREATED, FADED]),
        ({"enters": {Sound.RINGING, Sound.QUIET}}, [CREATED, PULLED, FADED]),
        ({"leaves": Sound.QUIET}, [PULLED]),
        ({"leaves": (Sound.QUIET, Sound.RINGING)}, [PULLED, FADED]),
        ({"event": Faded, "enters": Sound.QUIET}, [FADED]),
        ({"leaves": Sound.RINGING, "enters": Sound.QUIET}, [FADED]),
        ({"event": Pulled, "leaves": Sound.RINGING}, []),
    ],
)
def test_each_trigger_narrows_which_transitions_a_rule_is_asked_about(
    heard: Heard, triggers: dict[str, Any], which: list[str]
) -> None:
    """A creation enters its state and leaves none; a base class stands for the events derived from it."""
    assert heard(**triggers) == which


def test_a_transition_that_stays_in_its_state_neither_leaves_nor_enters_it() -> None:
    """Only a change of state is out of one and into another."""
    found: list[str] = []

    def listen(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        found.append(type(transition.event).__name__)
        yield from ()

    leaves, enters = rule(on=machine, leaves=Place.COLD)(listen), rule(on=machine, enters=Place.COLD)(listen)
    rules = (leaves, replace(enters, name="listen to the other end"))
    of = AggregateType("house", machines=(machine,), rules=rules)
    cold = taken(of, of.start("house/a"), Envelope("", Opened({"oven": Oven()}), 0)).aggregate
    found.clear()
    taken(of, cold, Envelope("oven", Knocked(), 1))
    assert found == []
    taken(of, cold, Envelope("oven", Lit(), 1))
    assert found == ["Lit"]


def test_a_rule_that_is_called_asks_for_nothing_where_it_is_not_triggered() -> None:
    """What it does there is not defined: its function relies on its triggers."""

    @rule(on=bell, event=Pulled)
    def pull_on(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        yield Dispatch(f"next to {transition.entity}", Pulled())

    of, aggregate = tower(fade, bells=1)
    pulled, faded = taken(of, aggregate, PULL).transitions
    lit, *_ = taken(of, aggregate, Envelope("oven", Lit(), 0)).transitions
    assert list(pull_on(aggregate, pulled)) == [Dispatch("next to bell:0", Pulled())]
    assert [list(pull_on(aggregate, each)) for each in (faded, lit)] == [[], []]


def test_rules_are_looked_up_in_their_order_whatever_triggers_them() -> None:
    """The same rules are found again for another transition by the same event between the same states."""

    def nothing(_aggregate: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
        yield from ()

    made = (
        rule(on=bell, enters=Sound.RINGING)(nothing),
        rule(on=machine)(nothing),
        rule(on=bell, event=Faded)(nothing),
        rule(on=bell, event=Pulled)(nothing),
        rule(on=bell)(nothing),
    )
    rules = tuple(replace(each, name=f"nothing {place}") for place, each in enumerate(made))
    of, aggregate = tower(*rules, bells=2)
    first, second = (taken(of, aggregate, Envelope(f"bell:{n}", Pulled(), 0)).transitions[0] for n in range(2))
    assert of.triggered(first) == (rules[0], rules[3], rules[4])
    assert of.triggered(second) is of.triggered(first)


@pytest.mark.parametrize(
    ("triggers", "why"),
    [
        ({"event": Tolled}, "rule ring on bell: Tolled is no event of bell; it has Pulled, Faded"),
        ({"event": (Pulled, Lit)}, "rule ring on bell: Lit is no event of bell; it has Pulled, Faded"),
        ({"event": TimerFired}, "rule ring on bell: TimerFired is no event of bell; it has Pulled, Faded"),
        ({"event": ()}, "rule ring on bell: event= names no event"),
        ({"enters": Place.COLD}, "rule ring on bell: <Place.COLD: 'Cold'> is no state of bell; it has Quiet, Ringing"),
        ({"enters": Like.QUIET}, "rule ring on bell: <Like.QUIET: 'Quiet'> is no state of bell; it has Quiet, Ringing"),
        ({"leaves": ()}, "rule ring on bell: leaves= names no state"),
    ],
)
def test_a_trigger_that_cannot_come_is_refused_when_the_rule_is_made(triggers: dict[str, Any], why: str) -> None:
    """It names the rule, and what there is instead; a state of another machine is none, though it be spelled alike."""

    def ring(_aggregate: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
        yield from ()

    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        rule(on=bell, **triggers)(ring)


def test_a_rule_has_the_actor_and_the_time_of_what_it_follows_from() -> None:
    """Who did it: the rule, by its name."""
    of, aggregate = tower(pull_the_next, bells=2)
    _, second = taken(of, aggregate, PULL).transitions
    assert (second.actor, second.at_ms) == ("rule:pull_the_next", 7)


def test_a_dispatch_that_is_not_taken_is_a_refusal_for_the_record() -> None:
    """It changes nothing, and what other rules ask for happens all the same."""

    @rule(on=bell)
    def pull_again(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        if transition.entered is Sound.RINGING:
            yield Dispatch(transition.entity, Pulled())
            yield Dispatch("bell:9", Pulled())
            yield Dispatch("gong:1", Pulled())

    of, aggregate = tower(pull_again, fade, bells=1)
    reaction = taken(of, aggregate, PULL)
    assert steps(reaction) == [("bell:0", "Pulled"), ("bell:0", "Faded")]
    assert [(each.kind, each.reason) for each in reaction.refusals] == [
        ("illegal", "bell: Pulled is not possible in Ringing (possible: Faded)"),
        ("unknown", "tower/a: 'bell:9' does not exist"),
        ("unknown", "tower/a: 'gong:1' does not exist"),
    ]
    assert {each.envelope.actor for each in reaction.refusals} == {"rule:pull_again"}


def test_rules_may_create_entities_and_use_them_at_once() -> None:
    """Create, then Dispatch to what was created; a second creation of the same name is refused."""

    @rule(on=machine)
    def cast(_aggregate: Aggregate, transition: Transition) -> Iterator[Create | Dispatch]:
        if transition.entered is Place.BAKING:
            yield Create("bell:new", Bell())
            yield Dispatch("bell:new", Pulled())
            yield Create("bell:new", Bell())
            yield Create("gong:1", Bell())

    of, aggregate = tower(cast)
    reaction = taken(of, aggregate, Envelope("oven", Lit(), 3))
    assert steps(reaction) == [("oven", "Lit"), ("bell:new", "Created"), ("bell:new", "Pulled")]
    assert [(each.kind, each.reason) for each in reaction.refusals] == [
        ("duplicate", "tower/a: 'bell:new' exists already"),
        ("unknown", "tower/a: 'gong:1' does not exist"),
    ]
    assert reaction.aggregate.record("bell:new") == Bell(Sound.RINGING)
    assert reaction.aggregate.entities["bell:new"].entered_ms == 3


def test_a_rule_on_a_machine_that_is_not_there_is_an_error() -> None:
    """It would never run; the error names the rule and the machines there are."""
    with pytest.raises(ValueError, match=r"tower: rule fade is on 'bell'; the machines are oven"):
        AggregateType("tower", machines=(machine,), rules=(fade,))


def test_two_rules_of_one_name_on_a_machine_are_an_error() -> None:
    """A log names the rules of an outcome, and could not tell which of them it was."""
    with pytest.raises(ValueError, match=r"tower: rule 'bell.fade' is there twice"):
        AggregateType("tower", machines=(bell,), rules=(fade, fade))


def test_commands_to_a_machine_that_is_not_there_are_an_error() -> None:
    """The constructor raises it, not the first command."""
    with pytest.raises(ValueError, match=r"tower: commands to 'bell'; the machines are oven"):
        AggregateType("tower", machines=(machine,), commands={"bell": ()})


def test_two_machines_of_one_name_are_an_error() -> None:
    """One of them would be lost."""
    with pytest.raises(ValueError, match=r"tower: machine 'bell' is there twice"):
        AggregateType("tower", machines=(bell, bell.with_rows()))


def test_rules_that_run_in_a_circle_are_found_out() -> None:
    """No input is followed for ever: it is refused, changes nothing, and the reason says which it was."""

    @rule(on=bell)
    def swing(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        yield Dispatch(transition.entity, Faded() if transition.after.state is Sound.RINGING else Pulled())

    of = AggregateType("tower", machines=(bell,), rules=(swing,))
    refusal = refused(of, of.start("tower/a"), Envelope("bell:0", Created(Bell()), 0))
    assert refusal.kind == "circle"
    assert refusal.reason.startswith(f"tower/a: the rules run in a circle: {MACROSTEP_LIMIT} steps after Created")


# Effects


def test_an_effect_says_which_entity_asks_for_it() -> None:
    """Its place in the reaction is its index, over all transitions in their order."""

    @rule(on=bell)
    def light(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
        if transition.entered is Sound.RINGING:
            yield Tell("village/b", "bell:0", Pulled())
            yield Dispatch("oven", Lit())

    of, aggregate = tower(light)
    reaction = taken(of, aggregate, PULL)
    assert reaction.effects == (
        RequestedEffect("", Tell("village/b", "bell:0", Pulled(), 1)),
        RequestedEffect("oven", Begin("Bake", Bake(200), 2)),
    )


# Inputs from outside


def test_opening_creates_everything_at_once() -> None:
    """No rule sees a part of it; and an aggregate is opened once."""
    seen: list[int] = []

    @rule(on=bell)
    def count(aggregate: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
        seen.append(len(aggregate.entities))
        yield from ()

    of, aggregate = tower(count, bells=2)
    assert seen == [3, 3]
    assert (aggregate.name, aggregate.kind, aggregate.key, aggregate.version) == ("tower/a", "tower", "a", 1)
    again = refused(of, aggregate, Envelope("", Opened({"oven": Oven()}), 0))
    assert (again.kind, again.reason) == ("duplicate", "tower/a is open already")


def test_opening_with_an_unknown_machine_creates_nothing() -> None:
    """All or nothing."""
    of = AggregateType("tower", machines=(bell,))
    refusal = refused(of, of.start("tower/a"), Envelope("", Opened({"bell:0": Bell(), "oven": Oven()}), 0))
    assert (refusal.kind, refusal.reason) == ("unknown", "tower/a has no machine for 'oven'")


def test_a_life_begins_with_a_record_of_its_machine() -> None:
    """However it begins; another machine's record is refused, and nothing is created."""
    of, aggregate = tower(bells=1)
    reason = "'bell:x' begins with a Bell, not with a Oven"
    created = refused(of, aggregate, Envelope("bell:x", Created(Oven()), 0))
    assert (created.kind, created.reason) == ("illegal", reason)
    opened = refused(of, of.start("tower/b"), Envelope("", Opened({"oven": Oven(), "bell:x": Oven()}), 0))
    assert (opened.kind, opened.reason) == ("illegal", reason)


@pytest.mark.parametrize("event", [RunnerRecovered(0), Opened({})], ids=lambda event: type(event).__name__)
def test_what_is_for_all_of_an_aggregate_is_for_no_entity_of_it(event: Event) -> None:
    """With an entity's name it could not be read back from a log."""
    of, aggregate = tower(bells=1)
    refusal = refused(of, aggregate, Envelope("bell:0", event, 0))
    assert refusal.kind == "unknown"
    assert refusal.reason == f"{type(event).__name__} is for all of tower/a, not for 'bell:0'"


def test_an_entity_can_be_created_later_and_once() -> None:
    """With the actor and the time of its envelope."""
    of, aggregate = tower(bells=1)
    reaction = taken(of, aggregate, Envelope("bell:x", Created(Bell()), 9, "operator"))
    assert [(step.before, step.actor, step.at_ms) for step in reaction.transitions] == [(None, "operator", 9)]
    again = refused(of, reaction.aggregate, Envelope("bell:x", Created(Bell()), 9))
    assert (again.kind, again.reason) == ("duplicate", "tower/a: 'bell:x' exists already")


@pytest.mark.parametrize("ref", ["gong:1", "bell:9", ""], ids=["machine", "entity", "none"])
def test_an_event_without_a_receiver_is_refused(ref: str) -> None:
    """Unknown machines and unknown entities; the reason names the aggregate and what was asked for."""
    of, aggregate = tower()
    refusal = refused(of, aggregate, Envelope(ref, Pulled(), 0))
    assert (refusal.kind, refusal.reason) == ("unknown", f"tower/a: {ref!r} does not exist")
    assert refused(of, aggregate, Envelope("gong:1", Created(Bell()), 0)).kind == "unknown"


def test_an_event_that_only_an_activity_yields_is_refused_from_other_senders() -> None:
    """From outside it needs the slot and the generation of the activity."""
    of, aggregate = tower()
    lit = taken(of, aggregate, Envelope("oven", Lit(), 0)).aggregate
    refusal = refused(of, lit, Envelope("oven", Baked(), 0, "operator"))
    assert (refusal.kind, refusal.reason) == ("unsolicited", "Baked comes from an activity, not from operator")
    baked = taken(of, lit, Envelope("oven", Baked(), 0, slot="Bake", generation=2))
    assert baked.aggregate.record("oven").state is Place.COOLING


def test_a_timers_event_may_come_from_another_sender_before_its_time() -> None:
    """A visitor shuts the door; the timer that would have done so is cancelled, and is inert if it comes late (D12)."""
    of, aggregate = tower(bells=0)
    lit = taken(of, aggregate, Envelope("oven", Lit(), 0)).aggregate
    hot = taken(of, lit, Envelope("oven", Baked(), 0, slot="Bake", generation=2)).aggregate
    early = refused(of, hot, Envelope("oven", TimerFired("Cooled", 3), 10))
    assert early.kind == "early"
    reaction = taken(of, hot, Envelope("oven", Cooled(), 10, "operator"))
    assert reaction.aggregate.record("oven").state is Place.COLD
    assert RequestedEffect("oven", CancelTimer("Cooled", 3)) in reaction.effects
    assert refused(of, reaction.aggregate, Envelope("oven", TimerFired("Cooled", 3), 500)).kind == "stale"


def test_a_refused_input_changes_nothing() -> None:
    """The answer is the refusal alone; there is no other aggregate."""
    of, aggregate = tower()
    assert refused(of, aggregate, Envelope("bell:0", Faded(), 0)).kind == "illegal"


def test_the_kernels_own_inputs_reach_their_entity() -> None:
    """Timers and confirmations go through the aggregate like everything else."""
    of, aggregate = tower(bells=0)
    for envelope in (
        Envelope("oven", Lit(), 0),
        Envelope("oven", Doused(), 1),
        Envelope("oven", ActivityEnded("Bake", 2), 2),
        Envelope("oven", Lit(), 3),
        Envelope("oven", Baked(), 4, slot="Bake", generation=5),
        Envelope("oven", TimerFired("Cooled", 6), 504),
    ):
        aggregate = taken(of, aggregate, envelope).aggregate
    assert aggregate.record("oven").state is Place.COLD
    assert aggregate.version == 7


def test_a_recovered_aggregate_asks_again_for_everything_in_it() -> None:
    """In the order of the references, for every entity, without a transition."""
    of = AggregateType("house", machines=(machine,))
    records = {"oven:b": Oven(Place.BAKING, degrees=2), "oven:a": Oven(Place.BAKING, degrees=1), "oven:c": Oven()}
    aggregate = taken(of, of.start("house/a"), Envelope("", Opened(records), 0)).aggregate
    reaction = taken(of, aggregate, Envelope("", RunnerRecovered(5), 50))
    assert reaction.effects == (
        RequestedEffect("oven:a", Begin("Bake", Bake(1), 1, resumed=True)),
        RequestedEffect("oven:b", Begin("Bake", Bake(2), 1, resumed=True)),
    )
    assert (reaction.transitions, reaction.aggregate.version) == ((), 2)
    assert reaction.aggregate.entities == aggregate.entities


def test_an_empty_aggregate_can_recover() -> None:
    """There is nothing to ask for."""
    of = AggregateType("house", machines=(machine,))
    assert taken(of, of.start("house/a"), Envelope("", RunnerRecovered(5), 50)).effects == ()


# Views, names, systems


def count_rings(rings: int, transition: Transition) -> int:
    """Count the bells that began to ring."""
    return rings + (transition.entered is Sound.RINGING)


def test_a_view_is_folded_over_all_transitions_before_any_rule_looks_at_it() -> None:
    """A rule sees what has happened up to its transition."""
    seen: list[int] = []

    @rule(on=bell)
    def watch(aggregate: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
        seen.append(aggregate.views["rings"])
        yield from ()

    of, aggregate = tower(pull_the_next, watch, views={"rings": View(0, count_rings)}, bells=3)
    assert of.start("tower/a").views["rings"] == 0
    seen.clear()
    assert taken(of, aggregate, PULL).aggregate.views["rings"] == 3
    assert seen == [1, 2, 3]


def test_a_system_with_more_properties_is_the_same_in_all_else() -> None:
    """The original system is unchanged."""
    of, _ = tower(fade)
    quiet: Property[SystemState] = always("nothing is under way", lambda system_state: not system_state.in_flight)
    small: Property[SystemState] = always("there is one tower", lambda system_state: len(system_state.aggregates) == 1)
    system = System("country", of, properties=(quiet,))
    more = system.with_properties(small)
    assert (more.name, more.properties) == ("country", (quiet, small))
    assert system.properties == (quiet,)
    assert more.type_of("tower").rules == of.rules


def test_a_profile_of_a_machine_takes_its_place_in_a_system() -> None:
    """Rules, views, commands and properties are as they were, and so is the system that it was made of."""
    of, aggregate = tower(pull_the_next)
    quiet: Property[SystemState] = always("nothing is under way", lambda system_state: not system_state.in_flight)
    system = System("country", of, properties=(quiet,))
    deaf = bell.replacing(row(Sound.QUIET, Pulled, Sound.QUIET), row(Sound.QUIET, Faded, Sound.RINGING))
    other = system.with_machine("tower", deaf)
    assert (other.name, other.properties) == ("country", (quiet,))
    assert (other.type_of("tower").machines["bell"], system.type_of("tower").machines["bell"]) == (deaf, bell)
    assert other.type_of("tower").rules == of.rules
    assert steps(taken(other.type_of("tower"), aggregate, PULL)) == [("bell:0", "Pulled")]


def test_operators_may_say_what_is_new_in_the_machine_that_takes_a_place() -> None:
    """The rules do not know it. What a timer stands for is not among it, nor is what the machine no longer takes."""
    tolled = bell.replacing(
        row(Sound.QUIET, Tolled, Sound.RINGING),
        row(Sound.RINGING, Hushed, Sound.QUIET),
        without=((ANY, Pulled),),
        during={Sound.RINGING: after(5, Hushed)},
    )
    spoken = AggregateType("tower", machines=(bell, machine), commands={"bell": (Pulled,), "oven": ()})
    changed = System("country", spoken).with_machine("tower", tolled).type_of("tower")
    assert changed.commands == {"bell": (Tolled,), "oven": ()}
    assert spoken.commands == {"bell": (Pulled,), "oven": ()}
    other = changed.with_machine(machine.replacing(row(Place.COLD, Tolled, Place.BAKING)))
    assert other.commands == {"bell": (Tolled,), "oven": (Tolled,)}
    unsaid = AggregateType("tower", machines=(bell,)).with_machine(tolled)
    assert unsaid.commands == {}


@pytest.mark.parametrize(
    ("kind", "changed", "why"),
    [
        ("castle", bell, r"^country: no kind 'castle'; accepted: tower$"),
        ("tower", machine.starting(Oven(), "gong"), r"^tower: no machine 'gong'; accepted: bell, oven$"),
        (
            "tower",
            machine.starting(Oven(), "bell"),
            r"^tower: the record of machine 'bell': .*Oven.*; accepted: .*Bell",
        ),
        ("tower", bell.starting(Bell(Sound.RINGING)), r"^tower: the first state .*: Ringing; accepted: Quiet$"),
        ("tower", machine.serving("Bake"), r"^tower: the served activities .*: \['Bake'\]; accepted: \[\]$"),
    ],
)
def test_what_takes_a_machine_s_place_is_a_profile_of_it(kind: str, changed: Machine[Any], why: str) -> None:
    """Rules make its records and serve some of its activities."""
    of, _ = tower()
    with pytest.raises(ValueError, match=why):
        System("country", of).with_machine(kind, changed)


def test_a_system_finds_the_type_of_an_aggregate_by_its_kind() -> None:
    """The kind is what stands before the slash; a kind that is alone needs no slash."""
    of, aggregate = tower()
    system = System("country", of)
    assert system.type_of("tower/a") is system.type_of("tower") is system.aggregates["tower"]
    assert system.type_of("tower").machines == of.machines
    assert (aggregate.kind, of.start("tower").key) == ("tower", "")
    with pytest.raises(KeyError):
        system.type_of("castle/a")
    with pytest.raises(KeyError):
        aggregate.record("bell:99")


def test_two_types_of_one_kind_are_an_error() -> None:
    """One of them would be lost."""
    of, _ = tower()
    with pytest.raises(ValueError, match=r"country: kind 'tower' is there twice"):
        System("country", of, of)


def test_the_machine_of_a_reference_is_what_stands_before_the_colon() -> None:
    """A machine with one entity needs no colon."""
    of, _ = tower()
    assert of.machine_of("bell:1") is bell
    assert of.machine_of("oven") is machine
    assert of.machine_of("gong") is None


def test_a_postponed_events_refusal_is_part_of_the_reaction() -> None:
    """What waited and is not wanted any more stands with the refusals of the input that decided it."""
    of = AggregateType("house", machines=(machine,))
    opened = taken(of, of.start("house/a"), Envelope("", Opened({"oven": Oven(Place.BAKING)}), 0)).aggregate
    waits = taken(of, opened, Envelope("oven", Knocked(), 1, "operator"))
    assert waits.transitions == ()
    reaction = taken(of, waits.aggregate, Envelope("oven", Scrapped(), 2))
    assert [(each.kind, each.envelope.actor) for each in reaction.refusals] == [("illegal", "operator")]
    assert reaction.aggregate.entities["oven"].find("Bake", Phase.ENDING) is not None
