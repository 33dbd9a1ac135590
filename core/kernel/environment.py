"""The possible next inputs of an entity or an aggregate: the adversary, derived from the machines themselves.

Activities may report the events that they ``yield``, and timers may fire. Requested ends may be confirmed, operators
may send commands, and the runner may recover from a crash. This module is the only model of the environment: the
checker, the simulator and the tests all use it.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.entity import (
    ActivityEnded,
    Created,
    Entity,
    Envelope,
    Phase,
    RunnerRecovered,
    Running,
    TimerFired,
)
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.reaction import Reaction
from lifefold.core.kernel.record import Event
from lifefold.core.kernel.row import Does
from lifefold.core.kernel.system import AggregateType, System


class Cause(StrEnum):
    """The source of an input."""

    COMMAND = "command"
    REPORT = "report"
    TIMER = "timer"
    CONFIRMATION = "confirmation"
    RECOVERY = "recovery"
    MESSAGE = "message"


def cause_of(envelope: Envelope) -> Cause:
    """Return the source of an input. A first input of an aggregate is a command."""
    if envelope.sender:
        return Cause.MESSAGE
    if envelope.slot:
        return Cause.REPORT
    return _KERNEL_CAUSES.get(type(envelope.event), Cause.COMMAND)


_KERNEL_CAUSES: Final[dict[type[Event], Cause]] = {
    TimerFired: Cause.TIMER,
    ActivityEnded: Cause.CONFIRMATION,
    RunnerRecovered: Cause.RECOVERY,
}


class Possible(msgspec.Struct, frozen=True, gc=False):
    """A possible next input, with its source."""

    cause: Cause
    envelope: Envelope


def possible(of: AggregateType, aggregate: Aggregate, now_ms: int) -> Iterator[Possible]:
    """Yield the possible next inputs of an aggregate at ``now_ms`` or later, in a fixed order, without messages."""
    for ref, entity in sorted(aggregate.entities.items()):
        machine = of.machines[ref.partition(":")[0]]
        yield from possible_of(machine, entity, now_ms, of.commands.get(machine.name))
    # A crash of the runner is visible to running activities and timers only.
    if any(entity.running for entity in aggregate.entities.values()):
        yield Possible(Cause.RECOVERY, Envelope("", RunnerRecovered(0), now_ms, "engine"))


def possible_of(
    machine: Machine[Any], entity: Entity[Any], now_ms: int, commands: tuple[type[Event], ...] | None = None
) -> Iterator[Possible]:
    """Yield the possible next inputs of an entity. ``commands`` are the operators' events; None means all of them.

    Each input comes after all pauses that the record names. A confirmation or a postponed event, which changes no
    record, comes after the first pause only.
    """
    waits = machine.postponed(entity.state)
    for index, pause_ms in enumerate(entity.record.pauses_ms()):
        for each in _at(machine, entity, now_ms + pause_ms, machine.commands if commands is None else commands):
            if not index or not (each.cause is Cause.CONFIRMATION or type(each.envelope.event) in waits):
                yield each


def _at(
    machine: Machine[Any], entity: Entity[Any], at_ms: int, commands: tuple[type[Event], ...]
) -> Iterator[Possible]:
    for kind in commands:
        for event in kind.examples_for(entity.record):
            yield Possible(Cause.COMMAND, Envelope(entity.ref, event, at_ms))
    for part in entity.running:
        # Reports of a served activity come from rules, not from the environment.
        if part.slot not in machine.served:
            yield from _of_part(machine, entity, part, at_ms)


def _of_part(machine: Machine[Any], entity: Entity[Any], part: Running, at_ms: int) -> Iterator[Possible]:
    ref, slot, generation = entity.ref, part.slot, part.generation
    if part.phase is Phase.ENDING:
        yield Possible(Cause.CONFIRMATION, Envelope(ref, ActivityEnded(slot, generation), at_ms, "engine"))
    elif part.activity is None:
        yield Possible(Cause.TIMER, Envelope(ref, TimerFired(slot, generation), max(at_ms, part.deadline_ms), "timer"))
    elif part.phase is Phase.LIVE:
        for event in _reports(machine, slot, entity.record):
            yield Possible(Cause.REPORT, Envelope(ref, event, at_ms, slot, slot=slot, generation=generation))


def restarted(before: Aggregate, reaction: Reaction) -> Iterator[tuple[str, str]]:
    """Yield the running timers that a reaction restarts: each with its entity and its slot.

    A timer's firing cannot be put off for ever, except by a restart, which replaces the earlier start.
    """
    for ref in reaction.changed:
        known, now = before.entities.get(ref), reaction.aggregate.entities[ref]
        for part in () if known is None else known.running:
            again = now.find(part.slot) if part.activity is None else None
            if again is not None and again.generation != part.generation:
                yield ref, part.slot


def late(machine: Machine[Any], entity: Entity[Any], now_ms: int) -> Iterator[Envelope]:
    """Yield the late reports of an earlier generation of each activity and timer: all of them are to be refused."""
    for slot, span in machine.spans.items():
        yield Envelope(entity.ref, ActivityEnded(slot, -1), now_ms, "engine")
        if isinstance(span.during, Does):
            for event in _reports(machine, slot, entity.record):
                yield Envelope(entity.ref, event, now_ms, slot, slot=slot, generation=-1)
        else:
            yield Envelope(entity.ref, TimerFired(slot, -1), now_ms, "timer")


def _reports(machine: Machine[Any], slot: str, record: Any) -> Iterator[Event]:
    for kind in machine.spans[slot].during.yields:
        yield from kind.examples_for(record)


def alone(machine: Machine[Any]) -> tuple[System, Mapping[str, Envelope]]:
    """Return a system of one aggregate with this machine only, and its first input.

    The aggregate and the entity have the machine's name.

    >>> from lifefold import alone
    >>> from lifefold.core.fleet.board import intake
    >>> system, opening = alone(intake.machine)
    >>> system, list(opening)
    (<System 'intake': intake>, ['intake'])
    """
    of = AggregateType(machine.name, machines=(machine,))
    return System(machine.name, of), {machine.name: Envelope(machine.name, Created(machine.initial), 0)}
