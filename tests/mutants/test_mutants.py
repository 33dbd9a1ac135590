"""Mistakes planted in the shipped lifecycles are found; the page says how many. `make mutants` tries all of them."""

from typing import Any, Never

import pytest

from lifefold.core.kernel import Event, Machine, Record, Row, State, Step, replace, row
from lifefold.interpreters.check import Bounds
from lifefold.interpreters.views import machines
from mutation import mutants
from mutation_campaign import Campaign, Fate
from mutation_results import PAGE, kept, page
from tabulated import Tabulated

SMALL_STATES = 60
"""How many states a lifecycle has at most of which mutants are tried here; of the others they would take too long."""

EACH = 7
"""Of how many mutants of such a lifecycle one is tried, beginning with the first."""

RESULTS = {each.machine: each for each in kept()}


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
    turns: int = 0
    most: int = 2


def may_turn(lamp: Lamp, _event: Turned) -> bool:
    return lamp.turns < lamp.most


def turn(lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
    return Step(replace(lamp, turns=lamp.turns + 1))


ROWS: tuple[Row[Lamp], ...] = (
    row(Light.OFF, Turned, Light.ON),
    row(Light.ON, Turned, Light.OFF),
    row(Light.ON, Dimmed, Light.ON),
    row(Light.ON, Burnt, Light.GONE),
)


def lamp(*rows: Row[Lamp]) -> Machine[Any]:
    """Return a machine with these rows, that promises nothing."""
    return Machine("lamp", Lamp(), rows=rows, final={Light.GONE})


@pytest.mark.parametrize("name", [name for name, each in RESULTS.items() if each.states <= SMALL_STATES])
def test_of_a_small_lifecycle_no_mistake_that_is_tried_goes_unnoticed(name: str) -> None:
    """It is refused, or breaks a property, or is none; or is one of those that the page lists."""
    campaign = Campaign(name)
    assert len(campaign.mutants) == RESULTS[name].mutants
    listed = {each.mutant for each in RESULTS[name].survivors}
    left = {Fate.DEAF, Fate.SURVIVED}
    assert {each.mutant.name for each in campaign.run(slice(None, None, EACH)) if each.fate in left} <= listed


def test_the_page_begins_with_what_the_campaign_has_found() -> None:
    """What is on it is shipped, and has no survivor without a reason. Then the rules of the fleet follow."""
    assert PAGE.read_text().startswith(page(kept()))
    assert machines().keys() >= RESULTS.keys()
    assert not any(each.unexplained() for each in RESULTS.values())


def test_a_machine_that_differs_where_nobody_gets_is_the_same() -> None:
    """And one that takes what changes nothing is as good as one that refuses it."""
    table = Tabulated(lamp(*ROWS), Bounds())
    assert table.is_same(lamp(*ROWS[:2], row(Light.OFF, Dimmed, Light.OFF), ROWS[3]))
    assert not table.is_same(lamp(ROWS[0], row(Light.ON, Turned, Light.ON), *ROWS[2:]))


def test_a_machine_that_only_refuses_more_takes_less() -> None:
    """Whatever it does is right."""
    table = Tabulated(lamp(*ROWS), Bounds())
    assert table.takes_less(lamp(ROWS[0], *ROWS[2:]))
    assert not table.takes_less(lamp(ROWS[0], row(Light.ON, Turned, Light.ON), *ROWS[2:]))


def test_what_a_rule_does_where_it_is_not_asked_makes_no_difference_unless_it_is() -> None:
    """A rule that fails is another one."""

    def fails(_lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
        raise LookupError

    table = Tabulated(lamp(*ROWS), Bounds())
    assert not table.is_same(lamp(replace(ROWS[0], action=fails), *ROWS[1:]))


def test_a_guard_without_limits_is_off_by_one_in_what_it_looks_at() -> None:
    """Here that is the limit, for it is the same in every state, and not the count."""
    made = lamp(row(Light.OFF, Turned, Light.ON, turn, when=may_turn), row(Light.ON, Dimmed, Light.OFF), ROWS[3])
    named = [each.name for each in mutants(Tabulated(made, Bounds())) if each.kind == "threshold off by one"]
    assert [name.partition(": ")[2] for name in named] == [
        "its guard sees most one higher",
        "its guard sees most one lower",
    ]


def test_every_mistake_has_a_name_of_its_own() -> None:
    """Also where two rows look alike."""

    def may_turn_again(lamp: Lamp, _event: Turned) -> bool:
        return lamp.turns > 0

    may_turn_again.__name__ = may_turn.__name__
    guarded = [row(Light.ON, Turned, Light.OFF, when=each) for each in (may_turn, may_turn_again)]
    made = mutants(Tabulated(lamp(row(Light.OFF, Turned, Light.ON, turn), *guarded, *ROWS[1:]), Bounds(depth=9)))
    assert len({each.name for each in made}) == len(made)
    assert {"row lost", "target swapped", "rows swapped", "guard lost"} <= {each.kind for each in made}


def test_a_profile_has_the_mistakes_that_are_its_own() -> None:
    """What it has from the other one is mutated there."""
    base = lamp(*ROWS)
    dimmer = base.with_rows(row(Light.OFF, Dimmed, Light.OFF))
    named = [each.name for each in mutants(Tabulated(dimmer, Bounds()), base)]
    assert named
    assert all(name.startswith("row(Off, Dimmed, Off)") for name in named)
