"""Waiting for a session whose shim may have been stopped: beyond its limits the runner wakes it, then kills it.

The limits and their reasons are the core's, see ``lifefold.core.policy.overdue``.
"""

import math
from collections.abc import Callable
from typing import Final

import anyio
from msgspec.structs import replace

from lifefold.core.policy.overdue import kill_after_ms
from lifefold.interpreters.processes.session_files import SessionExit
from lifefold.interpreters.processes.session_process import SessionProcess

KILLED: Final = "its shim did not end it in time, and was killed with all that was left of it"
"""How the record of a session's end explains it."""


def _nothing(_said: str) -> None:
    """Tell no one."""


async def end_of(
    process: SessionProcess, wake_ms: int | None, grace_ms: int, tell: Callable[[str], None] = _nothing
) -> SessionExit:
    """Wait until a session is over, and say how it ended.

    After ``wake_ms`` (None: never) its shim is woken, and killed if the session still is not over when its grace and
    the margin have passed; a session whose end is lost by that has timed out. ``tell`` is told of both. Raises
    SurvivorsError if processes live on after SIGKILL.
    """
    with anyio.move_on_after(math.inf if wake_ms is None else wake_ms / 1_000):
        return await process.wait()
    tell("its session lasts longer than it may, and is not ended by its shim: the shim is woken")
    process.wake()
    with anyio.move_on_after(kill_after_ms(grace_ms) / 1_000):
        return await process.wait()
    tell("its session's shim does not act: it is killed, with the session")
    process.overpower()
    ended = await process.wait()
    return replace(ended, outcome="timeout", message=KILLED) if ended.outcome == "lost" else ended
