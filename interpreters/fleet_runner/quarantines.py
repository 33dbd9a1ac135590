"""The quarantined entities of a fleet: since when, why, and the name by which an operator releases them.

An entity is quarantined after the last failure of its handler, or when a rule raises an error. It accepts no input
until an operator releases it.
"""

from collections.abc import Iterator, Mapping

import anyio
import msgspec
from pyrsistent import PMap, pmap

from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate, EntityQuarantined, Reaction, Refusal
from lifefold.interpreters.engine import Ledger, Observer
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.store import LogStore


class Quarantine(msgspec.Struct, frozen=True):
    """A quarantined entity; ``reason`` names the handler or the row, and the error.

    ``name`` is the agent, service or task by which an operator releases it. ``since_ms`` is Unix time.
    """

    name: str
    aggregate: str
    entity: str
    since_ms: int
    reason: str


def name_of(aggregate: str, entity: str) -> str:
    """Return the name by which an operator releases an entity."""
    return entity.removeprefix("task:") if aggregate == board.NAME else aggregate.partition("/")[2]


def quarantined(aggregates: Mapping[str, Aggregate]) -> Iterator[Quarantine]:
    """Yield the quarantined entities; ``since_ms`` is 0, because aggregates do not have it."""
    for name, each in sorted(aggregates.items()):
        for entity, reason in sorted(each.quarantined.items()):
            yield Quarantine(name_of(name, entity), name, entity, 0, reason)


def found(store: LogStore, ledger: Ledger) -> tuple[Quarantine, ...]:
    """Return the quarantined entities, with times from the log."""
    here = tuple(quarantined(ledger.aggregates))
    since = {name: _since(store, ledger, name) for name in {each.aggregate for each in here}}
    return tuple(msgspec.structs.replace(each, since_ms=since[each.aggregate].get(each.entity, 0)) for each in here)


def _since(store: LogStore, ledger: Ledger, aggregate: str) -> dict[str, int]:
    """Return the time of the last quarantine of each entity of an aggregate."""
    entries = anyio.run(store.read, aggregate)
    decoded = ((ledger.codec.decode(aggregate, entry.envelope, is_past=True), entry.at_ms) for entry in entries)
    return {envelope.entity: at_ms for envelope, at_ms in decoded if isinstance(envelope.event, EntityQuarantined)}


def telling(operator: Notices) -> Observer:
    """Return an observer that shows a notice for each quarantined entity."""
    known: dict[str, PMap[str, str]] = {}

    def observe(name: str, outcome: Reaction | Refusal) -> None:
        if isinstance(outcome, Refusal) or outcome.aggregate.quarantined is known.get(name):
            return
        before, now = known.get(name, pmap()), outcome.aggregate.quarantined
        for entity in now.keys() - before.keys():
            released_by = name_of(name, entity)
            said = f"its {entity} is quarantined: {now[entity]}; lifefold release {released_by} lets it go on"
            operator.tell_while(About.QUARANTINE, released_by, said, entity)
        for entity in before.keys() - now.keys():
            operator.over(About.QUARANTINE, name_of(name, entity), entity)
        known[name] = now

    return observe
