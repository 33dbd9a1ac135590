"""Where two runs part: the first entry of each stream that differs, and the difference of the states after it.

Streams are compared one by one, because entries of different aggregates have no fixed order. Times, and fields that
depend on them, do not count: two runs of one plan never have the same times.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from lifefold.core.kernel import Aggregate, Entity, Event, System
from lifefold.interpreters.recorder.recording import Recorded, fields_of, recorded
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
    for each in entries:
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
    moves = tuple((each.entity, _timeless(each.event), str(each.after.state)) for each in reaction.transitions)
    return envelope.entity, _timeless(envelope.event), envelope.sender, envelope.slot, moves


def _timeless(event: Event) -> tuple[str, tuple[Any, ...]]:
    """Return an event without its durations and times."""
    names = (name for name in event.__struct_fields__ if not name.endswith("_ms"))
    return type(event).__name__, tuple(getattr(event, name) for name in names)


def _place(of: Recorded | None) -> Place | None:
    if of is None:
        return None
    envelope = of.step.envelope
    return Place(of.seq, envelope.entity or of.entry.stream, repr(envelope.event), envelope.actor)


def _differences(before: Aggregate | None, left: Recorded | None, right: Recorded | None) -> Iterator[Difference]:
    """Yield the fields that differ after the entries. A side without the entry is in the state before it."""
    ours, theirs = (before if each is None else each.step.reaction.aggregate for each in (left, right))
    changed = [ref for each in (left, right) if each is not None for ref in each.step.reaction.changed]
    for ref in dict.fromkeys(changed):
        one, other = fields_of(_entity(ours, ref)), fields_of(_entity(theirs, ref))
        for field in dict.fromkeys((*one, *other)):
            if not field.endswith("_ms") and one.get(field) != other.get(field):
                yield Difference(ref, field, one.get(field, ""), other.get(field, ""))


def _entity(of: Aggregate | None, ref: str) -> Entity[Any] | None:
    return None if of is None else of.entities.get(ref)
