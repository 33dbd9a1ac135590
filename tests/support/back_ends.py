"""On which back ends of anyio tests run: on one always, and long ones on the other in campaigns."""

from collections.abc import Iterable
from itertools import cycle
from typing import Any, Final
from zlib import crc32

import pytest

LATER = pytest.mark.campaign
BACK_ENDS: Final = ("asyncio", "trio")


@pytest.fixture
def in_turn(request: pytest.FixtureRequest) -> str:
    """Return the back end of a test: about half of the tests of a file run on each, always the same ones.

    It is for files whose tests take all that depends on a back end from one place, such as how a git command is run.
    Each file has ``anyio_backend = in_turn``.
    """
    return BACK_ENDS[crc32(request.node.name.encode()) % 2]


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
