"""Entities: what the kernel promises around a machine's reducer, seen on an oven."""

from typing import Any

import pytest

from lifefold.core.kernel import (
    Advance,
    Created,
    Elapsed,
    Ended,
    Entity,
    Envelope,
    Event,
    Machine,
    Phase,
    Record,
    Recovered,
    Refusal,
    Running,
    State,
    advance,
    create,
    does,
    replace,
    row,
)
from lifefold.core.kernel.entity import POSTPONED_LIMIT
from lifefold.effects import Activity, Begin, CancelTimer, Effect, End, StartTimer
from oven import Bake, Baked, Cooled, Doused, Knocked, Lit, Oven, Place, Ring, Scrapped, Stirred, Swept, Warned, machine


class Given:
    """An oven's entity, and the answer to what it was given last."""

    def __init__(self, record: Record | None = None, of: Machine[Any] = machine) -> None:
        """Begin a life at time 1000."""
        self.of = of
        self.answer: Advance | Refusal = create(of, of.name, record or of.initial, 1_000, "test")
        self.entity: Entity[Any] = self.answer.entity

    def take(self, event: Event, at_ms: int = 1_000, slot: str = "", generation: int = 0) -> "Given":
        """Offer an event; the entity changes if it is accepted."""
        self.answer = advance(self.of, self.entity, Envelope(self.of.name, event, at_ms, "test", "", slot, generation))
        if isinstance(self.answer, Advance):
            self.entity = self.answer.entity
        return self

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of the last input, which was accepted."""
        assert isinstance(self.answer, Advance)
        return self.answer.effects

    @property
    def refused(self) -> tuple[str, str]:
        """The kind and the reason of the last input's refusal."""
        assert isinstance(self.answer, Refusal)
        return self.answer.kind, self.answer.reason


def baking(degrees: int = 200) -> Given:
    """Return an oven that bakes, since version 2."""
    return Given().take(Lit(degrees))


def cooling() -> Given:
    """Return an oven that cools down, since version 3 and time 1000."""
    return baking().take(Baked(), slot="Bake", generation=2)


# Creation and versions


def test_a_life_begins_with_what_its_state_declares() -> None:
    """The creation is version 1 and a transition without a before; what begins has that generation."""
    given = Given(Oven(Place.BAKING, degrees=9))
    born_at = Oven(Place.BAKING, at_ms=1_000, degrees=9)
    assert given.entity == Entity("oven", born_at, 1, 1_000, (Running("Bake", 1, Bake(9)),))
    assert given.effects == (Begin("Bake", Bake(9), 1),)
    assert isinstance(given.answer, Advance)
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
    assert isinstance(given.answer, Advance)
    (stirred,) = given.answer.transitions
    assert (stirred.before, stirred.after, stirred.entered, stirred.effects) == (before, given.entity, None, ())
    assert (given.entity.version, given.entity.entered_ms) == (3, 1_000)
    given = given.take(Baked(), 1_700, "Bake", 2)
    assert (given.entity.version, given.entity.entered_ms, given.entity.state) == (4, 1_700, Place.COOLING)
    assert isinstance(given.answer, Advance)
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


# Activities


def test_leaving_the_states_of_an_activity_asks_for_its_end_until_it_is_confirmed() -> None:
    """LIVE, then ENDING, then nothing; the confirmation is a transition that enters no state."""
    given = baking().take(Doused())
    assert given.effects == (End("Bake", 2),)
    assert given.entity.running == (Running("Bake", 2, Bake(200), 0, Phase.ENDING),)
    given = given.take(Ended("Bake", 2), 2_000)
    assert given.entity.running == ()
    assert given.effects == ()
    assert isinstance(given.answer, Advance)
    (confirmed,) = given.answer.transitions
    assert (confirmed.event, confirmed.entered, given.entity.version) == (Ended("Bake", 2), None, 4)


def test_an_activity_that_is_over_by_itself_needs_no_end() -> None:
    """Its last event leaves its states, and nothing is left of it."""
    given = cooling()
    assert given.effects == (
        Ring(1),
        StartTimer("Cooled", 500, 3, 1_500),
        StartTimer("Warned", 200, 3, 1_200),
        StartTimer("Swept", 300, 3, 1_300),
    )
    assert {part.slot for part in given.entity.running} == {"Cooled", "Warned", "Swept"}


def test_the_last_event_ends_its_activity_whoever_brought_it() -> None:
    """An activity that rules serve is over with its last event as well, although no envelope has its slot."""
    served = Given(of=machine.serving("Bake"))
    for loaf in range(1, 4):
        served = served.take(Lit()).take(Baked())
        assert served.effects[0] == Ring(loaf)
        assert served.entity.find("Bake") is None
        cooled = served.entity.find("Cooled")
        assert cooled is not None
        served = served.take(Elapsed("Cooled", cooled.generation), cooled.deadline_ms)
    assert served.entity.running == ()


