"""One machine alone in a system of its own, and what may happen to it next: whatever its activities may yield."""

from collections.abc import Iterator
from typing import Any

from lifefold.core.kernel import (
    ActivityEnded,
    AggregateType,
    Created,
    Entity,
    Envelope,
    Event,
    Machine,
    Phase,
    Running,
    System,
    TimerFired,
)

NAME = "only"


def alone(machine: Machine[Any]) -> System:
    """Return a system of one aggregate, in which there is only this machine."""
    return System("alone", AggregateType(NAME, machines=(machine,)))


def birth(machine: Machine[Any]) -> Envelope:
    """Return the input with which the one entity begins."""
    return Envelope(machine.name, Created(machine.initial), 0)


def next_inputs(machine: Machine[Any], entity: Entity[Any], now_ms: int) -> Iterator[Envelope]:
    """Yield what people may send, what goes on may report, and the confirmations that are owed; all at ``now_ms``."""
    ref = entity.ref
    for kind in machine.events:
        if kind not in machine.reports:
            yield from (Envelope(ref, event, now_ms) for event in kind.examples())
    for part in entity.running:
        yield from (
            Envelope(ref, event, max(now_ms, part.deadline_ms), part.slot, slot=part.slot, generation=part.generation)
            if part.activity is not None
            else Envelope(ref, event, max(now_ms, part.deadline_ms), "timer")
            for event in _reports(machine, part)
        )


def _reports(machine: Machine[Any], part: Running) -> Iterator[Event]:
    if part.phase is Phase.ENDING:
        yield ActivityEnded(part.slot, part.generation)
    elif part.activity is None:
        yield TimerFired(part.slot, part.generation)
    elif part.phase is Phase.LIVE:
        yield from (event for kind in machine.spans[part.slot].during.yields for event in kind.examples())
