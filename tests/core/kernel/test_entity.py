"""Entities: the kernel's guarantees around a machine's reducer, shown with an oven."""

from typing import Any, Never

import pytest

from lifefold.core.kernel import (
    STAY,
    Created,
    Entity,
    EntityStep,
    Event,
    Machine,
    Phase,
    Record,
    RunnerRecovered,
    Running,
    State,
    Step,
    TimerFired,
    does,
    replace,
    row,
)
from lifefold.core.kernel.advance import POSTPONED_LIMIT
from lifefold.effects import Activity, Begin, CancelTimer, End, StartTimer
from oven import Bake, Baked, Cooled, Doused, Knocked, Lit, Oven, Place, Ring, Scrapped, Stirred, Swept, Warned, machine
from oven_life import Given, baking, cooling

# Creation and versions


def test_a_life_begins_with_what_its_state_declares() -> None:
    """The creation is version 1 and a transition without a before; what begins has that generation."""
    given = Given(Oven(Place.BAKING, degrees=9))
    born_at = Oven(Place.BAKING, at_ms=1_000, degrees=9)
    assert given.entity == Entity("oven", born_at, 1, 1_000, (Running("Bake", 1, Bake(9)),))
    assert given.effects == (Begin("Bake", Bake(9), 1),)
    assert isinstance(given.answer, EntityStep)
    (born,) = given.answer.transitions
    assert (born.machine, born.before, born.after, born.event) == (
        "oven",
        None,
        given.entity,
        Created(given.entity.record),
    )
    assert (born.entity, born.entered, born.at_ms, born.actor) == ("oven", Place.BAKING, 1_000, "test")


def test_every_accepted_transition_raises_the_version_and_says_what_it_was() -> None:
    """Before, after, event, time, actor and effects; ``entered`` only when the state changed."""
    given = baking()
    before = given.entity
    given = given.take(Stirred(), 1_500, "Bake", 2)
    assert isinstance(given.answer, EntityStep)
    (stirred,) = given.answer.transitions
    assert (stirred.before, stirred.after, stirred.entered, stirred.effects) == (before, given.entity, None, ())
    assert (given.entity.version, given.entity.entered_ms) == (3, 1_000)
    given = given.take(Baked(), 1_700, "Bake", 2)
    assert (given.entity.version, given.entity.entered_ms, given.entity.state) == (4, 1_700, Place.COOLING)
    assert isinstance(given.answer, EntityStep)
    assert given.answer.transitions[0].entered is Place.COOLING


def test_a_clocked_record_has_the_time_of_the_event() -> None:
    """``at_ms`` is set before any guard or action looks at it."""
    given = baking().take(Stirred(), 4_321, "Bake", 2)
    assert given.entity.record.looked_at_ms == 4_321


@pytest.mark.parametrize("event", [Baked(), Created(Oven())], ids=["of-the-table", "of-the-kernel"])
def test_an_illegal_event_changes_nothing(event: Event) -> None:
    """The refusal carries the machine's words; a second creation is no event of a lifecycle."""
    given = Given()
    before = given.entity
    assert given.take(event).refused == (
        "illegal",
        f"oven: {type(event).__name__} is not possible in Cold (possible: Lit, Knocked, Scrapped)",
    )
    assert given.entity is before


# Timers


def test_a_timer_is_refused_before_its_deadline_and_stale_after_it() -> None:
    """The deadline is the time of the transition that began it plus its delay (D20)."""
    given = cooling()
    assert given.take(TimerFired("Cooled", 3), 1_499).refused == ("early", "Cooled is due in 1 ms")
    given = given.take(TimerFired("Cooled", 3), 1_500)
    assert given.entity.state is Place.COLD
    assert given.effects == (CancelTimer("Warned", 3), CancelTimer("Swept", 3))
    assert given.entity.running == ()
    assert given.take(TimerFired("Cooled", 3), 1_500).refused == ("stale", "Cooled of generation 3 is not live in Cold")


