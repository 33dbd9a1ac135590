"""The error of a decision, with the entity, the row or rule, and the event that it came from."""

from typing import Any

from lifefold.core.kernel.entity import Entity, Envelope, TimerFired, Transition
from lifefold.core.kernel.failure import DecisionError
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.record import Event
from lifefold.core.kernel.row import After


def blamed(machine: Machine[Any], entity: Entity[Any], envelope: Envelope, error: Exception) -> DecisionError:
    """Return the error of a guard or an action, with its entity, event and row."""
    event, row = envelope.event, _row_of(machine, entity, envelope.event)
    where = f"{entity.ref} in {entity.state}, {type(event).__name__}{f', {row}' if row else ''}"
    return DecisionError(entity.ref, where, error)


def _row_of(machine: Machine[Any], entity: Entity[Any], event: Event) -> str:
    """Return the row that accepts an event; empty if none does."""
    if isinstance(event, TimerFired) and isinstance(after := machine.spans[event.slot].during, After):
        event = after.event()
    for row in machine.rows:
        is_of = row.event is type(event) and entity.state in machine.sources(row)
        if is_of and (row.pattern is None or row.pattern.test(event)):
            try:
                if row.when is None or row.when(entity.record, event):
                    return str(row)
            except Exception:  # noqa: BLE001 - whatever it is, this is the row that raises
                return str(row)
    return ""


def following(transition: Transition, what: str, error: Exception) -> DecisionError:
    """Return the error of a rule or view after a transition."""
    where = f"{what}, after {type(transition.event).__name__} of {transition.entity}, now {transition.after.state}"
    return DecisionError(transition.entity, where, error)
