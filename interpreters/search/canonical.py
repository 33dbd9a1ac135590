"""One canonical form for all aggregates with the same meaning, so that a search without an end comes to one.

The form drops what no rule can distinguish. It drops the number of inputs. Of generations and ``identifiers`` it keeps
which are equal and in which order they were given. Of ``timestamps`` it keeps their distances, up to the horizon of
the record. A timer keeps its deadline only where the record needs the time. Elsewhere it may elapse at any time, which
allows more than the rules do. Of ``opaque`` fields it keeps whether they are empty.

Rules treat both forms alike, unless a record's declarations are wrong. The cross-check finds such declarations (see
``cross_check``).
"""

import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Any, Final, TypeGuard

import msgspec

from lifefold.core.kernel import START_MS, AggregateType, Entity, Envelope, Running, replace

NOW_MS: Final = START_MS
"""The time of all inputs of a reduced search."""

Change = Mapping[str, Callable[[int], int]]
"""The new numbers in fields of these names."""

Found = frozenset[tuple[str, int]]
"""Numbers, each with the name of its field."""

NONE: Final[Found] = frozenset()


class Canonical:
    """Brings the aggregates of one type into canonical form: first each entity alone, then the identifiers of all."""

    def __init__(self, of: AggregateType, kept: frozenset[str] = frozenset()) -> None:
        """Prepare for a type. The identifiers in ``kept`` do not change: other aggregates know them."""
        records = [machine.record for machine in of.machines.values()]
        self.identifiers: Final = frozenset(name for record in records for name in record.identifiers) - kept
        self._clocked: Final = {name for name, machine in of.machines.items() if machine.clocked}
        self._changes: Final[dict[Found, Change | None]] = {}

    def identifiers_of(self, entity: Entity[Any]) -> Found:
        """Return the identifiers of an entity."""
        return numbers(entity, self.identifiers) if self.identifiers else NONE

    def change(self, identifiers: Found) -> Change | None:
        """Return the new identifiers of an aggregate; None if they do not change."""
        if identifiers not in self._changes:
            of: dict[str, set[int]] = {name: set() for name in self.identifiers}
            for name, number in identifiers:
                of[name].add(number)
            ranks = {name: _ranks(found) for name, found in of.items()}
            stays = all(ranks[name][number] == number for name, number in identifiers)
            self._changes[identifiers] = None if stays else {name: rank.__getitem__ for name, rank in ranks.items()}
        return self._changes[identifiers]

    def alone(self, entity: Entity[Any]) -> Entity[Any]:
        """Return an entity in canonical form, without its identifiers: they depend on the other entities."""
        clocked = entity.ref.partition(":")[0] in self._clocked
        latest_ms = entity.record.at_ms if clocked else None
        record = entity.record.normal_form()
        simple = _at_one_time(record) if clocked else record
        if not entity.running and not entity.postponed:
            return _blank(Entity(entity.ref, simple, 0, NOW_MS))
        rank = _ranks(
            {component.generation for component in entity.running} | {each.generation for each in entity.postponed}
        )
        running = tuple(
            Running(
                component.slot,
                rank[component.generation],
                component.activity,
                _deadline(component, latest_ms),
                component.phase,
            )
            for component in entity.running
        )
        postponed = tuple(
            Envelope(each.entity, each.event, NOW_MS, each.actor, "", each.slot, rank[each.generation])
            for each in entity.postponed
        )
        return _blank(Entity(entity.ref, simple, max(rank.values()), NOW_MS, running, postponed))


def _blank(entity: Entity[Any]) -> Entity[Any]:
    one: Entity[Any] = blank(entity)
    return one


def _deadline(component: Running, latest_ms: int | None) -> int:
    """Return the deadline of a timer; 0 for an activity. An overdue timer is due now."""
    if component.activity is not None:
        return 0
    return NOW_MS if latest_ms is None else max(NOW_MS, NOW_MS + component.deadline_ms - latest_ms)


def _at_one_time(record: Any) -> Any:
    """Move the timestamps of a record to the time of the search; distances beyond the horizon shrink to it.

    Comparisons of two timestamps, with or without a duration between them, keep their results.
    """
    names, at_ms, horizon_ms = frozenset(("at_ms", *record.timestamps)), record.at_ms, record.horizon_ms()
    timestamps = sorted({moment_ms for _, moment_ms in numbers(record, names)})
    moved = {at_ms: NOW_MS}
    for later, each in pairwise((at_ms, *(m for m in reversed(timestamps) if m < at_ms))):
        moved[each] = moved[later] - min(later - each, horizon_ms or later - each)
    for earlier, each in pairwise((at_ms, *(m for m in timestamps if m > at_ms))):
        moved[each] = moved[earlier] + min(each - earlier, horizon_ms or each - earlier)
    if all(before == after for before, after in moved.items()):
        return record
    return rewritten(record, dict.fromkeys(names, moved.__getitem__))


