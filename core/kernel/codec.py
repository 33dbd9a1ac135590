"""Events, envelopes and effects as bytes and back, and the digest that compares two folds.

An event is written with the tag of its type, and its envelope with all other fields. The machine of an event decides
which types its tag can mean, so a codec belongs to a system. Everything is JSON: any tool can read a log.

Equal values must have equal bytes, in every process. A plain dictionary keeps the order of its making, which is read
back as it was. A ``PMap`` is written in the order of its keys. The order of a set follows PYTHONHASHSEED, so no written
type may contain a set: a codec of such a system cannot be made.
"""

import typing
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from types import GenericAlias
from typing import Any, Literal, Union

import msgspec
from pyrsistent import PMap, PVector, pmap, pvector

from lifefold.core.kernel.entity import ActivityEnded, Created, Envelope, Opened, RunnerRecovered, TimerFired
from lifefold.core.kernel.failure import EntityQuarantined, EntityReleased, HandlerFailed
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.reaction import Reaction
from lifefold.core.kernel.record import Event
from lifefold.core.kernel.row import Does
from lifefold.core.kernel.system import System

DIGEST_BYTES = 16


class UnreadableEntry(ValueError):
    """An entry of a log does not fit the system of its reader; the message names the entry and the reason."""


def encode(value: Any) -> bytes:
    """Return a struct, with all persistent collections in it, as JSON."""
    return _ENCODER.encode(value)


def _plain(value: Any) -> Any:
    if type(value) not in _PLAIN:
        message = f"cannot write a {type(value).__name__} to a log"
        raise TypeError(message)
    return _PLAIN[type(value)](value)


def _sorted(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: mapping[key] for key in sorted(mapping)}


_NOTHING: dict[str, Any] = {}
_PLAIN: dict[type, Callable[[Any], Any]] = {type(pmap(_NOTHING)): _sorted, type(pvector([_NOTHING])): list}
_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def _persistent(kind: Any, value: Any) -> Any:
    """Make the persistent collection of a field's declared type, with its elements of their types."""
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is PMap:
        return pmap(_converted(value, GenericAlias(dict, arguments or (str, Any))))
    if origin is PVector:
        return pvector(_converted(value, GenericAlias(list, arguments or (Any,))))
    message = f"cannot read a {kind.__name__} from a log"
    raise TypeError(message)


def _converted(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, str_keys=True, dec_hook=_persistent)


def _decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind, dec_hook=_persistent)


class _Wire(msgspec.Struct):
    """An envelope with its event still as bytes."""

    entity: str
    event: msgspec.Raw
    at_ms: int
    actor: str
    key: str = ""
    slot: str = ""
    generation: int = 0
    sender: str = ""
    ordinal: int = 0


class Codec:
    """Reads and checks the entries of one system's log."""

    def __init__(self, system: System) -> None:
        """Prepare a decoder for every machine. Raises ``TypeError`` for a machine with a set in its types."""
        for each in system.aggregates.values():
            for machine in each.machines.values():
                _must_be_ordered(machine)
        self._wire = msgspec.json.Decoder(_Wire)
        self._events = {
            kind: {name: _event_decoder(machine) for name, machine in aggregate.machines.items()}
            for kind, aggregate in system.aggregates.items()
        }
        self._records = {
            kind: {name: _record_decoder(machine) for name, machine in aggregate.machines.items()}
            for kind, aggregate in system.aggregates.items()
        }
        self._whole = msgspec.json.Decoder(RunnerRecovered | _OpenedWire)

    def decode(self, aggregate: str, data: bytes) -> Envelope:
        """Return the envelope that was encoded for this aggregate. Raises ``UnreadableEntry``."""
        try:
            wire = self._wire.decode(data)
            event = self._event(aggregate.partition("/")[0], wire)
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
            message = f"{aggregate}: this version of lifefold cannot read the entry {data[:200]!r}: {error}"
            raise UnreadableEntry(message) from error
        return Envelope(
            wire.entity, event, wire.at_ms, wire.actor, wire.key, wire.slot, wire.generation, wire.sender, wire.ordinal
        )

    def _event(self, kind: str, wire: _Wire) -> Event:
        if not wire.entity:
            whole = self._whole.decode(wire.event)
            if isinstance(whole, RunnerRecovered):
                return whole
            return Opened({ref: self._record(kind, ref).decode(raw) for ref, raw in whole.records.items()})
        machine = wire.entity.partition(":")[0]
        event: Event | _CreatedWire = self._events[kind][machine].decode(wire.event)
        if isinstance(event, _CreatedWire):
            return Created(self._record(kind, wire.entity).decode(event.record))
        return event

    def _record(self, kind: str, ref: str) -> "_RecordDecoder":
        return self._records[kind][ref.partition(":")[0]]


