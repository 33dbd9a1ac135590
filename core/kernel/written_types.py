"""The types that the log of a machine can have, each with the types of its fields."""

import typing
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from typing import Any

import msgspec

from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.row import Does


def written_types(machine: Machine[Any]) -> Iterator[str]:
    """Yield every struct type that the log of a machine can have, with the types and defaults of its fields."""
    parts = dict.fromkeys(part for _, part in _written(machine) if isinstance(part, type))
    yield from (_shape(part) for part in parts if issubclass(part, msgspec.Struct))


@cache
def _shape(of: type[msgspec.Struct]) -> str:
    fields = ", ".join(f"{name}: {_hints(of)[name]!r}" for name in of.__struct_fields__)
    return f"{of.__module__}.{of.__qualname__}({fields}) {of.__struct_defaults__!r}"


@lru_cache(maxsize=1_000)
def _written(machine: Machine[Any]) -> tuple[tuple[Any, Any], ...]:
    """Return the types of a machine's record, events, activities and effects, each with all types within it."""
    activities = (span.during.activity for span in machine.spans.values() if isinstance(span.during, Does))
    effects = (effect for row in machine.rows for effect in row.effects)
    kinds = dict.fromkeys((machine.record, *machine.events, *activities, *effects))
    return tuple((kind, part) for kind in kinds for part in _parts(kind))


def must_be_ordered(machine: Machine[Any]) -> None:
    """Raise ``TypeError`` if a written type has a set in it: its order differs between processes."""
    for kind, part in _written(machine):
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
            waiting += _hints(part).values()


@cache
def _hints(of: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the types of a struct's fields and class variables."""
    return typing.get_type_hints(of)
