"""The effects and activities of a system, and the error for those without a handler."""

from lifefold.core.kernel import Does, System
from lifefold.effects import Activity, Effect


class MissingHandlersError(Exception):
    """A system has effects or activities without a handler; the message names all of them."""


def wanted(system: System) -> tuple[set[type[Effect]], set[type[Activity]]]:
    """Return the types of effects and of activities that the system's machines can request."""
    machines = [machine for aggregate in system.aggregates.values() for machine in aggregate.machines.values()]
    effects = {effect for machine in machines for row in machine.rows for effect in row.effects}
    activities = {
        span.during.activity
        for machine in machines
        for slot, span in machine.spans.items()
        if isinstance(span.during, Does) and slot not in machine.served
    }
    return effects, activities
