"""Events, envelopes and effects as bytes and back.

An event is written with the tag of its type, and its envelope with all other fields. The machine of an event decides
which types its tag can mean, so a codec belongs to a system. Everything is JSON: any tool can read a log.

Equal values must have equal bytes, in every process. A plain dictionary keeps the order of its making, which is read
back as it was. A ``PMap`` is written in the order of its keys. The order of a set follows PYTHONHASHSEED, so no written
type may contain a set: a codec of such a system cannot be made.
"""

import typing
from collections.abc import Callable, Iterator, Mapping
from types import GenericAlias
from typing import Any, Literal, Union

import msgspec
from pyrsistent import PMap, PVector, pmap, pvector

from lifefold.core.kernel.entity import (
    ENGINE,
    ActivityEnded,
    Created,
    Envelope,
    Opened,
    RulesChanged,
    RunnerRecovered,
    TimerFired,
)
from lifefold.core.kernel.evolution import Upcasters
from lifefold.core.kernel.failure import EntityQuarantined, EntityReleased, HandlerFailed
from lifefold.core.kernel.forgotten import (
    ForgottenActivity,
    ForgottenEffect,
    ForgottenEvent,
    ForgottenState,
    forgotten,
    named,
)
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.record import Event, Record, replace
from lifefold.core.kernel.row import Does
from lifefold.core.kernel.system import System
from lifefold.core.kernel.written_types import must_be_ordered
from lifefold.effects import Activity, Begin, CancelTimer, Effect, End, StartTimer, Tell


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
                must_be_ordered(machine)
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
        self._of_engine = msgspec.json.Decoder(RulesChanged)
        machines = {
            (kind, name): machine for kind, of in system.aggregates.items() for name, machine in of.machines.items()
        }
        self._effects = {key: _effect_decoder(machine) for key, machine in machines.items()}
        self._fields = {key: _field_decoders(machine) for key, machine in machines.items()}
        self._activities = {key: _activity_decoders(machine) for key, machine in machines.items()}
        self._initial = {key: machine.initial.state for key, machine in machines.items()}
        self._upcasters = {
            key: Upcasters(machine, encode, _decoder) for key, machine in machines.items() if machine.evolved
        }

    def decode(self, aggregate: str, data: bytes, *, is_past: bool = False) -> Envelope:
        """Return the envelope that was encoded for this aggregate. Raises ``UnreadableEntry``.

        An input of the past, which a log has accepted, may be of older rules. Upcasters apply to it, and an event that
        no machine knows any more is a ``ForgottenEvent``.
        """
        try:
            wire, kind = self._wire.decode(data), aggregate.partition("/")[0]
            if is_past and wire.entity:
                event = self.event(kind, wire.entity, wire.event)
            else:
                event = self._event(kind, wire.entity, wire.event, is_past=is_past)
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError, RecursionError) as error:
            message = f"{aggregate}: this version of lifefold cannot read the entry {bytes(data)[:200]!r}: {error}"
            raise UnreadableEntry(message) from error
        slot = self.slot(kind, wire.entity, wire.slot) if is_past and wire.slot else wire.slot
        return Envelope(
            wire.entity, event, wire.at_ms, wire.actor, wire.key, slot, wire.generation, wire.sender, wire.ordinal
        )

    def event(self, kind: str, ref: str, data: msgspec.Raw) -> Event:
        """Return a past event; a ``ForgottenEvent`` if no machine there knows it any more.

        Without a reference it is one of the whole aggregate. Raises ``msgspec.DecodeError``, ``KeyError`` if the record
        of a new entity cannot be read.
        """
        upcasters = self._upcasters_of(kind, ref)
        try:
            return self._event(kind, ref, data if upcasters is None else upcasters.tagged("event", data), is_past=True)
        except (msgspec.DecodeError, KeyError):
            if named(data)[0] == "Created":
                raise
            return forgotten(ForgottenEvent, data)

    def effect(self, kind: str, ref: str, data: msgspec.Raw) -> Effect:
        """Return an effect of an entity, or a message; a ``ForgottenEffect`` if the machine requests it no more."""
        decoder = self._effects.get((kind, ref.partition(":")[0]), _MESSAGE)
        upcasters = self._upcasters_of(kind, ref)
        data = data if upcasters is None else upcasters.tagged("effect", data)
        try:
            effect: Effect | _BeginWire | _TellWire = decoder.decode(data)
        except msgspec.DecodeError:
            return forgotten(ForgottenEffect, data)
        if isinstance(effect, _BeginWire):
            activity = self.activity(kind, ref, effect.slot, effect.activity)
            slot = self.slot(kind, ref, effect.slot)
            return Begin(slot, activity or ForgottenActivity("", ""), effect.generation, effect.resumed)
        if isinstance(effect, _TellWire):
            event = self.event(effect.aggregate.partition("/")[0], effect.entity, effect.event)
            return Tell(effect.aggregate, effect.entity, event, effect.ordinal)
        return effect

    def activity(self, kind: str, ref: str, slot: str, data: msgspec.Raw) -> Activity | None:
        """Return the activity of a slot, None for a timer; a ``ForgottenActivity`` if the machine has none there."""
        if bytes(data) == b"null":
            return None
        upcasters = self._upcasters_of(kind, ref)
        if upcasters is not None:
            slot, data = upcasters.slots.get(slot, slot), upcasters.tagged("activity", data)
        decoder = self._activities.get((kind, ref.partition(":")[0]), {}).get(slot)
        try:
            return forgotten(ForgottenActivity, data) if decoder is None else decoder.decode(data)
        except msgspec.DecodeError:
            return forgotten(ForgottenActivity, data)

    def slot(self, kind: str, ref: str, slot: str) -> str:
        """Return the slot of today of an activity or a timer."""
        upcasters = self._upcasters_of(kind, ref)
        return slot if upcasters is None else upcasters.slots.get(slot, slot)

    def changed_record(self, kind: str, ref: str, record: Record, fields: Mapping[str, msgspec.Raw]) -> Record:
        """Return a record with these fields. A state that no longer exists is a ``ForgottenState``.

        Raises ``msgspec.DecodeError``, ``KeyError``.
        """
        upcasters = self._upcasters_of(kind, ref)
        if upcasters is not None:
            fields = upcasters.fields(fields)
        decoders = self._fields[kind, ref.partition(":")[0]]
        for name in fields.keys() - decoders.keys():
            raise KeyError(_unknown_field(record, name))
        return replace(record, **{name: decoders[name](data) for name, data in fields.items()})

    def record(self, kind: str, ref: str, data: msgspec.Raw) -> Any:
        """Return a whole record of the past. A state that no longer exists is a ``ForgottenState``.

        Raises ``msgspec.DecodeError``, ``KeyError``.
        """
        upcasters = self._upcasters_of(kind, ref)
        if upcasters is not None:
            data = upcasters.record(data)
        fields = _FIELDS.decode(data)
        decoders = self._fields[kind, ref.partition(":")[0]]
        state = decoders["state"](fields["state"]) if "state" in fields else None
        if isinstance(state, ForgottenState):
            initial = self._initial[kind, ref.partition(":")[0]]
            whole = self._record(kind, ref).decode(encode({**fields, "state": str(initial)}))
            return replace(whole, state=state)
        found = self._record(kind, ref).decode(data)
        for name in fields.keys() - decoders.keys():
            raise KeyError(_unknown_field(found, name))
        return found

    def _upcasters_of(self, kind: str, ref: str) -> Upcasters | None:
        return self._upcasters.get((kind, ref.partition(":")[0])) if self._upcasters else None

    def _event(self, kind: str, ref: str, data: msgspec.Raw, *, is_past: bool = False) -> Event:
        if kind == ENGINE:
            return self._of_engine.decode(data)
        if not ref:
            whole = self._whole.decode(data)
            if isinstance(whole, RunnerRecovered):
                return whole
            if is_past:
                return Opened({each: self.record(kind, each, raw) for each, raw in whole.records.items()})
            return Opened({each: self._record(kind, each).decode(raw) for each, raw in whole.records.items()})
        event: Event | _CreatedWire = self._events[kind][ref.partition(":")[0]].decode(data)
        if not isinstance(event, _CreatedWire):
            return event
        return Created(
            self.record(kind, ref, event.record) if is_past else self._record(kind, ref).decode(event.record)
        )

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


