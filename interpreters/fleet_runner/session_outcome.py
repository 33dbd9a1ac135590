"""The outcome of a session, the reason of a failure, and the cost.

The reason and the cost come from the last lines of the agent's output.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from anyio import to_thread

from lifefold.core.lifecycles import session
from lifefold.core.policy import ends
from lifefold.core.policy.reasons import SUSPENDED_STATUS
from lifefold.interpreters.fleet_runner import usage
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets
from lifefold.interpreters.processes import SessionExit, output_tail

TAIL_BYTES: Final = 8_192
"""The bytes at the end of the output that are searched for a reason."""

LINE_CHARS: Final = 300
"""The longest quotation of the last line in an error, which prompts and screens repeat."""


def _nothing(_said: str) -> str:
    return ""


async def outcome(
    ended: SessionExit,
    directory: Path,
    secrets: Secrets = NO_SECRETS,
    lacks: Callable[[str], str] = _nothing,
    program: ends.Program = ends.Program.ANY,
) -> session.Success | session.Error | session.Timeout | session.Suspended:
    """Return the outcome of the session in a run directory.

    An error has the end of the session and the last line of its output: ``exit status 1: no api key``. It contains none
    of the ``secrets``. If the session ended by itself, ``lacks`` adds a missing variable, judged by the output.
    ``program`` gives exit statuses their meaning; that of a cooperative agent may mean that it is suspended.
    """
    if ended.outcome == "timeout":
        return session.Timeout()
    if ended.outcome == "exited" and ended.code == 0:
        return session.Success()
    if program is ends.Program.COOPERATIVE and ended.code == SUSPENDED_STATUS:
        return session.Suspended(asked=ended.outcome != "exited")
    size_bytes = TAIL_BYTES + secrets.longest_bytes
    output = secrets.quotable(await _tail(directory, size_bytes), size_bytes)
    lacking = lacks(output) if ended.outcome == "exited" else ""
    said, message = _last_line(output), secrets.hidden(ended.message)
    message = f"{message}: {said}" if said else message
    return session.Error(f"{message} ({lacking})" if lacking else message, _diagnosis(ended, said, program))


def program_of(command: tuple[str, ...], *, cooperative: bool = False) -> ends.Program:
    """Return the program whose exit statuses a command has, by its name; an agent in Python is cooperative."""
    if cooperative:
        return ends.Program.COOPERATIVE
    name = Path(command[0]).name if command else ""
    return ends.Program.CLAUDE if name == ends.Program.CLAUDE else ends.Program.ANY


def _diagnosis(ended: SessionExit, said: str, program: ends.Program) -> ends.Diagnosis:
    """Return the diagnosis of an end: from the output if the session ended by itself, else from the runner's cause."""
    match ended.outcome:
        case "exited":
            return ends.diagnosis(said, ended.code, program)
        case "signalled":
            return ends.by_status(None if ended.signal is None else -ended.signal)
        case "spawn-failed":
            return ends.diagnosis(ended.message)
        case "lost":
            return ends.Diagnosis()
        case _:
            return ends.LEFT


async def spent(directory: Path) -> session.Usage:
    """Return the cost that the session in a run directory reports; reading its output may take long."""
    return await to_thread.run_sync(usage.usage_of, await _tail(directory, usage.TAIL_BYTES))


def _last_line(output: str) -> str:
    """Return the last line with text that is not only a cost; empty without one."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    last = next((line for line in reversed(lines) if line and not usage.is_own(line)), "")
    return last if len(last) <= LINE_CHARS else f"{last[:LINE_CHARS]}…"


async def _tail(directory: Path, size_bytes: int) -> bytes:
    """Return the end of the output; empty if it is unreadable, because agents can change the file."""
    with contextlib.suppress(OSError):
        return await output_tail(directory, size_bytes)
    return b""
