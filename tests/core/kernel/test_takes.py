"""``accepts`` is evaluated on the machine's own table, in every profile."""

from typing import Any

import pytest

from lifefold.core.kernel import (
    ANY,
    Entity,
    Event,
    Machine,
    Pattern,
    Property,
    Record,
    Refusal,
    State,
    accepts,
    alone,
    react,
    row,
)


class Bell(State):
    QUIET = "Quiet"
    RINGING = "Ringing"


class Pulled(Event, frozen=True):
    """The rope is pulled."""

    times: int = 1

    @classmethod
    def examples(cls) -> tuple["Pulled", ...]:
        return cls(1), cls(2)


class Hushed(Event, frozen=True):
    """The bell is held."""


class Tower(Record, frozen=True):
    state: Bell = Bell.QUIET


def once(_t: Tower, e: Pulled) -> bool:
    """It was pulled once."""
    return e.times == 1


TWICE = Pattern(Pulled, "twice", lambda e: e.times == 2)


def bell(*properties: Property[Any]) -> Machine[Tower]:
    return Machine(
        "bell",
        Tower(),
        rows=(row(Bell.QUIET, Pulled, Bell.RINGING, when=once), row(Bell.RINGING, Hushed, Bell.QUIET)),
        postpone={Bell.RINGING: (Pulled,)},
        properties=properties,
    )


def entities(machine: Machine[Tower]) -> list[Entity[Tower]]:
    """Return it as it begins, and as it rings."""
    system, opening = alone(machine)
    of = system.type_of(machine.name)
    begun = react(of, of.start(machine.name), opening[machine.name])
    assert not isinstance(begun, Refusal)
    quiet: Entity[Tower] = begun.aggregate.entities[machine.name]
    return [quiet, Entity(quiet.ref, Tower(Bell.RINGING))]


CASES: list[tuple[dict[Any, Any], list[bool]]] = [
    ({Bell.QUIET: (Pulled,)}, [True, True]),
    ({Bell.QUIET: (TWICE,)}, [False, True]),
    ({Bell.QUIET: (Hushed,)}, [False, True]),
    ({Bell.RINGING: (Hushed, Pulled)}, [True, True]),
    ({ANY: (Pulled,)}, [True, True]),
    ({ANY: (Hushed,)}, [False, True]),
    ({(Bell.QUIET, Bell.RINGING): (Hushed,), Bell.RINGING: (TWICE,)}, [False, True]),
]


@pytest.mark.parametrize(("events", "held"), CASES)
def test_a_state_accepts_the_events_of_its_rows_and_its_postponed_events(
    events: dict[Any, Any], held: list[bool]
) -> None:
    """One example of each event suffices; a pattern needs its own variant; a postponed event is accepted."""
    machine = bell(accepts("it is heard", events))
    (declared,) = machine.properties
    assert [declared.holds(entity) for entity in entities(machine)] == held


def test_accepts_can_be_restricted_to_some_entities() -> None:
    """``when`` restricts the property to some entities; it is evaluated on these as usual."""
    quiet, ringing = entities(bell())
    machine = bell(accepts("it can be held", {ANY: (Hushed,)}, when=lambda e: e.state is Bell.RINGING))
    other = bell(accepts("it can be held", {ANY: (Hushed,)}, when=lambda e: e.state is Bell.QUIET))
    (kept,), (broken,) = machine.properties, other.properties
    assert [kept.holds(quiet), kept.holds(ringing)] == [True, True]
    assert [broken.holds(quiet), broken.holds(ringing)] == [False, True]


def test_a_profile_is_checked_with_its_own_table() -> None:
    """The property follows the machine into the profile, and reads the profile's table."""
    machine = bell(accepts("it can be held", {Bell.QUIET: (Hushed,)}))
    patient = machine.with_rows(row(Bell.QUIET, Hushed, Bell.QUIET), name="patient")
    (before,), (after,) = machine.properties, patient.properties
    assert not before.holds(entities(machine)[0])
    assert after.holds(entities(patient)[0])


def test_accepts_is_a_property_of_machines_only() -> None:
    """Without a machine there is no table to evaluate it on."""
    with pytest.raises(TypeError, match="a property of a machine"):
        accepts("it is heard", {ANY: (Pulled,)}).holds(entities(bell())[0])
