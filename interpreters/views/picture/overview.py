"""A system as a drawing: a frame for each type of aggregate with its machines, and the rules as arrows between them.

An arrow leads from the machine whose transitions trigger a rule to a machine that the rule has an event for. It names
the rules. Messages to other aggregates have a colour of their own. ``wiring`` finds both ends.
"""

from lifefold.core.kernel import AggregateType, System
from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group, Tint
from lifefold.interpreters.views.wiring import Lead, wiring

_MESSAGE_FILL = "#b7791f"


def overview(system: System) -> Drawing:
    """Return the system."""
    rules: dict[tuple[str, str], dict[str, list[str]]] = {}
    messages: set[tuple[str, str]] = set()
    for wire in wiring(system):
        for lead in wire.leads:
            arrow = (f"{wire.kind} {wire.rule.on}", _key(lead))
            rules.setdefault(arrow, {}).setdefault(wire.rule.name, []).append(lead.event)
            if lead.kind != wire.kind:
                messages.add(arrow)
    arrows = tuple(
        Arrow(
            *arrow,
            tuple(name.replace("_", " ") for name in named),
            Tint.HERE if arrow in messages else Tint.PLAIN,
            "; ".join(f"{name}: {', '.join(events)}" for name, events in named.items()),
        )
        for arrow, named in rules.items()
    )
    opened = {lead.kind for wire in wiring(system) for lead in wire.leads if not lead.machine}
    groups = tuple(_group(of, is_opened=of.kind in opened) for of in system.aggregates.values())
    legend = (("a message to another aggregate", _MESSAGE_FILL),) if messages else ()
    return Drawing(system.name, (), arrows, groups, sideways=True, legend=legend)


def _key(lead: Lead) -> str:
    return f"{lead.kind} {lead.machine or '(new)'}"


def _group(of: AggregateType, *, is_opened: bool) -> Group:
    boxes: list[Box] = []
    for name, machine in of.machines.items():
        rows = f"{len(machine.rows)} row{'s' if len(machine.rows) > 1 else ''}"
        counts = f"{len(machine.states)} states, {rows}"
        boxes.append(Box(f"{of.kind} {name}", (name, counts), hint=machine.about))
    if is_opened:
        boxes.append(Box(f"{of.kind} (new)", (f"a new {of.kind}",), loose=True))
    return Group(of.kind, (of.kind,), tuple(boxes))