def test_an_activity_begins_only_when_the_one_before_it_is_confirmed_gone() -> None:
    """WAITING keeps its own generation; the confirmation begins it (D13)."""
    given = baking().take(Doused()).take(Lit(300))
    assert given.effects == ()
    assert given.entity.running == (
        Running("Bake", 2, Bake(200), 0, Phase.ENDING),
        Running("Bake", 4, Bake(300), 0, Phase.WAITING),
    )
    given = given.take(Ended("Bake", 2))
    assert given.effects == (Begin("Bake", Bake(300), 4),)
    assert given.entity.running == (Running("Bake", 4, Bake(300)),)


def test_an_activity_that_only_waited_is_forgotten() -> None:
    """It never began, so there is nothing to end; the one before it is still to be confirmed."""
    given = baking().take(Doused()).take(Lit()).take(Doused())
    assert given.effects == ()
    assert given.entity.running == (Running("Bake", 2, Bake(200), 0, Phase.ENDING),)
    given = given.take(Ended("Bake", 2))
    assert (given.effects, given.entity.running) == ((), ())


def test_nothing_that_waits_speaks() -> None:
    """An event in the name of an activity that has not begun is stale."""
    given = baking().take(Doused()).take(Lit())
    assert given.take(Stirred(), slot="Bake", generation=4).refused == (
        "stale",
        "Bake of generation 4 is not live in Baking",
    )


def test_a_served_activity_is_neither_begun_nor_ended_by_an_interpreter() -> None:
    """It is live while its states hold, without effects or confirmations."""
    served = Given(of=machine.serving("Bake")).take(Lit())
    assert served.effects == ()
    assert served.entity.running == (Running("Bake", 2, Bake(200)),)
    served = served.take(Doused())
    assert (served.effects, served.entity.running) == ((), ())


@pytest.mark.parametrize(("slot", "generation"), [("Bake", 1), ("Bake", 3), ("Cooled", 2)])
def test_an_event_of_what_is_not_live_is_stale(slot: str, generation: int) -> None:
    """Whatever the table would say: another generation, or another slot (D12)."""
    given = baking()
    before = given.entity
    assert given.take(Stirred(), slot=slot, generation=generation).refused[0] == "stale"
    assert given.entity is before


def test_an_activity_can_say_only_what_it_yields() -> None:
    """Anything else in its name is refused, although the table would take it from somebody else."""
    assert baking().take(Doused(), slot="Bake", generation=2).refused == (
        "unsolicited",
        "Doused is not what Bake yields",
    )
    assert isinstance(baking().take(Doused()).answer, Advance)


def test_a_timers_event_in_the_timers_name_does_not_get_around_its_deadline() -> None:
    """A timer says only that its time has come (D20)."""
    assert cooling().take(Cooled(), 1_001, "Cooled", 3).refused == ("unsolicited", "Cooled is not what Cooled yields")


@pytest.mark.parametrize(
    "event", [Ended("Bake", 2), Ended("Bake", 9), Ended("Cooled", 2)], ids=["live", "unknown", "other"]
)
def test_a_confirmation_of_what_is_not_ending_is_stale(event: Ended) -> None:
    """Only what was asked to end can be confirmed, and once."""
    assert baking().take(event).refused[0] == "stale"
    assert baking().take(Doused()).take(Ended("Bake", 2)).take(Ended("Bake", 2)).refused[0] == "stale"


# Timers


def test_a_timer_is_refused_before_its_deadline_and_stale_after_it() -> None:
    """The deadline is the time of the transition that began it plus its delay (D20)."""
    given = cooling()
    assert given.take(Elapsed("Cooled", 3), 1_499).refused == ("early", "Cooled is due in 1 ms")
    given = given.take(Elapsed("Cooled", 3), 1_500)
    assert given.entity.state is Place.COLD
    assert given.effects == (CancelTimer("Warned", 3), CancelTimer("Swept", 3))
    assert given.entity.running == ()
    assert given.take(Elapsed("Cooled", 3), 1_500).refused == ("stale", "Cooled of generation 3 is not live in Cold")


def test_a_timer_whose_event_stays_is_over_all_the_same() -> None:
    """It happens once in a stay; the others go on."""
    given = cooling().take(Elapsed("Warned", 3), 1_200)
    assert given.entity.state is Place.COOLING
    assert [part.slot for part in given.entity.running] == ["Cooled", "Swept"]
    assert given.take(Elapsed("Warned", 3), 1_300).refused[0] == "stale"
    assert given.take(Elapsed("Cooled", 3), 1_500).effects == (CancelTimer("Swept", 3),)


def test_an_activity_is_no_timer() -> None:
    """A report that an activity's time has come is stale: it has none."""
    assert baking().take(Elapsed("Bake", 2), 9_999).refused == ("stale", "Bake of generation 2 is not live in Baking")