class _CreatedWire(msgspec.Struct, frozen=True, tag="Created"):
    record: msgspec.Raw


class _OpenedWire(msgspec.Struct, frozen=True, tag="Opened"):
    records: dict[str, msgspec.Raw]


class _OfSeveral:
    """Reads the records of a machine with added states: the record's type knows the states of one enumeration only.

    The decoder's type differs from it in this field alone, so such records are written and refused like all others.
    """

    def __init__(self, machine: Machine[Any]) -> None:
        self._record = machine.record
        self._names = machine.record.__struct_fields__
        self._states = {str(state): state for state in machine.states}
        (state,) = (field for field in msgspec.structs.fields(machine.record) if field.name == "state")
        kind: Any = Literal[tuple(self._states)]
        usual = ("state", kind) if state.default is msgspec.NODEFAULT else ("state", kind, str(state.default))
        self._decoder = _decoder(msgspec.defstruct(machine.record.__name__, [usual], bases=(machine.record,)))

    def decode(self, data: bytes) -> Any:
        """Return the record. Raises ``msgspec.DecodeError``."""
        read = self._decoder.decode(data)
        fields = {name: getattr(read, name) for name in self._names}
        return self._record(**fields | {"state": self._states[read.state]})


_RecordDecoder = msgspec.json.Decoder[Any] | _OfSeveral


def _record_decoder(machine: Machine[Any]) -> _RecordDecoder:
    return _OfSeveral(machine) if machine.added else _decoder(machine.record)


def _event_decoder(machine: Machine[Any]) -> "msgspec.json.Decoder[Any]":
    types = (*machine.events, _CreatedWire, TimerFired, ActivityEnded, HandlerFailed, EntityQuarantined, EntityReleased)
    return _decoder(Union[types])  # noqa: UP007 - the types are known at run time only


def _must_be_ordered(machine: Machine[Any]) -> None:
    activities = (span.during.activity for span in machine.spans.values() if isinstance(span.during, Does))
    effects = (effect for row in machine.rows for effect in row.effects)
    for kind in (machine.record, *machine.events, *activities, *effects):
        for part in _parts(kind):
            origin = typing.get_origin(part) or part
            if isinstance(origin, type) and issubclass(origin, AbstractSet):
                found = f"machine {machine.name!r}: {kind.__name__} has a {origin.__name__}"
                message = f"{found}; its order differs between processes, and a log needs one order: use a tuple"
                raise TypeError(message)


def _parts(kind: Any) -> Iterator[Any]:
    """Yield a type and all types within it."""
    # Generic aliases may be unhashable and structs refer to themselves: hence a list, and no recursion.
    seen: list[Any] = []
    waiting = [kind]
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.append(part)
        yield part
        waiting += [*typing.get_args(part), *filter(None, [typing.get_origin(part)])]
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            waiting += typing.get_type_hints(part).values()


def digest(before: bytes, wire: bytes, reaction: Reaction) -> bytes:
    """Return the digest of an aggregate after a reaction, from the digest before it and the encoded envelope.

    It covers the whole history: every input, every changed entity in its new form, and every effect, in order. Two
    folds with the same last digest agree in all inputs, refused messages among them, in all states, and in all effects.
    """
    state = blake2b(before + wire, digest_size=DIGEST_BYTES)
    for ref in reaction.changed:
        state.update(encode(reaction.aggregate.entities[ref]))
    for requested in reaction.effects:
        state.update(encode(requested))
    return state.digest()
