"""The declarations of records, events and activities name existing fields."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from lifefold import effects
from lifefold.core.lifecycles import task
from lifefold.effects import Activity
from lifefold.interpreters import views


def kinds() -> Iterator[type[msgspec.Struct]]:
    """Yield every shipped kind of struct that may have something opaque."""
    machines = [
        *views.machines().values(),
        *(m for s in views.systems().values() for a in s.aggregates.values() for m in a.machines.values()),
    ]
    for machine in machines:
        yield machine.record
        yield from (row.event for row in machine.rows)
    found: list[Any] = [getattr(effects, name) for name in effects.__all__]
    yield from (each for each in found if isinstance(each, type) and issubclass(each, Activity))
    yield task.Brief


OPAQUE = sorted({(kind, name) for kind in kinds() for name in getattr(kind, "opaque", ())}, key=str)


@pytest.mark.parametrize(
    ("kind", "name"), OPAQUE, ids=[f"{kind.__module__}.{kind.__qualname__}.{name}" for kind, name in OPAQUE]
)
def test_what_is_opaque_is_a_text_or_a_number_of_its_own(kind: type[msgspec.Struct], name: str) -> None:
    """Only these have a form without contents."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    assert types[name] in {str, int}