def test_a_timer_whose_event_stays_is_over_all_the_same() -> None:
    """It happens once in a stay; the others go on."""
    given = cooling().take(TimerFired("Warned", 3), 1_200)
    assert given.entity.state is Place.COOLING
    assert [part.slot for part in given.entity.running] == ["Cooled", "Swept"]
    assert given.take(TimerFired("Warned", 3), 1_300).refused[0] == "stale"
    assert given.take(TimerFired("Cooled", 3), 1_500).effects == (CancelTimer("Swept", 3),)


def test_an_activity_is_no_timer() -> None:
    """A report that an activity's time has come is stale: it has none."""
    assert baking().take(TimerFired("Bake", 2), 9_999).refused == (
        "stale",
        "Bake of generation 2 is not live in Baking",
    )


def test_a_timer_of_another_generation_is_stale() -> None:
    """A second stay has timers of its own."""
    assert cooling().take(TimerFired("Cooled", 2), 9_999).refused[0] == "stale"


# Postponed events


def test_a_postponed_event_comes_after_the_next_change_of_state() -> None:
    """It waits without a version, an effect or a transition, and is then taken at the time of the change (D14)."""
    given = baking().take(Knocked(), 1_100)
    assert isinstance(given.answer, EntityStep)
    assert (given.answer.transitions, given.effects, given.entity.version) == ((), (), 2)
    assert [waiting.event for waiting in given.entity.postponed] == [Knocked()]
    given = given.take(Stirred(), 1_150, "Bake", 2)
    assert len(given.entity.postponed) == 1
    given = given.take(Baked(), 1_200, "Bake", 2)
    assert isinstance(given.answer, EntityStep)
    assert [type(step.event) for step in given.answer.transitions] == [Baked, Knocked]
    assert [step.at_ms for step in given.answer.transitions] == [1_200, 1_200]
    assert (given.entity.state, given.entity.record.visitors, given.entity.postponed) == (Place.COLD, 1, ())
    assert {type(effect) for effect in given.effects} == {Ring, StartTimer, CancelTimer}


def test_postponed_events_come_in_their_order() -> None:
    """Each in the state that the one before it led to."""
    given = baking().take(Knocked()).take(Knocked()).take(Doused())
    assert isinstance(given.answer, EntityStep)
    assert given.answer.refusals == ()
    assert given.entity.record.visitors == 2
    assert [step.after.version for step in given.answer.transitions] == [3, 4, 5]


def test_a_postponed_event_that_no_state_accepts_any_more_is_refused_with_the_input_that_changed_the_state() -> None:
    """It is not lost silently: its refusal is part of what the input came to."""
    given = baking().take(Knocked()).take(Scrapped())
    assert isinstance(given.answer, EntityStep)
    (refusal,) = given.answer.refusals
    assert (refusal.kind, refusal.envelope.event, refusal.envelope.actor) == ("illegal", Knocked(), "test")
    assert given.entity.postponed == ()


def test_no_more_than_a_limit_of_events_waits() -> None:
    """One more is refused, so that its sender knows."""
    given = baking()
    for _ in range(POSTPONED_LIMIT):
        given = given.take(Knocked())
    assert given.take(Knocked()).refused == ("overflow", f"{POSTPONED_LIMIT} events are waiting in Baking already")
    assert len(given.entity.postponed) == POSTPONED_LIMIT


class Step3(State):
    """Three states in a row, and back."""

    ONE = "One"
    TWO = "Two"
    THREE = "Three"


class Next(Event, frozen=True):
    """Go on."""


class Later(Event, frozen=True):
    """Wait until the third state, and go on from it."""


class Jump(Event, frozen=True):
    """Wait in the first state, and go on from the second."""


class Chain(Record, frozen=True):
    """Where it is."""

    state: Step3 = Step3.ONE


class Hum(Activity, frozen=True):
    """Make a noise."""


def hum(_chain: Chain) -> Hum:
    return Hum()


def never(_chain: Chain, _event: Event) -> bool:
    return False


