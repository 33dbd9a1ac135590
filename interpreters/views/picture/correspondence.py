"""The messages of a system as a drawing: which machine's transitions send which events to which other aggregate.

``overview`` has every rule. This drawing has the messages alone, by their events, and leaves out machines that neither
send nor receive one.
"""

from lifefold.core.kernel import System
from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group
from lifefold.interpreters.views.wiring import wiring


def correspondence(system: System) -> Drawing:
    """Return the machines between which messages go, an arrow for each pair, and on it the events."""
    events: dict[tuple[str, str], dict[str, None]] = {}
    rules: dict[tuple[str, str], dict[str, None]] = {}
    boxes: dict[str, dict[str, Box]] = {kind: {} for kind in system.aggregates}
    for wire in wiring(system):
        for lead in wire.leads:
            if lead.kind == wire.kind:
                continue
            machine = lead.machine or f"a new {lead.kind}"
            pair = (f"{wire.kind} {wire.rule.on}", f"{lead.kind} {machine}")
            events.setdefault(pair, {})[lead.event] = None
            rules.setdefault(pair, {})[wire.rule.name] = None
            boxes[wire.kind].setdefault(pair[0], Box(pair[0], (wire.rule.on,)))
            boxes[lead.kind].setdefault(pair[1], Box(pair[1], (machine,), loose=not lead.machine))
    arrows = tuple(Arrow(*pair, tuple(named), hint=", ".join(rules[pair])) for pair, named in events.items())
    groups = tuple(Group(kind, (kind,), tuple(of.values())) for kind, of in boxes.items() if of)
    return Drawing(f"the messages of {system.name}", (), arrows, groups, sideways=True)
