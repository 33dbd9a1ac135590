"""Workers of the SDK that have ended before their loop does.

A worker has threads that give results to the event loop. A cancelled block does not wait for their end, and the
interpreter may then be finalized below them, which can end the process by a signal.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from temporalio.worker import Worker

SHUTDOWN_S: Final = 10.0
"""How long a cancelled worker may take to end; one without a server may wait for it."""


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncGenerator[None]:
    """Let a worker work during the block, and wait for its end. Raises the error of the worker."""
    await worker.__aenter__()
    try:
        yield
    except BaseException:
        with anyio.move_on_after(SHUTDOWN_S, shield=True):
            await worker.__aexit__(*sys.exc_info())
        raise
    await worker.__aexit__(None, None, None)
