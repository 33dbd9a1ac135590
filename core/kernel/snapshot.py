"""Aggregates as bytes and back: a snapshot saves the fold of the entries before it.

A snapshot is a cache, and the log stays the truth. It has a *head* for each aggregate, and the bytes of each entity
apart, so that the writer replaces only what has changed. Settled entities without running activities stay bytes until
they are asked for: they are the *archive* of the aggregate. All others are *live*.

The head also has what a fold collects beside the state: messages that their receivers have not accepted, and failed
attempts of running activities. A snapshot of other types is useless: its ``form`` says of which types it is.
"""

import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from types import GenericAlias
from typing import Any, Final, NamedTuple, TypeGuard

import msgspec
from pyrsistent import PMap, PSet, PVector, pmap, pset, pvector

from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.codec import Codec, UnreadableEntry, encode
from lifefold.core.kernel.entity import Entity, Envelope, Phase, Running
from lifefold.core.kernel.forgotten import ForgottenActivity, ForgottenEvent
from lifefold.core.kernel.persistent_map import Archive, PersistentMap
from lifefold.core.kernel.system import AggregateType, System
from lifefold.core.kernel.written_types import written_types
from lifefold.effects import Tell


class Kept(NamedTuple):
    """The written form of one entity. ``is_live``: it is not settled, or something is running."""

    ref: str
    data: bytes
    is_live: bool


class Restored(NamedTuple):
    """An aggregate of a snapshot, with its messages that were not accepted yet, and its failed attempts."""

    aggregate: Aggregate
    untold: tuple[Tell, ...]
    failures: tuple[Envelope, ...]


class _Head(msgspec.Struct, omit_defaults=True):
    version: int
    sent: dict[str, int] = {}
    received: dict[str, int] = {}
    quarantined: dict[str, str] = {}
    views: dict[str, msgspec.Raw] = {}
    untold: list[Any] = []
    failures: list[Any] = []


class _Entity(msgspec.Struct, omit_defaults=True):
    ref: str
    record: Any
    version: int
    entered_ms: int
    running: tuple[Running, ...] = ()
    postponed: tuple[Envelope, ...] = ()


class _ReadHead(msgspec.Struct):
    version: int
    sent: dict[str, int] = {}
    received: dict[str, int] = {}
    quarantined: dict[str, str] = {}
    views: dict[str, msgspec.Raw] = {}
    untold: list[msgspec.Raw] = []
    failures: list[msgspec.Raw] = []


class _ReadRunning(msgspec.Struct):
    slot: str
    generation: int
    activity: msgspec.Raw
    deadline_ms: int
    phase: Phase


class _ReadEntity(msgspec.Struct):
    ref: str
    record: msgspec.Raw
    version: int
    entered_ms: int
    running: list[_ReadRunning] = []
    postponed: list[msgspec.Raw] = []


_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")

_HEAD: Final = msgspec.json.Decoder(_ReadHead)
_ENTITY: Final = msgspec.json.Decoder(_ReadEntity)


def is_live(of: AggregateType, entity: Entity[Any]) -> bool:
    """Tell whether something is running in an entity, or its machine does not count its record as settled."""
    machine = of.machine_of(entity.ref)
    return bool(entity.running or entity.postponed) or machine is None or not machine.settled(entity.record)


def must_recover(of: AggregateType, aggregate: Aggregate) -> bool:
    """Tell whether an aggregate takes ``RunnerRecovered``: one of its entities is live.

    In any other aggregate nothing is running and nothing is expected, so a restart changes nothing there.
    """
    return any(is_live(of, entity) for entity in aggregate.entities.unarchived().values())


