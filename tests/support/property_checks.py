"""Checks for tests of properties: one that must find nothing, and mutants of machines that must break a property."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lifefold.core.kernel import Machine, Property, PropertyKind, Row, create, replace
from lifefold.interpreters.check import Bounds, check

NEAREST_STATES: Final = 100
"""How many states are looked at first for a mistake: most break their property near the beginning."""

SOME_STATES: Final = 1_500
"""How many states are looked at for a mistake, which may make what was finite infinite."""


COMPARED: Final = 300
"""How many states are held against the rules as they are, unless a test says otherwise; certificates have more."""


def keeps(machine: Machine[Any], *properties: Property[Any], bounds: Bounds | None = None) -> tuple[str, ...]:
    """Check all properties of a machine in all of its states; return its unused parts."""
    report = check(machine, properties=properties, bounds=bounds or Bounds(compared=COMPARED))
    assert report.ok, str(report)
    assert not report.truncated
    assert report.walked[0] > 0
    return report.missing


def breaks(machine: Machine[Any], prop: str, within: Mapping[str, Any] | None = None) -> bool:
    """Tell whether a machine does not keep a property: it is looked for in the nearest states, and then in more."""
    return any(prop in _broken(machine, states, within or {}) for states in (NEAREST_STATES, SOME_STATES))


def _broken(machine: Machine[Any], states: int, within: Mapping[str, Any]) -> set[str]:
    bounds = Bounds(states=states, compared=1, within=within)
    return {verdict.name for verdict in check(machine, bounds=bounds).broken()}


def broken_by_birth(machine: Machine[Any]) -> list[str]:
    """Return the properties about steps that do not hold of an entity's first one."""
    [born] = create(machine, machine.name, machine.initial, 0, "test").transitions
    return [
        each.name
        for each in machine.properties
        if each.property_kind is PropertyKind.ALWAYS_STEP and not each.holds(born)
    ]


def changed(machine: Machine[Any], row: str, **parts: Any) -> Machine[Any]:
    """Return a machine in which the rows that print like this, in part, have other parts. There must be one."""
    assert any(row in str(each) for each in machine.rows), [str(each) for each in machine.rows]
    return _with_rows(machine, (replace(each, **parts) if row in str(each) else each for each in machine.rows))


def without_timer(machine: Machine[Any], slot: str) -> Machine[Any]:
    """Return a machine that never starts this timer, or this activity."""
    during = {where: tuple(each for each in parts if each.slot != slot) for where, parts in machine.during.items()}
    return machine._but(during=during)


def never_postponing(machine: Machine[Any]) -> Machine[Any]:
    """Return a machine that postpones nothing."""
    return machine._but(postpone={})


def _with_rows(machine: Machine[Any], rows: Iterable[Row[Any]]) -> Machine[Any]:
    return machine._but(rows=tuple(rows))
