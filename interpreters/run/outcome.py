"""What the lifecycle calls a session's end, and why it was none that was wanted: in the agent's own last words, too."""

import contextlib
from pathlib import Path
from typing import Final

from lifefold.core import session
from lifefold.core.policy.reasons import SUSPENDED_STATUS
from lifefold.interpreters.body import SessionExit, output_tail
from lifefold.interpreters.body.command import plain

TAIL_BYTES: Final = 8_192
"""How much of the end of the output is looked at."""

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


async def _last_line(directory: Path) -> str:
    """Return the last line that has anything to read in it; an empty text if there is none."""
    tail = b""
    with contextlib.suppress(OSError):  # agents can reach the file
        tail = await output_tail(directory, TAIL_BYTES)
    lines = [" ".join(line.split()) for line in plain(tail).splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return last if len(last) <= LINE_CHARS else f"{last[:LINE_CHARS]}…"
