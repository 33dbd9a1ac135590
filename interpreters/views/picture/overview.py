"""A system as a drawing: a frame for each type of aggregate, its machines in it, and the rules between them.

The targets of a rule's actions are decided when it runs. So an arrow leads from the machine of a rule to the rule, and
none from there.
"""

from lifefold.core.kernel import AggregateType, System
from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group


def overview(system: System) -> Drawing:
    """Return the system."""
    groups = tuple(_group(of) for of in system.aggregates.values())
    arrows = tuple(
        Arrow(f"{of.kind} {name}", f"{of.kind} {name} rules")
        for of in system.aggregates.values()
        for name in of.machines
        if of.rules_on(name)
    )
    return Drawing(system.name, (), arrows, groups, sideways=True)


def _group(of: AggregateType) -> Group:
    boxes: list[Box] = []
    for name, machine in of.machines.items():
        counts = f"{len(machine.states)} states, {len(machine.rows)} rows"
        boxes.append(Box(f"{of.kind} {name}", (name, counts), hint=machine.about))
        rules = tuple(rule.name.replace("_", " ") for rule in of.rules_on(name))
        if rules:
            boxes.append(Box(f"{of.kind} {name} rules", ("rules", *rules), loose=True))
    return Group(of.kind, (of.kind,), tuple(boxes))
