"""Writes docs/fleet/wiring.md: for each event the rules that answer it, and for each rule what it leads to.

Run by ``make pages``. With ``--search`` it first simulates small fleets without each rule, which takes minutes, and
notes the first broken property in ``lost_rules.json`` beside this file.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lifefold.core import fleet
from lifefold.core.kernel import System
from lifefold.interpreters import views
from lifefold.interpreters.simulate import Found, simulate
from lifefold.interpreters.targets.fleet_plans import KINDS
from lifefold.interpreters.targets.simulation_targets import fleet_of
from lifefold.interpreters.targets.target import Target
from lifefold.interpreters.views.wiring import Lead, Wire, wiring

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = Path(__file__).parent / "fleet" / "wiring.md"
DATA: Final = Path(__file__).with_name("lost_rules.json")
SEEDS: Final = 8
"""The seeds of each small fleet that are tried without a rule."""

sys.path.insert(0, str(ROOT / "tests" / "support"))
from lost_rules import without  # noqa: E402 - it is found there only

HEAD: Final = """# How the fleet is wired

`make pages` writes this page from the declared rules, as `lifefold diagram fleet` draws them. An aggregate shows each
transition of its machines to its rules. A rule answers with events for other machines, with new entities, or with
messages. Triggers are declared. What a rule leads to is read from its source: all events that the rule and its
functions construct.

Rules run in the order of their numbers. The words are in the [glossary](../glossary.md).

## Picture

Thick arrows are messages to another aggregate. Each arrow has the names of its rules.

"""

PROPERTIES_HEAD: Final = """
The column *without it* names the first property that simulations find broken when the rule is missing. They are
fleets of {kinds} kinds with {seeds} seeds each. Without an entry they find none: see [mutants](../mutants.md) for the
checks, which are more thorough.
"""


def page() -> str:
    """Return the page."""
    return "".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    yield f"```mermaid\n{views.draw(fleet.system)}```\n"
    yield PROPERTIES_HEAD.format(kinds=len(KINDS), seeds=SEEDS)
    lost = json.loads(DATA.read_text())
    wires = wiring(fleet.system)
    for kind, of in fleet.system.aggregates.items():
        yield f"\n## {kind.capitalize()}\n"
        numbered = dict(enumerate((w for w in wires if w.kind == kind), 1))
        for name, machine in of.machines.items():
            found = {number: wire for number, wire in numbered.items() if wire.rule.on == name}
            yield f"\n### {kind}: {name}\n\n{machine.about[0].upper()}{machine.about[1:]}.\n"
            yield from _events(found)
            yield from _rules(found, lost)


def _events(wires: dict[int, Wire]) -> Iterator[str]:
    """Yield the events of a machine with the rules that they can trigger, and the rules that see every transition."""
    if not wires:
        yield "\nNo rule is on this machine.\n"
        return
    every = [number for number, wire in wires.items() if wire.is_unconditional]
    if every:
        yield f"\nAfter every transition: {_named(every, wires)}.\n"
    rows: dict[str, list[int]] = {}
    for number, wire in wires.items():
        for event in () if wire.is_unconditional else wire.events:
            rows.setdefault(event, []).append(number)
    if rows:
        yield "\n| event | rules |\n| --- | --- |\n"
        yield from (f"| `{event}` | {_named(numbers, wires)} |\n" for event, numbers in sorted(rows.items()))


def _named(numbers: list[int], wires: dict[int, Wire]) -> str:
    return ", ".join(f"{number} `{wires[number].rule.name}`" for number in numbers)


def _rules(wires: dict[int, Wire], lost: dict[str, Any]) -> Iterator[str]:
    if wires:
        yield "\n| | rule | trigger | leads to | without it |\n| ---: | --- | --- | --- | --- |\n"
    for number, wire in wires.items():
        rule = f"[{wire.rule.name}]({_source(wire)})"
        broken = lost.get(f"{wire.kind}: {wire.rule.name}")
        yield f"| {number} | {rule} | {wire.trigger} | {_targets(wire)} | {broken['property'] if broken else ''} |\n"


def _source(wire: Wire) -> str:
    path = Path(inspect.getsourcefile(wire.rule.follow) or "").relative_to(ROOT)
    return f"../../{path.as_posix()}"


def _targets(wire: Wire) -> str:
    """Return the events of a rule by their machines; machines of other aggregates have the kind before them."""
    found: dict[str, list[str]] = {}
    for lead in wire.leads:
        found.setdefault(_machine(wire, lead), []).append(lead.event)
    return "; ".join(f"{machine}: {', '.join(events)}" for machine, events in found.items())


def _machine(wire: Wire, lead: Lead) -> str:
    if not lead.machine:
        return f"**{lead.kind}**"
    return lead.machine if lead.kind == wire.kind else f"**{lead.kind}** {lead.machine}"


def search() -> dict[str, dict[str, Any]]:
    """Return for each rule the first broken property of a fleet without it, with the fleet and the seed."""
    targets = [fleet_of(3, 9, kind=kind) for kind in KINDS]
    found: dict[str, dict[str, Any]] = {}
    for kind, of in fleet.system.aggregates.items():
        for name in dict.fromkeys(each.name for each in of.rules):
            first = next(_broken(without(name, kind), targets), None)
            if first is not None:
                found[f"{kind}: {name}"] = first
    return found


def _broken(system: System, targets: list[Target]) -> Iterator[dict[str, Any]]:
    for seed in range(SEEDS):
        for target in targets:
            broken = simulated(system, target, seed)
            if broken is not None:
                yield {"fleet": target.name, "seed": seed, "owner": broken.owner, "property": broken.prop}


def simulated(system: System, target: Target, seed: int) -> Found | None:
    """Return the broken property of a system that begins as a target does, if there is one."""
    return simulate(system, opening=target.opening, environment=target.environment, seed=seed).found


if __name__ == "__main__":
    if "--search" in sys.argv:
        DATA.write_text(json.dumps(search(), indent=2) + "\n")
    PAGE.write_text(page())
