"""What a machine properties to take is asked of its own table, whichever profile it is in."""

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
    """Somebody pulls the rope."""

    times: int = 1

    @classmethod
    def examples(cls) -> tuple["Pulled", ...]:
        return cls(1), cls(2)


class Hushed(Event, frozen=True):
    """Somebody holds it."""


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
def test_a_state_takes_what_one_of_its_rows_or_its_queue_takes(events: dict[Any, Any], held: list[bool]) -> None:
    """Of each event one example suffices; a pattern asks for its own variant; what waits is taken."""
    machine = bell(accepts("it is heard", events))
    (declared,) = machine.properties
    assert [declared.holds(entity) for entity in entities(machine)] == held


def test_what_is_taken_can_be_declared_of_some_only() -> None:
    """Of those that it is not promised of, nothing is asked; of the others it is asked as ever."""
    quiet, ringing = entities(bell())
    machine = bell(accepts("it can be held", {ANY: (Hushed,)}, when=lambda e: e.state is Bell.RINGING))
    other = bell(accepts("it can be held", {ANY: (Hushed,)}, when=lambda e: e.state is Bell.QUIET))
    (kept,), (broken,) = machine.properties, other.properties
    assert [kept.holds(quiet), kept.holds(ringing)] == [True, True]
    assert [broken.holds(quiet), broken.holds(ringing)] == [False, True]


def test_a_profile_is_held_to_what_its_own_table_takes() -> None:
    """The property goes along with the machine, and asks the machine that it is a property of."""
    machine = bell(accepts("it can be held", {Bell.QUIET: (Hushed,)}))
    patient = machine.with_rows(row(Bell.QUIET, Hushed, Bell.QUIET), name="patient")
    (before,), (after,) = machine.properties, patient.properties
    assert not before.holds(entities(machine)[0])
    assert after.holds(entities(patient)[0])


def test_only_a_machine_can_property_what_it_takes() -> None:
    """Asked of nobody's table, there is no answer."""
    with pytest.raises(TypeError, match="of a machine only"):
        accepts("it is heard", {ANY: (Pulled,)}).holds(entities(bell())[0])
