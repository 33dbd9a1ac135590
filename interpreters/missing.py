"""What a system asks for, and the refusal to begin of whoever performs it and has no handler for some of it."""

from lifefold.core.kernel import Does, System
from lifefold.effects import Activity, Effect


class MissingHandlersError(Exception):
    """What is to be served asks for more than there are handlers for; the message names all that have none."""


def wanted(system: System) -> tuple[set[type[Effect]], set[type[Activity]]]:
    """Return the types of effects and of activities that the system's machines can ask an interpreter for."""
    machines = [machine for aggregate in system.aggregates.values() for machine in aggregate.machines.values()]
    effects = {effect for machine in machines for row in machine.rows for effect in row.effects}
    activities = {
        span.during.activity
        for machine in machines
        for slot, span in machine.spans.items()
        if isinstance(span.during, Does) and slot not in machine.served
    }
    return effects, activities
