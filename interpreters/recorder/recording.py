"""A log as a run: every entry with its step, and the world after it.

A position is the number of an entry, from 1. The world at a position is the system after that entry. It has the
messages that no receiver has accepted yet, so a driver can go on from it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lifefold.core.kernel import ENGINE, Codec, Entity, System, SystemStep, World
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.store import Entry


class Recorded(NamedTuple):
    """An entry at a position, the step that it records, and the world after it."""

    seq: int
    entry: Entry
    step: SystemStep
    world: World

    @property
    def is_of_system(self) -> bool:
        """Whether an aggregate has accepted it; the others are about the log itself, such as ``RulesChanged``."""
        return self.entry.stream != ENGINE


def recorded(system: System, entries: Iterable[Entry], codec: Codec | None = None) -> Iterator[Recorded]:
    """Fold the entries of a log from the first one on, as they were decided. Raises ``LogMismatchError``."""
    world = World(system)
    for seq, decision in enumerate(Ledger(system, codec).fold(entries), 1):
        step = SystemStep(decision.entry.stream, decision.envelope, decision.reaction)
        is_of_engine = decision.entry.stream == ENGINE
        world = world.later(decision.entry.at_ms) if is_of_engine else world.after(step.given, step.reaction)
        yield Recorded(seq, decision.entry, step, world)


def world_after(system: System, entries: Iterable[Entry]) -> World:
    """Return the world after these entries of a log. Raises ``LogMismatchError``."""
    world = World(system)
    for each in recorded(system, entries):
        world = each.world
    return world


def fields_of(entity: Entity[Any] | None) -> dict[str, str]:
    """Return the state of an entity for a table: its record's fields and what runs; empty if there is none."""
    if entity is None:
        return {}
    fields = {name: repr(getattr(entity.record, name)) for name in entity.record.__struct_fields__}
    fields["state"] = str(entity.state)
    running = ", ".join(f"{each.slot} ({each.phase})" if each.activity else each.slot for each in entity.running)
    waiting = ", ".join(type(each.event).__name__ for each in entity.postponed)
    return fields | {"(running)": running} | ({"(postponed)": waiting} if waiting else {})
