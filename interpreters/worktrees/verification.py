"""Verification: commands that must succeed before work is merged. Each runs under a shim, as an agent's session does.

So a command's process group, and descendants outside it, end with the command. Its output is bounded, and its timeout
holds even if the runner dies. A restarted runner finds the commands of an earlier one, and ``end_left_over`` ends them
before the commands run again.
"""

import os
import shlex
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import anyio

from lifefold.core.policy.overdue import kill_after_ms, wake_after_ms
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.processes.fenced import must_be_before_its_fence
from lifefold.interpreters.processes.overdue import end_of
from lifefold.interpreters.processes.session_files import LaunchError, SessionExit, SessionSpec
from lifefold.interpreters.processes.session_process import SessionProcess, adopt, launch, output_tail
from lifefold.interpreters.worktrees.aside import DISPLACED, is_displaced

GRACE_MS: Final = 2_000
"""The time that a command has to end after TERM."""

OUTPUT_BYTES: Final = 1_000_000
"""The number of bytes of a command's output that are kept on disk."""

REASON_LINES: Final = 20
REASON_CHARS: Final = 2_000
"""The most lines and characters of the output that a reason quotes."""

QUOTED_BYTES: Final = 4 * REASON_CHARS
"""The number of bytes at the end of the output that are read for that."""

COMMAND_CHARS: Final = 200
"""The number of characters of the command line that a reason quotes."""

Quote: TypeAlias = Callable[[bytes, int], str]
"""Turns the end of an output into readable text. If the output has the given size, it may be cut off."""

Start: TypeAlias = Callable[[Path, SessionSpec], Awaitable[SessionProcess]]
"""Starts a command with its files in a folder, as ``launch`` does."""


def shown(output: bytes, _size_bytes: int) -> str:
    """Return the end of an output as printable text."""
    return plain(output)


async def verify(  # noqa: PLR0913 - all but two are keywords
    folder: Path,
    commands: Sequence[Sequence[str]],
    *,
    timeout_ms: int,
    records: Path,
    env: Mapping[str, str] | None = None,
    quote: Quote = shown,
    start: Start = launch,
) -> str | None:
    """Run the commands in ``folder`` in order, without a shell. Return None if all exit 0, else the reason of failure.

    The reason is for operators and for the agent's next prompt: the command, how it ended, the end of its output.
    ``timeout_ms`` holds for each command; its files are kept in a new folder in ``records``. ``env`` is the whole
    environment; without it, that of this process is inherited. ``quote`` formats the output for a reason. ``start``
    starts a command. Cancelling the call ends the running command. Raises ``PastFenceError`` if a command has ended at
    its fence: nothing is known of the work then.
    """
    await end_left_over(records)
    if is_displaced(folder):
        return f"Nothing could be verified: {DISPLACED}, at {folder}."
    for command in commands:
        spec = SessionSpec(
            argv=tuple(command),
            cwd=str(folder),
            env=dict(os.environ if env is None else env),
            generation=0,
            timeout_ms=timeout_ms,
            grace_ms=GRACE_MS,
            output_limit_bytes=OUTPUT_BYTES,
        )
        reason = await _objection(spec, _free(records), quote, start)
        if reason is not None:
            return reason
    return None


async def end_left_over(records: Path) -> None:
    """End running commands of an earlier runner."""
    for record in sorted(records.glob("*")):  # noqa: ASYNC240 - a handful of names
        found = await adopt(record)
        if isinstance(found, SessionProcess):
            await _kill(found)


def _free(records: Path) -> Path:
    return next(path for path in (records / str(number) for number in count(1)) if not path.exists())


async def _objection(spec: SessionSpec, record: Path, quote: Quote, start: Start) -> str | None:
    line = shlex.join(spec.argv).encode(errors="replace")
    quoted = quote(line, len(line) + 1)
    command = f"{quoted[:COMMAND_CHARS]}…" if len(quoted) > COMMAND_CHARS else quoted
    if not spec.argv:
        return f"The command `{command}` could not be started: it is empty."
    try:
        ended = await _run(spec, record, start)
    except (LaunchError, OSError, ValueError) as error:
        return f"The command `{command}` could not be started: {error}."
    must_be_before_its_fence(ended)
    if ended.outcome == "spawn-failed":
        return f"The command `{command}` could not be started: {ended.message}"
    if ended.outcome == "exited" and ended.code == 0:
        return None
    end = quote(await output_tail(record, QUOTED_BYTES), QUOTED_BYTES)
    return f"The command `{command}` {_ending(ended, spec)}. {_quotation(end)}"


async def _run(spec: SessionSpec, record: Path, start: Start) -> SessionExit:
    process = await start(record, spec)
    try:
        return await end_of(process, wake_after_ms(spec.timeout_ms, spec.grace_ms), spec.grace_ms)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await _kill(process)
        raise


async def _kill(process: SessionProcess) -> None:
    """Kill a command, and wait until it is dead."""
    await process.kill()
    await end_of(process, kill_after_ms(0), 0)


def _ending(ended: SessionExit, spec: SessionSpec) -> str:
    if ended.outcome == "timeout":
        return f"did not end within {(spec.timeout_ms or 0) / 1000:g} s and was stopped"
    if ended.outcome == "exited":
        return f"exited with status {ended.code}"
    return f"was ended by {_signal_name(ended.signal)}" if ended.signal else f"did not end by itself: {ended.message}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _quotation(output: str) -> str:
    lines = "\n".join(output.rstrip().splitlines()[-REASON_LINES:])
    return f"The end of its output:\n{lines[-REASON_CHARS:]}" if lines else "It printed nothing."
