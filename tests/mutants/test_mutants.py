"""Mutants of the shipped lifecycles are found; the page has their numbers. `make mutants` tries all of them."""

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
"""Mutants of lifecycles with more states are not tried here: they take too long."""

EACH = 7
"""One in so many mutants of a lifecycle is tried, beginning with the first."""

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
    """Return a machine with these rows and no properties."""
    return Machine("lamp", Lamp(), rows=rows, final={Light.GONE})


@pytest.mark.parametrize("name", [name for name, each in RESULTS.items() if each.states <= SMALL_STATES])
def test_no_mutant_of_a_small_lifecycle_goes_unnoticed(name: str) -> None:
    """Each is refused, killed or equivalent, or the page lists it."""
    campaign = Campaign(name)
    assert len(campaign.mutants) == RESULTS[name].mutants
    listed = {each.mutant for each in RESULTS[name].survivors}
    left = {Fate.UNDETECTED, Fate.SURVIVED}
    assert {each.mutant.name for each in campaign.run(slice(None, None, EACH)) if each.fate in left} <= listed


def test_the_page_begins_with_what_the_campaign_has_found() -> None:
    """Its lifecycles are shipped and have no survivor without a reason. The rules of the fleet follow."""
    assert PAGE.read_text().startswith(page(kept()))
    assert machines().keys() >= RESULTS.keys()
    assert not any(each.unexplained() for each in RESULTS.values())


def test_a_machine_that_differs_in_unreachable_states_only_is_equivalent() -> None:
    """An accepted event without a change counts as a refused one."""
    table = Tabulated(lamp(*ROWS), Bounds())
    assert table.is_equivalent(lamp(*ROWS[:2], row(Light.OFF, Dimmed, Light.OFF), ROWS[3]))
    assert not table.is_equivalent(lamp(ROWS[0], row(Light.ON, Turned, Light.ON), *ROWS[2:]))


def test_a_machine_with_additional_refusals_only_refuses_more() -> None:
    """Its other outcomes are those of the original."""
    table = Tabulated(lamp(*ROWS), Bounds())
    assert table.refuses_more(lamp(ROWS[0], *ROWS[2:]))
    assert not table.refuses_more(lamp(ROWS[0], row(Light.ON, Turned, Light.ON), *ROWS[2:]))


def test_an_action_that_raises_in_a_reachable_state_is_not_equivalent() -> None:
    """The comparison does not stop at the error."""

    def fails(_lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
        raise LookupError

    table = Tabulated(lamp(*ROWS), Bounds())
    assert not table.is_equivalent(lamp(replace(ROWS[0], action=fails), *ROWS[1:]))


def test_a_guard_without_limits_is_off_by_one_in_the_numbers_that_it_reads() -> None:
    """The limit is equal in every state and so a threshold; the count is not."""
    made = lamp(row(Light.OFF, Turned, Light.ON, turn, when=may_turn), row(Light.ON, Dimmed, Light.OFF), ROWS[3])
    named = [each.name for each in mutants(Tabulated(made, Bounds())) if each.kind == "threshold off by one"]
    assert [name.partition(": ")[2] for name in named] == [
        "its guard sees most one higher",
        "its guard sees most one lower",
    ]


def test_every_mutant_has_a_unique_name() -> None:
    """Even where two rows look alike."""

    def may_turn_again(lamp: Lamp, _event: Turned) -> bool:
        return lamp.turns > 0

    may_turn_again.__name__ = may_turn.__name__
    guarded = [row(Light.ON, Turned, Light.OFF, when=each) for each in (may_turn, may_turn_again)]
    made = mutants(Tabulated(lamp(row(Light.OFF, Turned, Light.ON, turn), *guarded, *ROWS[1:]), Bounds(depth=9)))
    assert len({each.name for each in made}) == len(made)
    assert {"row lost", "target swapped", "rows swapped", "guard lost"} <= {each.kind for each in made}


def test_a_profile_has_mutants_of_its_own_parts_only() -> None:
    """Parts of its base are mutated in the base."""
    base = lamp(*ROWS)
    dimmer = base.with_rows(row(Light.OFF, Dimmed, Light.OFF))
    named = [each.name for each in mutants(Tabulated(dimmer, Bounds()), base)]
    assert named
    assert all(name.startswith("row(Off, Dimmed, Off)") for name in named)
