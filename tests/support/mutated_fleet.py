"""Copies of the shipped fleet with other rules, small enough that what never comes is known soon."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.system import fleet_properties
from lifefold.core.kernel import AggregateType, Event, Rule, System, View, replace
from lifefold.core.lifecycles.session import Limits
from lifefold.interpreters.check import check
from lifefold.interpreters.targets.check_targets import named
from mutated import LONGEST, NEAR, way_in

BOARD, WORKER = system.aggregates["board"], system.aggregates["worker"]
LIMITS: Final = Limits(max_consecutive_errors=2, max_total_errors=2)
People = Mapping[str, tuple[type[Event], ...]]
"""What people may say, by the machine that they say it to."""


def plan(agents: int = 1, tasks: int = 1, *, retries: int = 0, chained: bool = False) -> Plan:
    """Return a plan of so many agents and tasks; if chained, each task depends on the one before."""
    return Plan(
        "small",
        tuple(AgentPlan(f"a{n}", LIMITS) for n in range(agents)),
        tuple(
            TaskPlan(f"T{n}", "do it", max_retries=retries, depends_on=(f"T{n - 1}",) if chained and n else ())
            for n in range(tasks)
        ),
    )


def but(of: AggregateType, people: People, rules: Iterable[Rule] | None = None, fold: Any = None) -> AggregateType:
    """Return a copy of a type with other rules, and another fold of its view; people say only this to it."""
    said = dict.fromkeys(of.machines, ()) | {name: said for name, said in people.items() if name in of.machines}
    views = of.views
    if fold is not None and "work" in views:
        views = views | {"work": View(views["work"].initial, fold)}
    return AggregateType(
        of.kind,
        machines=of.machines.values(),
        rules=of.rules if rules is None else rules,
        views=views,
        commands=said,
        properties=of.properties,
    )


def without(of: AggregateType, name: str, *instead: Rule, on: str = "") -> list[Rule]:
    """Return the rules of a type without those of a name (``on`` a machine), and others in the place of the first."""
    meant = [each for each in of.rules if each.name == name and on in {"", each.on}]
    place = of.rules.index(meant[0])
    left = [each for each in of.rules if each not in meant]
    return [*left[:place], *instead, *left[place:]]


def way_through(  # noqa: PLR0913 - what can be different, each with its name
    prop: str,
    of: Plan,
    people: People | None = None,
    *,
    board: Iterable[Rule] | None = None,
    worker: Iterable[Rule] | None = None,
    fold: Callable[..., Any] | None = None,
    states: int = NEAR,
    longest: int = LONGEST,
) -> list[str]:
    """Check a copy of the fleet with other rules; return the way to where it breaks the property with these words."""
    said = people or {}
    copy = System(
        "fleet", but(BOARD, said, board, fold), but(WORKER, said, worker), properties=fleet_properties.PROPERTIES
    )
    bounds = replace(named("fleet").bounds, compared=0, states=states)
    return way_in(check(copy, opening=list(opening(of, 0)), bounds=bounds), prop, longest)
