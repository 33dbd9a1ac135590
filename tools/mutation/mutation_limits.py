"""Mutants with a threshold that is off by one: one guard, action or duration sees a number one higher or lower.

The thresholds are found in the code. They are the limits of the record that a guard, an action or a duration reads. A
record without limits has as thresholds the numbers that are equal in all reachable records. A guard that reads no
threshold is off by one in every number that it reads.
"""

import types
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from lifefold.core.kernel import After, Record, Row, Step, replace
from tabulated import Tabulated

Path = tuple[str, ...]
"""The names of the fields that lead to a number in a record."""


class Number(NamedTuple):
    """A number in a record; ``fixed`` if it is equal in all records."""

    path: Path
    fixed: bool


def off_by_one(table: Tabulated) -> Iterator[tuple[int, Row[Any], str]]:
    """Yield rows with a guard or action that is off by one, each with its place and its description."""
    numbers = _numbers(table)
    for place, row in enumerate(table.machine.rows):
        if row.when is not None:
            seen = _seen(row.when, table, numbers)
            for path, by in _shifts(table, [n for n in seen if n.fixed] or seen):
                yield place, replace(row, when=_deceived(row.when, path, by)), f"its guard sees {_words(path, by)}"
        if row.action is not None:
            for path, by in _shifts(table, [n for n in _seen(row.action, table, numbers) if n.fixed]):
                yield place, replace(row, action=_misled(row.action, path, by)), f"its action sees {_words(path, by)}"


def wrong_durations(table: Tabulated) -> Iterator[tuple[str, After[Any], str]]:
    """Yield timers with a duration that is off by one, each with its slot and its description."""
    numbers = _numbers(table)
    for slot, span in table.machine.spans.items():
        if isinstance(span.during, After):
            lasts = span.during.duration_ms
            for path, by in _shifts(table, [n for n in _seen(lasts, table, numbers) if n.fixed]):
                yield slot, replace(span.during, duration_ms=_mistimed(lasts, path, by)), f"sees {_words(path, by)}"


def _words(path: Path, by: int) -> str:
    return f"{'.'.join(path)} one {'higher' if by > 0 else 'lower'}"


def _numbers(table: Tabulated) -> list[Number]:
    """Return all numbers of the records, without identifiers and timestamps."""
    initial = table.machine.initial
    skipped = {"at_ms", *initial.identifiers, *initial.timestamps}
    records = list(dict.fromkeys(record for record, _ in table.calls))
    paths = [path for path in _paths(initial) if not skipped.intersection(path)]
    limits = [path for path in paths if path[0] == "limits"]
    return [
        Number(path, path in limits if limits else len({_get(record, path) for record in records}) <= 1)
        for path in paths
    ]


def _paths(value: msgspec.Struct) -> Iterator[Path]:
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if isinstance(held, msgspec.Struct):
            yield from ((name, *path) for path in _paths(held))
        elif type(held) is int or _is_of_numbers(held):
            yield (name,)


def _is_of_numbers(held: Any) -> TypeGuard[tuple[int, ...]]:
    return isinstance(held, tuple) and set(map(type, cast("tuple[object, ...]", held))) == {int}


def _get(value: Any, path: Path) -> Any:
    for name in path:
        value = getattr(value, name, None)
    return value


def _shifted(value: Any, path: Path, by: int) -> Any:
    name, *rest = path
    held = getattr(value, name)
    if rest:
        return replace(value, **{name: _shifted(held, tuple(rest), by)})
    return replace(value, **{name: tuple(each + by for each in held) if _is_of_numbers(held) else held + by})


def _shifts(table: Tabulated, numbers: Sequence[Number]) -> Iterator[tuple[Path, int]]:
    """Yield the numbers that can be one higher or lower; a record may refuse limits that cannot work."""
    for path, _ in numbers:
        for by in (1, -1):
            try:
                _shifted(table.machine.initial, path, by)
            except ValueError:
                continue
            yield path, by


def _deceived(when: Callable[[Any, Any], bool], path: Path, by: int) -> Callable[[Any, Any], bool]:
    @wraps(when)
    def deceived(record: Record, event: Any) -> bool:
        return when(_shifted(record, path, by), event)

    return deceived


def _misled(action: Callable[[Any, Any], Step[Any, Any]], path: Path, by: int) -> Callable[[Any, Any], Step[Any, Any]]:
    """Return an action that sees another limit; its result has the original limit."""

    @wraps(action)
    def misled(record: Record, event: Any) -> Step[Any, Any]:
        done = action(_shifted(record, path, by), event)
        return Step(_shifted(done.record, path, -by), done.effects)

    return misled


def _mistimed(duration_ms: Callable[[Any], int | None], path: Path, by: int) -> Callable[[Any], int | None]:
    @wraps(duration_ms)
    def mistimed(record: Record) -> int | None:
        return duration_ms(_shifted(record, path, by))

    return mistimed


def _seen(rule: Callable[..., Any], table: Tabulated, numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers with a name in a function, or in a function that it calls."""
    named = _names(rule, rule.__module__.partition(".")[0], _classes(table.machine.initial), set())
    return [number for number in numbers if named.issuperset(number.path[-1:])]


def _classes(value: msgspec.Struct) -> list[type]:
    inner = [getattr(value, name) for name in value.__struct_fields__]
    return [type(value), *(kind for each in inner if isinstance(each, msgspec.Struct) for kind in _classes(each))]


def _names(rule: object, package: str, classes: Sequence[type], visited: set[object]) -> set[str]:
    """Return the names in a function, in the functions of the package that it calls, and in methods of records."""
    function = rule.fget if isinstance(rule, property) else rule
    if not isinstance(function, types.FunctionType) or function in visited:
        return set()
    if function.__module__.partition(".")[0] != package:
        return set()
    visited.add(function)
    names = set(_in_code(function.__code__))
    called = [function.__globals__.get(name) for name in names]
    called += [vars(each).get(name) for kind in classes for each in kind.__mro__ for name in names]
    called += [cell.cell_contents for cell in function.__closure__ or ()]
    return names.union(*(_names(each, package, classes, visited) for each in called))


def _in_code(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _in_code(each)