def test_a_timer_of_another_generation_is_stale() -> None:
    """A second stay has timers of its own."""
    assert cooling().take(Elapsed("Cooled", 2), 9_999).refused[0] == "stale"


# Postponed events


def test_a_postponed_event_comes_after_the_next_change_of_state() -> None:
    """It waits without a version, an effect or a transition, and is then taken at the time of the change (D14)."""
    given = baking().take(Knocked(), 1_100)
    assert isinstance(given.answer, Advance)
    assert (given.answer.transitions, given.effects, given.entity.version) == ((), (), 2)
    assert [waiting.event for waiting in given.entity.postponed] == [Knocked()]
    given = given.take(Stirred(), 1_150, "Bake", 2)
    assert len(given.entity.postponed) == 1
    given = given.take(Baked(), 1_200, "Bake", 2)
    assert isinstance(given.answer, Advance)
    assert [type(step.event) for step in given.answer.transitions] == [Baked, Knocked]
    assert [step.at_ms for step in given.answer.transitions] == [1_200, 1_200]
    assert (given.entity.state, given.entity.record.visitors, given.entity.postponed) == (Place.COLD, 1, ())
    assert {type(effect) for effect in given.effects} == {Ring, StartTimer, CancelTimer}


def test_postponed_events_come_in_their_order() -> None:
    """Each in the state that the one before it led to."""
    given = baking().take(Knocked()).take(Knocked()).take(Doused())
    assert isinstance(given.answer, Advance)
    assert given.answer.refusals == ()
    assert given.entity.record.visitors == 2
    assert [step.after.version for step in given.answer.transitions] == [3, 4, 5]


def test_a_postponed_event_that_nobody_takes_any_more_is_refused_with_the_input_that_changed_the_state() -> None:
    """It is not lost silently: its refusal is part of what the input came to."""
    given = baking().take(Knocked()).take(Scrapped())
    assert isinstance(given.answer, Advance)
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
    assert isinstance(given.answer, Advance)
    assert [(type(step.event), step.after.state) for step in given.answer.transitions] == [
        (Next, Step3.TWO),
        (Jump, Step3.THREE),
        (Later, Step3.ONE),
    ]
    assert [waiting.event for waiting in given.entity.postponed] == [Later()]


def test_what_waits_again_in_the_new_state_waits() -> None:
    """A change of state that helps nobody keeps everybody in order."""
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
    assert isinstance(given.answer, Advance)
    assert [refusal.kind for refusal in given.answer.refusals] == ["stale"]
    assert given.entity.state is Step3.TWO


# Recovery


def test_after_a_crash_everything_that_goes_on_is_asked_for_again() -> None:
    """A live activity is adopted or begun anew, an ending one is ended again; nothing else changes."""
    given = baking()
    before = given.entity
    given = given.take(Recovered(50), 5_000)
    assert given.effects == (Begin("Bake", Bake(200), 2, resumed=True),)
    assert given.entity == before
    given = given.take(Doused()).take(Lit(300))
    before = given.entity
    given = given.take(Recovered(50), 6_000)
    assert given.effects == (End("Bake", 2),)
    assert given.entity == before
    assert isinstance(given.answer, Advance)
    assert given.answer.transitions == ()


def test_after_a_crash_a_served_activity_is_still_the_rules_own() -> None:
    """No interpreter is asked for it."""
    assert Given(of=machine.serving("Bake")).take(Lit()).take(Recovered(50), 5_000).effects == ()


def test_after_a_crash_a_timer_keeps_its_deadline_pauses_or_starts_again() -> None:
    """The three policies: ``deadline``, ``remaining`` (the time without a runner does not count), ``restart``."""
    given = cooling().take(Recovered(100), 1_150)
    assert given.effects == (
        StartTimer("Cooled", 350, 3, 1_500),
        StartTimer("Warned", 150, 3, 1_300),
        StartTimer("Swept", 300, 3, 1_450),
    )
    assert [part.deadline_ms for part in given.entity.running] == [1_500, 1_300, 1_450]
    assert given.take(Elapsed("Warned", 3), 1_299).refused[0] == "early"
    assert isinstance(given.take(Elapsed("Warned", 3), 1_300).answer, Advance)


def test_a_deadline_that_passed_while_nobody_ran_is_due_at_once() -> None:
    """The remaining delay is never negative."""
    assert cooling().take(Recovered(9_000), 10_000).effects[0] == StartTimer("Cooled", 0, 3, 1_500)


def test_recovering_twice_asks_twice_for_the_same() -> None:
    """The generations are the same, so that whoever is asked can tell."""
    given = baking().take(Recovered(50), 5_000)
    first = given.effects
    assert given.take(Recovered(50), 6_000).effects == first


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
