"""On which back end of anyio a long test runs.

Tests of the engine run on both back ends, and so does one whole fleet. Every other long test runs on one of them.
"""

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


on_asyncio, on_trio = (pytest.mark.parametrize("backend", [each]) for each in BACK_ENDS)
on_both = pytest.mark.parametrize("backend", BACK_ENDS)


def on_one_in_turn(name: str, values: Iterable[Any]) -> pytest.MarkDecorator:
    """Run a test for every value on the back end whose turn it is."""
    return pytest.mark.parametrize((name, "backend"), list(zip(values, cycle(BACK_ENDS), strict=False)))
