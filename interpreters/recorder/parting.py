"""Where two runs part: the first entry of each stream that differs, and the difference of the states after it.

Streams are compared one by one, because entries of different aggregates have no fixed order. Two runs of one plan have
other times, commits and processes. So fields of times do not count, nor the contents of *opaque* fields, which no rule
reads. A digest counts as any other digest: a text of 32 or more hexadecimal digits, such as a commit or a token.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import msgspec

from lifefold.core.kernel import Aggregate, Entity, Event, Record, System, encode
from lifefold.interpreters.recorder.recording import Recorded, recorded
from lifefold.interpreters.search.canonical import blank
from lifefold.interpreters.store import Entry


class Place(NamedTuple):
    """An entry of one of the logs: its position, and its input in words."""

    seq: int
    entity: str
    event: str
    actor: str


class Difference(msgspec.Struct, frozen=True):
    """One field of one entity in both runs; empty where the entity is missing."""

    entity: str
    field: str
    left: str
    right: str


class Parting(msgspec.Struct, frozen=True):
    """The first entry of a stream that differs. A side is None where its log has no further entry of the stream."""

    stream: str
    version: int
    left: Place | None
    right: Place | None
    differences: tuple[Difference, ...]


def partings(system: System, left: Sequence[Entry], right: Sequence[Entry]) -> tuple[Parting, ...]:
    """Return the streams whose runs part, the earliest first. Raises ``LogMismatchError``."""
    ours, theirs = _by_stream(recorded(system, left)), _by_stream(recorded(system, right))
    names = dict.fromkeys((*ours, *theirs))
    found = (_parting(name, ours.get(name, []), theirs.get(name, [])) for name in names)
    return tuple(sorted((each for each in found if each is not None), key=_first))


def _by_stream(entries: Iterator[Recorded]) -> Mapping[str, list[Recorded]]:
    streams: dict[str, list[Recorded]] = {}
    for each in filter(lambda of: of.is_of_system, entries):
        streams.setdefault(each.entry.stream, []).append(each)
    return streams


def _first(parting: Parting) -> int:
    return min(each.seq for each in (parting.left, parting.right) if each is not None)


def _parting(name: str, ours: Sequence[Recorded], theirs: Sequence[Recorded]) -> Parting | None:
    count = min(len(ours), len(theirs))
    same = next((n for n in range(count) if not _are_alike(ours[n], theirs[n])), count)
    if same == len(ours) == len(theirs):
        return None
    left, right = (each[same] if same < len(each) else None for each in (ours, theirs))
    before = ours[same - 1].step.reaction.aggregate if same else None
    return Parting(name, same + 1, _place(left), _place(right), tuple(_differences(before, left, right)))


def _are_alike(one: Recorded, other: Recorded) -> bool:
    """Tell whether two entries record the same input and the same transitions."""
    return _essence(one) == _essence(other)


def _essence(of: Recorded) -> tuple[Any, ...]:
    envelope, reaction = of.step.envelope, of.step.reaction
    moves = tuple((each.entity, _timeless(each.event), _timeless(each.after.record)) for each in reaction.transitions)
    return envelope.entity, _timeless(envelope.event), envelope.sender, envelope.slot, moves


def _timeless(value: Event | Record) -> tuple[str, dict[str, Any]]:
    """Return the fields of an event or a record that count, also those of its parts."""
    return type(value).__name__, dict(_leaves("", msgspec.json.decode(encode(blank(value)))))


def _is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers in a value of JSON by their paths, without times."""
    if _is_mapping(value) or _is_list(value):
        for key, each in value.items() if _is_mapping(value) else enumerate(value):
            if not str(key).endswith("_ms"):
                yield from _leaves(f"{path}.{key}" if path else str(key), each)
    elif isinstance(value, str) and _DIGEST.fullmatch(value):
        yield path, "(digest)"
    else:
        yield path, value


_DIGEST: Final = re.compile(r"[0-9a-fA-F-]{32,}")


def _place(of: Recorded | None) -> Place | None:
    if of is None:
        return None
    envelope = of.step.envelope
    return Place(of.seq, envelope.entity or of.entry.stream, _shown(repr(envelope.event)), envelope.actor)


def _differences(before: Aggregate | None, left: Recorded | None, right: Recorded | None) -> Iterator[Difference]:
    """Yield the fields that differ after the entries. A side without the entry is in the state before it."""
    ours, theirs = (before if each is None else each.step.reaction.aggregate for each in (left, right))
    changed = [ref for each in (left, right) if each is not None for ref in each.step.reaction.changed]
    for ref in dict.fromkeys(changed):
        one, other = _fields(_entity(ours, ref)), _fields(_entity(theirs, ref))
        for field in dict.fromkeys((*one, *other)):
            if one.get(field) != other.get(field):
                yield Difference(ref, field, _shown(one.get(field)), _shown(other.get(field)))


def _fields(entity: Entity[Any] | None) -> dict[str, Any]:
    """Return the fields of an entity that count, with what runs; nothing if there is no entity."""
    if entity is None:
        return {}
    running = {f"running {each.slot}": str(each.phase) for each in entity.running}
    return _timeless(entity.record)[1] | running | {"state": str(entity.state)}


def _shown(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST: Final = 100
"""The most characters of an event or a value that are shown."""


def _entity(of: Aggregate | None, ref: str) -> Entity[Any] | None:
    return None if of is None else of.entities.get(ref)
