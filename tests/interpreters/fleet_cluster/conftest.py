"""The back end of the tests of clusters: the library of Temporal runs on asyncio only."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