def _unknown_field(record: Record, name: str) -> str:
    return (
        f"{type(record).__name__} has no field {name!r}; an old name is declared by renamed_field() or removed_field()"
    )


class _BeginWire(msgspec.Struct, frozen=True, tag="Begin"):
    slot: str
    activity: msgspec.Raw
    generation: int = 0
    resumed: bool = False


class _TellWire(msgspec.Struct, frozen=True, tag="Tell"):
    aggregate: str
    entity: str
    event: msgspec.Raw
    ordinal: int = 0


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MESSAGE: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(_TellWire)


_RecordDecoder = msgspec.json.Decoder[Any] | _OfSeveral


def _record_decoder(machine: Machine[Any]) -> _RecordDecoder:
    return _OfSeveral(machine) if machine.added else _decoder(machine.record)


def _event_decoder(machine: Machine[Any]) -> "msgspec.json.Decoder[Any]":
    types = (*machine.events, _CreatedWire, TimerFired, ActivityEnded, HandlerFailed, EntityQuarantined, EntityReleased)
    return _decoder(Union[types])  # noqa: UP007 - the types are known at run time only


def _effect_decoder(machine: Machine[Any]) -> "msgspec.json.Decoder[Any]":
    kinds = {kind.__name__: kind for row in machine.rows for declared in row.effects for kind in _concrete(declared)}
    rest = [kind for name, kind in kinds.items() if name not in {"Begin", "Tell", "End", "StartTimer", "CancelTimer"}]
    types = (*rest, End, StartTimer, CancelTimer, _BeginWire, _TellWire)
    return _decoder(Union[types])  # noqa: UP007 - the types are known at run time only


def _concrete(kind: type[Effect]) -> Iterator[type[Effect]]:
    """Yield a type of effects with all types that are made from it."""
    if kind is not Effect:
        yield kind
    for each in kind.__subclasses__():
        yield from _concrete(each)


def _field_decoders(machine: Machine[Any]) -> dict[str, Callable[[Any], Any]]:
    decoders: dict[str, Callable[[Any], Any]] = {
        field.name: _decoder(field.type).decode for field in msgspec.structs.fields(machine.record)
    }
    # One object for each name, also for one that is forgotten: a state counts as another one if it is another object.
    states: dict[bytes, Any] = {msgspec.json.encode(str(state)): state for state in machine.states}

    def state_of(data: Any) -> Any:
        found = states.get(bytes(data))
        if found is None:
            found = states[bytes(data)] = ForgottenState(msgspec.json.decode(data, type=str))
        return found

    decoders["state"] = state_of
    return decoders


def _activity_decoders(machine: Machine[Any]) -> dict[str, "msgspec.json.Decoder[Any]"]:
    return {
        slot: _decoder(span.during.activity) for slot, span in machine.spans.items() if isinstance(span.during, Does)
    }
