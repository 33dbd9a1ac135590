"""The properties that are derived from a table hold its profiles to it; a mistake in the table breaks none of them."""

from typing import Any, Final

import pytest

from lifefold.core.kernel import ANY, STAY, Event, Machine, Property, Record, Row, State, replace, row
from lifefold.core.lifecycles.property_forms import ACCEPTS, LEADS, follows_table, goes_along, with_own_table
from lifefold.interpreters.check import check


class Light(State):
    OFF = "Off"
    ON = "On"
    GONE = "Gone"


class Turned(Event, frozen=True):
    pass


class Dimmed(Event, frozen=True):
    pass


class Burnt(Event, frozen=True):
    pass


class Lamp(Record, frozen=True):
    state: Light = Light.OFF


def never(_lamp: Lamp, _event: Event) -> bool:
    return False


ROWS: Final[tuple[Row[Lamp], ...]] = (
    row(Light.OFF, Turned, Light.ON),
    row(Light.ON, Turned, Light.OFF),
    row(Light.ON, Dimmed, STAY),
    row(ANY, Burnt, Light.GONE),
)


def lamp(*properties: Property[Any]) -> Machine[Any]:
    """Return the lamp with these properties."""
    return Machine("lamp", Lamp(), rows=ROWS, properties=properties, final={Light.GONE}, rests=lambda _lamp: True)


def broken(machine: Machine[Any]) -> set[str]:
    return {each.name for each in check(machine).broken()}


ELSEWHERE: Final[tuple[tuple[Row[Lamp], set[str]], ...]] = (
    (row(Light.ON, Turned, Light.GONE), {LEADS}),
    (row(Light.ON, Dimmed, Light.OFF), {LEADS}),
    (row(Light.OFF, Dimmed, Light.ON), {LEADS}),
    (row(Light.OFF, Dimmed, STAY), set()),
)


@pytest.mark.parametrize(("profile", "names"), ELSEWHERE, ids=str)
def test_a_profile_whose_events_lead_elsewhere_breaks_the_table(profile: Row[Lamp], names: set[str]) -> None:
    """In a state of the table an event leads to its targets there, in another one to any of its targets."""
    base = lamp(*follows_table(ROWS))
    assert broken(base) == set()
    assert broken(base.replacing(profile, name="profile")) == names


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_profile_that_refuses_an_event_of_the_table_breaks_it(place: int) -> None:
    """Unless its guard or its event is one that may refuse all examples."""
    refused = ROWS[place]
    guarded = replace(refused, when=never)
    assert broken(lamp(*follows_table(ROWS)).replacing(guarded, name="profile")) == {ACCEPTS}
    assert broken(lamp(*follows_table(ROWS, but=(refused.event,))).replacing(guarded, name="profile")) == set()
    itself = follows_table((*ROWS[:place], guarded, *ROWS[place + 1 :]), but=(never,))
    assert broken(lamp(*itself).replacing(guarded, name="profile")) == set()


@pytest.mark.no_cover
def test_steps_for_which_another_condition_holds_may_lead_elsewhere() -> None:
    """A report that is only kept, for instance."""
    base = lamp(*follows_table(ROWS, unless=lambda step: step.entered is None))
    assert broken(base.replacing(row(Light.ON, Turned, STAY), name="profile")) == set()


@pytest.mark.no_cover
def test_a_profile_can_follow_its_own_table_instead() -> None:
    """It gives up the base's two properties, and has those of its own rows."""
    profile = lamp(*follows_table(ROWS)).replacing(row(Light.ON, Turned, Light.GONE), name="profile")
    assert broken(profile) == {LEADS}
    assert broken(with_own_table(profile)) == set()
    assert [each.name for each in with_own_table(profile).properties] == [LEADS, ACCEPTS]


@pytest.mark.no_cover
def test_a_change_of_state_that_is_no_edge_is_found_whatever_its_event() -> None:
    """The rows of one interface are the edges of another one."""
    assert broken(lamp(goes_along("along", ROWS[:3]))) == {"along"}
    burns: Row[Lamp] = row((Light.OFF, Light.ON), Burnt, Light.GONE)
    assert broken(lamp(goes_along("along", (*ROWS[:3], burns)))) == set()