chain: Machine[Any] = Machine(
    "chain",
    Chain(),
    rows=(
        row(Step3.ONE, Next, Step3.TWO),
        row(Step3.TWO, Next, Step3.THREE),
        row(Step3.TWO, Jump, Step3.THREE),
        row(Step3.THREE, Later, Step3.ONE),
        row(Step3.THREE, Next, Step3.ONE),
    ),
    postpone={(Step3.ONE, Step3.TWO): Later, Step3.ONE: Jump},
)


def test_what_still_has_to_wait_keeps_its_place_before_what_came_later() -> None:
    """Later waits on in the second state; when Jump has led to the third, it comes before what came after Jump."""
    given = Given(of=chain).take(Later()).take(Jump()).take(Later()).take(Next())
    assert isinstance(given.answer, EntityStep)
    assert [(type(step.event), step.after.state) for step in given.answer.transitions] == [
        (Next, Step3.TWO),
        (Jump, Step3.THREE),
        (Later, Step3.ONE),
    ]
    assert [waiting.event for waiting in given.entity.postponed] == [Later()]


def test_what_waits_again_in_the_new_state_waits() -> None:
    """A change of state after which all events still wait keeps them in order."""
    given = Given(of=chain).take(Later()).take(Later()).take(Next())
    assert given.entity.state is Step3.TWO
    assert [waiting.event for waiting in given.entity.postponed] == [Later(), Later()]


def test_a_postponed_event_of_an_activity_that_has_ended_meanwhile_is_stale() -> None:
    """Waiting does not make an event valid again (D12)."""
    humming: Machine[Any] = Machine(
        "chain",
        Chain(),
        rows=(
            *(each for each in chain.rows if each.event is Next),
            row(Step3.ONE, Later, Step3.THREE, when=never),
            row(Step3.TWO, Later, Step3.ONE),
        ),
        during={Step3.ONE: does(hum, yields=Later)},
        postpone={Step3.ONE: Later},
    )
    given = Given(of=humming).take(Later(), slot="Hum", generation=1)
    assert len(given.entity.postponed) == 1
    given = given.take(Next())
    assert isinstance(given.answer, EntityStep)
    assert [refusal.kind for refusal in given.answer.refusals] == ["stale"]
    assert given.entity.state is Step3.TWO


# Recovery


def test_after_a_crash_everything_that_goes_on_is_asked_for_again() -> None:
    """A live activity is adopted or restarted, an ending one is ended again; nothing else changes."""
    given = baking()
    before = given.entity
    given = given.take(RunnerRecovered(50), 5_000)
    assert given.effects == (Begin("Bake", Bake(200), 2, resumed=True),)
    assert given.entity == before
    given = given.take(Doused()).take(Lit(300))
    before = given.entity
    given = given.take(RunnerRecovered(50), 6_000)
    assert given.effects == (End("Bake", 2),)
    assert given.entity == before
    assert isinstance(given.answer, EntityStep)
    assert given.answer.transitions == ()


def test_after_a_crash_an_activity_that_outlives_its_runner_is_the_one_that_was_begun() -> None:
    """The present record is for the next activity. A repeated activity is made from the record at its beginning."""

    def bake(oven: Oven) -> Bake:
        return Bake(oven.degrees)

    def hotter(oven: Oven, _event: Warned) -> Step[Oven, Never]:
        return Step(replace(oven, degrees=300))

    for outlives, degrees in ((False, 300), (True, 200)):
        does_bake = does(bake, yields=Stirred, last=Baked, outlives=outlives)
        of = machine.with_rows(row(Place.BAKING, Warned, STAY, hotter), during={Place.BAKING: does_bake})
        given = Given(of=of).take(Lit()).take(Warned()).take(RunnerRecovered(50), 5_000)
        assert given.effects == (Begin("Bake", Bake(degrees), 2, resumed=True),)
        assert given.entity.running == (Running("Bake", 2, Bake(degrees)),)


def test_after_a_crash_a_served_activity_is_still_the_rules_own() -> None:
    """No interpreter is asked for it."""
    assert Given(of=machine.serving("Bake")).take(Lit()).take(RunnerRecovered(50), 5_000).effects == ()


