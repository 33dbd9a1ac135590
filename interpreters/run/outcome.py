"""What the lifecycle calls a session's end, why it was none that was wanted, and what it has cost.

The reason and the cost are the agent's own last words.
"""

import contextlib
from pathlib import Path
from typing import Final

from anyio import to_thread

from lifefold.core import session
from lifefold.core.policy.reasons import SUSPENDED_STATUS
from lifefold.interpreters.body import SessionExit, output_tail
from lifefold.interpreters.body.command import plain
from lifefold.interpreters.run import usage

TAIL_BYTES: Final = 8_192
"""How much of the end of the output is looked at for a reason."""

LINE_CHARS: Final = 300
"""How much of the last line an error quotes: it gets into prompts, and onto every screen."""


async def outcome(
    ended: SessionExit, directory: Path, *, cooperative: bool = False
) -> session.Success | session.Error | session.Timeout | session.Suspended:
    """Return what the lifecycle calls the end of the session in a run directory.

    ``cooperative``: it was one of an agent in Python, whose exit status may say that it is suspended.

    An error says how the session ended, and ends with the last line of its output: ``exit status 1: no api key``.
    """
    if ended.outcome == "timeout":
        return session.Timeout()
    if ended.outcome == "exited" and ended.code == 0:
        return session.Success()
    if cooperative and ended.code == SUSPENDED_STATUS:
        return session.Suspended(asked=ended.outcome != "exited")
    said = await _last_line(directory)
    return session.Error(f"{ended.message}: {said}" if said else ended.message)


async def spent(directory: Path) -> session.Usage:
    """Return what the session in a run directory says that it has cost. An agent's output may take long to read."""
    return await to_thread.run_sync(usage.usage_of, await _tail(directory, usage.TAIL_BYTES))


async def _last_line(directory: Path) -> str:
    """Return the last line that has anything to read in it, and not only a cost; an empty text if there is none."""
    lines = [" ".join(line.split()) for line in plain(await _tail(directory, TAIL_BYTES)).splitlines()]
    last = next((line for line in reversed(lines) if line and not usage.is_own(line)), "")
    return last if len(last) <= LINE_CHARS else f"{last[:LINE_CHARS]}…"


async def _tail(directory: Path, size_bytes: int) -> bytes:
    """Return the end of the output, or nothing if it cannot be read: agents can reach the file."""
    with contextlib.suppress(OSError):
        return await output_tail(directory, size_bytes)
    return b""
