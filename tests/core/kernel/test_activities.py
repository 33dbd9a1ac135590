"""Activities: begun once, over by their own report, or ended and confirmed."""

import pytest

from lifefold.core.kernel import (
    ActivityEnded,
    EntityStep,
    Phase,
    Running,
    TimerFired,
    after,
    does,
)
from lifefold.effects import Activity, Begin, CancelTimer, End, StartTimer
from oven import Bake, Baked, Cooled, Doused, Lit, Oven, Place, Ring, Stirred, Warned, machine
from oven_life import Given, baking, cooling


def test_leaving_the_states_of_an_activity_asks_for_its_end_until_it_is_confirmed() -> None:
    """LIVE, then ENDING, then nothing; the confirmation is a transition that enters no state."""
    given = baking().take(Doused())
    assert given.effects == (End("Bake", 2),)
    assert given.entity.running == (Running("Bake", 2, Bake(200), 0, Phase.ENDING),)
    given = given.take(ActivityEnded("Bake", 2), 2_000)
    assert given.entity.running == ()
    assert given.effects == ()
    assert isinstance(given.answer, EntityStep)
    (confirmed,) = given.answer.transitions
    assert (confirmed.event, confirmed.entered, given.entity.version) == (ActivityEnded("Bake", 2), None, 4)


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


class Watch(Activity, frozen=True):
    """Stand beside it."""


def bake(oven: Oven) -> Bake:
    return Bake(oven.degrees)


def watch(_oven: Oven) -> Watch:
    return Watch()


BAKES = does(bake, yields=Stirred, last=Baked)


def test_a_last_event_from_elsewhere_asks_for_the_end_of_the_activity() -> None:
    """The activity has not said that it is over, so its end is asked for, and confirmed, like any other."""
    given = baking().take(Baked())
    assert given.entity.state is Place.COOLING
    assert End("Bake", 2) in given.effects
    assert given.entity.find("Bake", Phase.ENDING) == Running("Bake", 2, Bake(200), 0, Phase.ENDING)
    assert given.take(ActivityEnded("Bake", 2)).entity.find("Bake", Phase.ENDING) is None


def test_a_time_out_with_an_activitys_last_event_ends_the_activity() -> None:
    """The timer is over by itself; the activity is not, whatever its event is called."""
    limited = machine.with_rows(during={Place.BAKING: (BAKES, after(900, Baked))})
    given = Given(of=limited).take(Lit()).take(TimerFired("Baked", 2), 1_900)
    assert End("Bake", 2) in given.effects
    assert CancelTimer("Baked", 2) not in given.effects
    assert given.entity.find("Baked") is None
    assert given.entity.find("Bake", Phase.ENDING) is not None


def test_an_activity_that_is_over_cancels_a_timer_with_the_same_event() -> None:
    """The timer would come in vain."""
    limited = machine.with_rows(during={Place.BAKING: (BAKES, after(900, Baked))})
    given = Given(of=limited).take(Lit()).take(Baked(), 1_100, "Bake", 2)
    assert CancelTimer("Baked", 2) in given.effects
    assert {part.slot for part in given.entity.running} == {"Cooled", "Warned", "Swept"}


def test_of_two_activities_with_one_last_event_the_one_that_did_not_say_it_is_ended() -> None:
    """Each is over only by its own word."""
    shared = machine.with_rows(during={Place.BAKING: (BAKES, does(watch, last=Baked))})
    given = Given(of=shared).take(Lit()).take(Baked(), 1_100, "Watch", 2)
    assert End("Bake", 2) in given.effects
    assert End("Watch", 2) not in given.effects
    assert given.entity.find("Watch") is None
    assert given.entity.find("Bake", Phase.ENDING) is not None


def test_a_last_event_from_elsewhere_lets_nothing_wait_that_will_not_begin() -> None:
    """What only waited in the slot is forgotten; it would begin in a state that does not declare it."""
    given = baking().take(Doused()).take(Lit(300)).take(Baked())
    assert [part for part in given.entity.running if part.slot == "Bake"] == [
        Running("Bake", 2, Bake(200), 0, Phase.ENDING)
    ]
    assert given.take(ActivityEnded("Bake", 2)).effects == ()


def test_a_timers_event_from_another_sender_cancels_the_timer() -> None:
    """Leaving its states; where the state stays, the timer goes on, and happens in its time."""
    given = cooling().take(Warned(), 1_100)
    assert given.effects == ()
    assert given.entity.find("Warned") is not None
    given = given.take(Cooled(), 1_200)
    assert given.effects == (CancelTimer("Warned", 3), CancelTimer("Swept", 3), CancelTimer("Cooled", 3))
    assert given.entity.running == ()
    assert given.take(TimerFired("Cooled", 3), 1_500).refused[0] == "stale"


def test_a_served_activity_is_over_with_its_last_event_from_any_sender() -> None:
    """The rules themselves end it, and no envelope has its slot."""
    served = Given(of=machine.serving("Bake"))
    for loaf in range(1, 4):
        served = served.take(Lit()).take(Baked())
        assert served.effects[0] == Ring(loaf)
        assert served.entity.find("Bake") is None
        cooled = served.entity.find("Cooled")
        assert cooled is not None
        served = served.take(TimerFired("Cooled", cooled.generation), cooled.deadline_ms)
    assert served.entity.running == ()


def test_an_activity_begins_only_when_the_one_before_it_is_confirmed_gone() -> None:
    """WAITING keeps its own generation; the confirmation begins it (D13)."""
    given = baking().take(Doused()).take(Lit(300))
    assert given.effects == ()
    assert given.entity.running == (
        Running("Bake", 2, Bake(200), 0, Phase.ENDING),
        Running("Bake", 4, Bake(300), 0, Phase.WAITING),
    )
    given = given.take(ActivityEnded("Bake", 2))
    assert given.effects == (Begin("Bake", Bake(300), 4),)
    assert given.entity.running == (Running("Bake", 4, Bake(300)),)


def test_an_activity_that_only_waited_is_forgotten() -> None:
    """It never began, so there is nothing to end; the one before it is still to be confirmed."""
    given = baking().take(Doused()).take(Lit()).take(Doused())
    assert given.effects == ()
    assert given.entity.running == (Running("Bake", 2, Bake(200), 0, Phase.ENDING),)
    given = given.take(ActivityEnded("Bake", 2))
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
    """Any other event in its name is refused, although the table accepts it from other senders."""
    assert baking().take(Doused(), slot="Bake", generation=2).refused == (
        "unsolicited",
        "Bake does not yield Doused",
    )
    assert isinstance(baking().take(Doused()).answer, EntityStep)


def test_a_timers_event_in_the_timers_name_does_not_get_around_its_deadline() -> None:
    """A timer says only that its time has come (D20)."""
    assert cooling().take(Cooled(), 1_001, "Cooled", 3).refused == ("unsolicited", "Cooled does not yield Cooled")


@pytest.mark.parametrize(
    "event",
    [ActivityEnded("Bake", 2), ActivityEnded("Bake", 9), ActivityEnded("Cooled", 2)],
    ids=["live", "unknown", "other"],
)
def test_a_confirmation_of_what_is_not_ending_is_stale(event: ActivityEnded) -> None:
    """Only what was asked to end can be confirmed, and once."""
    assert baking().take(event).refused[0] == "stale"
    assert baking().take(Doused()).take(ActivityEnded("Bake", 2)).take(ActivityEnded("Bake", 2)).refused[0] == "stale"