class Snapshots:
    """Writes and reads the aggregates of one system.

    >>> from lifefold.core.fleet.board import intake
    >>> from lifefold.core.kernel import AggregateType, Created, Envelope, react
    >>> board = AggregateType("board", machines=(intake.machine,))
    >>> now = react(board, board.start("board"), Envelope("intake", Created(intake.Intake()), 1)).aggregate
    >>> snapshots = Snapshots(System("fleet", board), Codec(System("fleet", board)))
    >>> (kept,) = snapshots.entities(now, ["intake"])
    >>> snapshots.restored("board", snapshots.head(now, (), ()), {}, {kept.ref: kept.data}).aggregate == now
    True
    """

    def __init__(self, system: System, codec: Codec) -> None:
        """Use this codec of this system."""
        self._system: Final = system
        self._codec: Final = codec
        self._views: Final = {
            (kind, name): msgspec.json.Decoder(view.form, dec_hook=_collection)
            for kind, of in system.aggregates.items()
            for name, view in of.views.items()
            if view.form is not None
        }

    @cached_property
    def form(self) -> str:
        """A digest of the types of all records, events, activities and views, and of the code that folds views."""
        lines: list[str] = []
        for kind, of in self._system.aggregates.items():
            for machine in of.machines.values():
                lines.append(f"{kind} {machine.name}: {', '.join(map(str, machine.states))}")
                lines += written_types(machine)
            lines += [f"{kind} {name}: {view.form!r} {_code(view.fold)}" for name, view in of.views.items()]
        # The text of a default can have the address of an object.
        return sha256(_ADDRESS.sub("", "\n".join(lines)).encode()).hexdigest()[:32]

    def can_keep(self, aggregate: str) -> bool:
        """Tell whether an aggregate of this name can be in a snapshot: all of its views have declared types."""
        kind = aggregate.partition("/")[0]
        return all((kind, name) in self._views for name in self._system.aggregates[kind].views)

    def head(self, aggregate: Aggregate, untold: Iterable[Tell], failures: Iterable[Envelope]) -> bytes:
        """Return an aggregate without its entities. Raises ``TypeError`` for what no log can have."""
        views = {name: msgspec.Raw(_VIEWS.encode(value)) for name, value in aggregate.views.items()}
        return encode(
            _Head(
                aggregate.version,
                dict(aggregate.sent),
                dict(aggregate.received),
                dict(aggregate.quarantined),
                views,
                list(untold),
                list(failures),
            )
        )

    def entities(self, aggregate: Aggregate, refs: Iterable[str]) -> Iterator[Kept]:
        """Yield the written form of some entities. References without an entity are left out."""
        of = self._system.type_of(aggregate.name)
        for ref in refs:
            entity = aggregate.entities.get(ref)
            if entity is not None:
                kept = _Entity(ref, entity.record, entity.version, entity.entered_ms, entity.running, entity.postponed)
                yield Kept(ref, encode(kept), is_live(of, entity))

    def restored(self, name: str, head: bytes, live: Mapping[str, bytes], archived: Mapping[str, bytes]) -> Restored:
        """Return an aggregate. Raises ``UnreadableEntry``, also later for an archived entity that is asked for."""
        of, kind = self._system.type_of(name), name.partition("/")[0]
        try:
            read = _HEAD.decode(head)
            views = {key: read.views[key] for key in of.views}
            untold = tuple(self._codec.effect(kind, "", raw) for raw in read.untold)
            failures = tuple(self._codec.decode(name, raw) for raw in read.failures)
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
            raise _unreadable(name, "", error) from error
        entities = PersistentMap(
            {ref: self.entity(name, ref, data) for ref, data in live.items()},
            Archive(archived, lambda ref, data: self.entity(name, ref, data)),
        )
        aggregate = Aggregate(
            name,
            read.version,
            entities,
            PersistentMap({}, Archive(views, lambda key, raw: self._view(name, key, raw))),
            PersistentMap(read.sent),
            PersistentMap(read.received),
            pmap(read.quarantined),
        )
        return Restored(aggregate, tuple(each for each in untold if isinstance(each, Tell)), failures)

    def entity(self, name: str, ref: str, data: bytes) -> Entity[Any]:
        """Return an entity of an aggregate. Raises ``UnreadableEntry``."""
        kind = name.partition("/")[0]
        try:
            read = _ENTITY.decode(data)
            if read.ref != ref:
                raise _unreadable(name, ref, f"it is {read.ref}")
            running = tuple(
                Running(
                    each.slot,
                    each.generation,
                    self._codec.activity(kind, ref, each.slot, each.activity),
                    each.deadline_ms,
                    each.phase,
                )
                for each in read.running
            )
            postponed = tuple(self._codec.decode(name, raw, is_past=True) for raw in read.postponed)
            record = self._codec.record(kind, ref, read.record)
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
            raise _unreadable(name, ref, error) from error
        return Entity(ref, record, read.version, read.entered_ms, running, postponed)

    def _view(self, name: str, key: str, data: bytes) -> Any:
        try:
            return self._views[name.partition("/")[0], key].decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
            raise _unreadable(name, f"view {key}", error) from error


def has_forgotten(aggregate: Aggregate, refs: Iterable[str]) -> bool:
    """Tell whether one of these entities has an event or an activity that only the log can show."""
    found = (aggregate.entities.get(ref) for ref in refs)
    return any(
        any(type(part.activity) is ForgottenActivity for part in each.running)
        or any(type(envelope.event) is ForgottenEvent for envelope in each.postponed)
        for each in found
        if each is not None
    )


def _unreadable(name: str, part: str, why: object) -> UnreadableEntry:
    return UnreadableEntry(f"{name}: the snapshot of {part or 'the aggregate'} cannot be read: {why}")


def _code(fold: Callable[..., Any]) -> str:
    """Return a digest of the compiled code of a view's fold, which decides what its value means."""
    code = getattr(fold, "__code__", None)
    return "" if code is None else sha256(code.co_code).hexdigest()[:16]


def _is_map(value: object) -> TypeGuard[PMap[Any, Any]]:
    return isinstance(value, PMap)


def _is_set_or_vector(value: object) -> TypeGuard[PSet[Any] | PVector[Any]]:
    return isinstance(value, PSet | PVector)


def _plain(value: Any) -> Any:
    """Return a persistent collection of a view as lists; a map becomes its pairs, since its keys can be tuples."""
    if _is_map(value):
        return list(value.items())
    if _is_set_or_vector(value):
        return list(value)
    message = f"a view with a {type(value).__name__} cannot be in a snapshot"
    raise TypeError(message)


_VIEWS: Final = msgspec.json.Encoder(enc_hook=_plain)


def _collection(kind: Any, value: Any) -> Any:
    """Make the persistent collection of a field's declared type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is PMap:
        return pmap(_converted(value, GenericAlias(list, (GenericAlias(tuple, arguments),))))
    if origin is PSet:
        return pset(_converted(value, GenericAlias(list, arguments)))
    if origin is PVector:
        return pvector(_converted(value, GenericAlias(list, arguments)))
    message = f"a view with a {kind!r} cannot be in a snapshot"
    raise TypeError(message)


def _converted(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, dec_hook=_collection)