def test_after_a_crash_a_timer_keeps_its_deadline_pauses_or_starts_again() -> None:
    """The three policies: ``deadline``, ``remaining`` (the time without a runner does not count), ``restart``."""
    given = cooling().take(RunnerRecovered(100), 1_150)
    assert given.effects == (
        StartTimer("Cooled", 350, 3, 1_500),
        StartTimer("Warned", 150, 3, 1_300),
        StartTimer("Swept", 300, 3, 1_450),
    )
    assert [part.deadline_ms for part in given.entity.running] == [1_500, 1_300, 1_450]
    assert given.take(TimerFired("Warned", 3), 1_299).refused[0] == "early"
    assert isinstance(given.take(TimerFired("Warned", 3), 1_300).answer, EntityStep)


def test_a_deadline_that_passed_without_a_runner_is_due_at_once() -> None:
    """The remaining delay is never negative."""
    assert cooling().take(RunnerRecovered(9_000), 10_000).effects[0] == StartTimer("Cooled", 0, 3, 1_500)


def test_recovering_twice_asks_twice_for_the_same() -> None:
    """The generations are the same, so an interpreter recognises the repetition."""
    given = baking().take(RunnerRecovered(50), 5_000)
    first = given.effects
    assert given.take(RunnerRecovered(50), 6_000).effects == first


def test_an_entity_finds_what_goes_on_by_slot_and_phase() -> None:
    """Live unless another phase is asked for; None if there is nothing."""
    entity = baking().take(Doused()).take(Lit()).entity
    assert entity.find("Bake") is None
    assert (entity.find("Bake", Phase.ENDING), entity.find("Bake", Phase.WAITING)) == entity.running
    assert entity.find("Cooled") is None


def test_every_event_of_the_oven_has_an_example() -> None:
    """One value of the type itself, unless it says otherwise."""
    for event in (Lit, Stirred, Baked, Doused, Knocked, Warned, Swept, Cooled, Scrapped):
        assert event.examples() == (event(),)
    assert (Lit.label(), Stirred.label()) == ("Lit(degrees)", "Stirred")
    assert replace(Lit(), degrees=5) == Lit(5)


# Rows that restart timers


ANEW: Machine[Any] = machine.replacing(
    row(Place.COOLING, Warned, Place.COOLING, restart=True), row(Place.COOLING, Lit, Place.COOLING, restart=True)
)


def test_a_timer_that_begins_again_has_the_deadline_of_the_row_that_restarts_it() -> None:
    """The old one is cancelled and stale from then on; the state is entered no second time."""
    given = Given(of=ANEW).take(Lit(), 1_000).take(Baked(), 1_000, "Bake", 2)
    given = given.take(TimerFired("Warned", 3), 1_250)
    assert given.effects == (
        CancelTimer("Cooled", 3),
        CancelTimer("Swept", 3),
        StartTimer("Cooled", 500, 4, 1_750),
        StartTimer("Warned", 200, 4, 1_450),
        StartTimer("Swept", 300, 4, 1_550),
    )
    assert [(each.slot, each.generation, each.deadline_ms) for each in given.entity.running] == [
        ("Cooled", 4, 1_750),
        ("Warned", 4, 1_450),
        ("Swept", 4, 1_550),
    ]
    assert (given.entity.entered_ms, given.entity.version) == (1_000, 4)
    assert given.take(TimerFired("Cooled", 3), 1_500).refused == (
        "stale",
        "Cooled of generation 3 is not live in Cooling",
    )
    assert given.take(TimerFired("Cooled", 4), 1_749).refused == ("early", "Cooled is due in 1 ms")


def test_a_timer_begins_again_when_another_sender_sends_its_event() -> None:
    """The event of the timer from elsewhere leaves one timer, not two."""
    given = Given(of=ANEW).take(Lit(), 1_000).take(Baked(), 1_000, "Bake", 2).take(Warned(), 1_100)
    assert [each.slot for each in given.entity.running] == ["Cooled", "Warned", "Swept"]
    assert {each.generation for each in given.entity.running} == {4}
