"""Waiting for a session whose shim may be stopped: an overdue shim is woken, and then killed.

The limits and their reasons are in ``lifefold.core.policy.overdue``.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
from msgspec.structs import replace

from lifefold.core.policy.overdue import kill_after_ms
from lifefold.interpreters.processes.session_files import SessionExit
from lifefold.interpreters.processes.session_process import SessionProcess

KILLED: Final = "its shim did not end it in time, and was killed with all that was left of it"
"""The explanation in the record of such a session's end."""


def _nothing(_text: str) -> None:
    """Ignore a notice."""


Within: TypeAlias = Callable[[float, Callable[[], Awaitable[SessionExit]]], Awaitable[SessionExit | None]]
"""Awaits the end of a session for some seconds; None if it lasts longer."""


async def in_time(seconds: float, wait: Callable[[], Awaitable[SessionExit]]) -> SessionExit | None:
    """Await the end of a session for some seconds."""
    with anyio.move_on_after(seconds):
        return await wait()
    return None


async def end_of(
    process: SessionProcess,
    wake_ms: int | None,
    grace_ms: int,
    tell: Callable[[str], None] = _nothing,
    within: Within = in_time,
) -> SessionExit:
    """Wait until a session is over, and return how it ended.

    After ``wake_ms`` (None: never) its shim is woken. The shim is killed if the session is not over after its grace and
    the margin. A session whose end is lost by that counts as timed out. ``tell`` receives a notice for both steps.
    ``within`` awaits the end for so many seconds, or longer while the limit is held.
    Raises SurvivorsError if processes survive SIGKILL.
    """
    ended = await within(math.inf if wake_ms is None else wake_ms / 1_000, process.wait)
    if ended is not None:
        return ended
    tell("its session lasts longer than it may, and is not ended by its shim: the shim is woken")
    process.wake()
    with anyio.move_on_after(kill_after_ms(grace_ms) / 1_000):
        return await process.wait()
    tell("its session's shim does not act: it is killed, with the session")
    process.overpower()
    ended = await process.wait()
    return replace(ended, outcome="timeout", message=KILLED) if ended.outcome == "lost" else ended
