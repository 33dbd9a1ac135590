"""On which back ends of anyio long tests run: on one always, and on the other in campaigns."""

from collections.abc import Iterable
from itertools import cycle
from typing import Any

import pytest

LATER = pytest.mark.campaign


def on(first: str, second: str) -> pytest.MarkDecorator:
    """Run a test on both back ends: on the second one in campaigns only."""
    return pytest.mark.parametrize("backend", [first, pytest.param(second, marks=LATER)])


on_asyncio_first, on_trio_first = on("asyncio", "trio"), on("trio", "asyncio")
on_both_later = pytest.mark.parametrize("backend", [pytest.param(each, marks=LATER) for each in ("asyncio", "trio")])


def on_each_in_turn(name: str, values: Iterable[Any]) -> pytest.MarkDecorator:
    """Run a test for every value on both back ends: always on the one whose turn it is."""
    turns = cycle([("asyncio", "trio"), ("trio", "asyncio")])
    every = [
        pytest.param(value, backend, marks=[LATER] if later else [], id=f"{value}-{backend}")
        for value, backends in zip(values, turns, strict=False)
        for later, backend in enumerate(backends)
    ]
    return pytest.mark.parametrize((name, "backend"), every)
