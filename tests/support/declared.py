"""Checks of what machines promise: of those that are shipped, and of those with a mistake planted."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lifefold.core.kernel import Machine, Row, System, replace
from lifefold.interpreters.check import Bounds, Report, check

NEAREST_STATES: Final = (60, 300)
"""How many states of a machine with a mistake are looked at first: most break their property near the beginning."""

STATES: Final = 5_000
"""How many states of a machine with a mistake are looked at, at most: it may have no end of them."""

COMPARED: Final = 300
"""How many states are held against the rules as they are, unless a test says otherwise; certificates have more."""

Mutants = Mapping[str, tuple[str, Callable[[], Machine[Any]]]]
"""By the name of a mistake: words of a property that finds it, and how to make a machine with it."""


def must_hold(target: Machine[Any] | System, bounds: Bounds | None = None, **more: Any) -> Report:
    """Check, and require that everything was looked at and that every property holds, none of them idly."""
    report = check(target, bounds=bounds or Bounds(compared=COMPARED), **more)
    assert not report.truncated, report
    assert report.ok, report
    return report


def instead(machine: Machine[Any], new: Row[Any], when: Callable[..., bool] | None = None) -> Machine[Any]:
    """Return a machine with this row in the place of one with its event, its sources and guard ``when``.

    Without ``when`` it stands for all rows that there are for its event in its sources.
    """

    def is_meant(old: Row[Any]) -> bool:
        shared = machine.sources(old) & machine.sources(new)
        return old.event is new.event and bool(shared) and when in {None, old.when}

    place = next((number for number, old in enumerate(machine.rows) if is_meant(old)), 0)
    rows = list(machine.rows)
    rows.insert(place, new)
    left = [
        each
        if each is new or not is_meant(each)
        else replace(each, sources=machine.sources(each) - machine.sources(new))
        for each in rows
    ]
    return rebuilt(machine, rows=[each for each in left if machine.sources(each)])


def rebuilt(machine: Machine[Any], **changes: Any) -> Machine[Any]:
    """Return a machine with some of its parts changed."""
    parts = {name: getattr(machine, name) for name in _PARTS}
    return Machine(machine.name, **(parts | changes))


_PARTS = (
    "initial", "rows", "final", "during", "postpone", "invariants", "properties", "rests", "detached", "served",
)  # fmt: skip


def must_be_found(mutant: tuple[str, Callable[[], Machine[Any]]], bounds: Bounds | None = None) -> None:
    """Require that a mistake breaks the property that these words are of."""
    words, make = mutant
    must_break(words, make(), bounds or Bounds(states=STATES))


def must_break(words: str, target: Machine[Any] | System, bounds: Bounds, **more: Any) -> None:
    """Require that a property with these words is broken: in the nearest states, or in all within the bounds.

    They are not compared with the graph of what is not renumbered: a mistake in the rules is none of the checker.
    """
    found: tuple[str, ...] = ()
    for states in (*NEAREST_STATES, bounds.states):
        report = check(target, bounds=replace(bounds, states=states, compared=0), **more)
        found = tuple(each.name for each in report.broken())
        if any(words in each for each in found):
            return
    raise AssertionError(f"{words!r} does not find it; broken are {found}")