def _ranks(found: set[int]) -> dict[int, int]:
    """Number them from 1 in their order; numbers up to 0 stay: they identify nothing."""
    above = sorted(number for number in found if number > 0)
    return {number: number for number in found if number <= 0} | {number: n for n, number in enumerate(above, 1)}


def numbers(value: Any, names: frozenset[str]) -> Found:
    """Return the numbers in fields of these names, at any depth."""
    found: set[tuple[str, int]] = set()
    _gather(value, names, found)
    return frozenset(found)


def _gather(value: Any, names: frozenset[str], found: set[tuple[str, int]]) -> None:
    if isinstance(value, msgspec.Struct):
        for name in _fields(type(value), names):
            held = getattr(value, name)
            if name not in names:
                if held is not None:
                    _gather(held, names, found)
            elif type(held) is int:
                found.add((name, held))
            else:
                found.update((name, number) for number in _parts(held) if type(number) is int)
    for each in _parts(value):
        _gather(each, names, found)


def rewritten(value: Any, change: Change) -> Any:
    """Return a value with new numbers in fields of these names, at any depth, also in tuples."""
    if isinstance(value, msgspec.Struct):
        news: dict[str, Any] = {}
        for name in _fields(type(value), frozenset(change)):
            held = getattr(value, name)
            new = _changed(held, change[name]) if name in change else rewritten(held, change)
            if new is not held:
                news[name] = new
        return replace(value, **news) if news else value
    before = _parts(value)
    after = tuple(rewritten(each, change) for each in before)
    return after if any(new is not old for new, old in zip(after, before, strict=True)) else value


def blank(value: Any) -> Any:
    """Return a value without the contents of its opaque texts and numbers, at any depth."""
    if _is_tuple(value):
        return _blank_parts(value)
    kind: type[object] = value.__class__
    fields = _BLANK_FIELDS.get(kind)
    if fields is None:
        fields = _BLANK_FIELDS[kind] = _fields_to_blank(kind)
    news: dict[str, Any] = {}
    for name, is_opaque in fields:
        held = getattr(value, name)
        new = _blank_of(kind, name, held) if is_opaque and held else blank(held)
        if new is not held:
            news[name] = new
    return replace(value, **news) if news else value


def _blank_parts(before: tuple[Any, ...]) -> tuple[Any, ...]:
    after = tuple(map(blank, before))
    return after if any(new is not old for new, old in zip(after, before, strict=True)) else before


_BLANK_FIELDS: Final[dict[type[object], tuple[tuple[str, bool], ...]]] = {}
"""By type: the fields that are opaque or may contain opaque ones, and whether each is opaque."""


def _fields_to_blank(kind: type[object]) -> tuple[tuple[str, bool], ...]:
    if not issubclass(kind, msgspec.Struct):
        return ()
    opaque = frozenset[str](getattr(kind, "opaque", ()))
    return tuple((name, name in opaque) for name in _fields(kind, opaque))


class Unusable(ValueError):
    """A record, an event or an activity has an impossible declaration; the message says what is possible."""


def _blank_of(kind: type, name: str, held: Any) -> Any:
    if type(held) not in _BLANKS:
        is_a = f"{kind.__name__}.{name} is opaque, and a {type(held).__name__}"
        raise Unusable(f"{is_a}; texts (str) and whole numbers (int) can be opaque")
    return _BLANKS[type(held)]


_BLANKS: Final[Mapping[type, Any]] = {str: "…", int: 1}
"""By type, the value that replaces every opaque value that is not empty."""


def _changed(held: Any, change: Callable[[int], int]) -> Any:
    if type(held) is int:
        return change(held)
    return tuple(_changed(each, change) for each in _parts(held)) or held


def _parts(value: Any) -> tuple[Any, ...]:
    """Return the items of a tuple; an empty tuple for any other value."""
    return value if _is_tuple(value) else ()


def _is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


@cache
def _fields(kind: type[msgspec.Struct], names: frozenset[str]) -> tuple[str, ...]:
    """Return the fields of these names, and the fields that may contain such fields."""
    hints = typing.get_type_hints(kind)
    return tuple(name for name in kind.__struct_fields__ if name in names or not _is_plain(hints[name]))


def _is_plain(hint: Any) -> bool:
    """Tell whether the type of a field has no fields of its own."""
    components = typing.get_args(hint)
    if components and typing.get_origin(hint) is not typing.Literal:
        return all(component is Ellipsis or _is_plain(component) for component in components)
    unreduced = isinstance(hint, type) and issubclass(hint, str | int | float | bytes | Enum)
    return unreduced or hint is type(None) or typing.get_origin(hint) is typing.Literal
