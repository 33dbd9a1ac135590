"""Waiting for a session whose shim may be stopped: an overdue shim is woken, and then killed.

The limits and their reasons are in ``lifefold.core.policy.overdue``.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

import anyio
from msgspec.structs import replace

from lifefold.core.policy.overdue import kill_after_ms
from lifefold.interpreters.processes.session_files import SessionExit
from lifefold.interpreters.processes.session_process import SessionProcess

KILLED: Final = "its shim did not end it in time, and was killed with all that was left of it"
"""The explanation in the record of such a session's end."""


def _nothing(_text: str) -> None:
    """Ignore a notice."""


async def end_of(
    process: SessionProcess,
    wake_ms: int | None,
    grace_ms: int,
    tell: Callable[[str], None] = _nothing,
    limited: Callable[[float], AbstractContextManager[object]] = anyio.move_on_after,
) -> SessionExit:
    """Wait until a session is over, and return how it ended.

    After ``wake_ms`` (None: never) its shim is woken. The shim is killed if the session is not over after its grace and
    the margin. A session whose end is lost by that counts as timed out. ``tell`` receives a notice for both steps.
    ``limited`` returns a block that ends after so many seconds, or later if the limit is held.
    Raises SurvivorsError if processes survive SIGKILL.
    """
    found: list[SessionExit] = []
    with limited(math.inf if wake_ms is None else wake_ms / 1_000):
        found.append(await process.wait())
    if found:
        return found[0]
    tell("its session lasts longer than it may, and is not ended by its shim: the shim is woken")
    process.wake()
    with anyio.move_on_after(kill_after_ms(grace_ms) / 1_000):
        return await process.wait()
    tell("its session's shim does not act: it is killed, with the session")
    process.overpower()
    ended = await process.wait()
    return replace(ended, outcome="timeout", message=KILLED) if ended.outcome == "lost" else ended
