"""Commands that must agree before work counts as done. Each runs as an agent's session does, under a shim.

So a command's group and whatever escapes from it is ended with it, its output is bounded, its time-out holds although
the runner may be gone, and a runner that comes back finds what an earlier one has left: ``end_left_over`` sees to that
before the commands are run again.
"""

import os
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import anyio

from lifefold.core.policy.overdue import kill_after_ms, wake_after_ms
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.processes.overdue import end_of
from lifefold.interpreters.processes.session_files import LaunchError, SessionExit, SessionSpec
from lifefold.interpreters.processes.session_process import SessionProcess, adopt, launch, output_tail
from lifefold.interpreters.worktrees.aside import DISPLACED, is_displaced

GRACE_MS: Final = 2_000
"""How long a command that is to end may take to do so after TERM."""

OUTPUT_BYTES: Final = 1_000_000
"""How much of a command's output is kept on disk."""

REASON_LINES: Final = 20
REASON_CHARS: Final = 2_000
"""How much of it a reason quotes."""

QUOTED_BYTES: Final = 4 * REASON_CHARS
"""How much of the end of the output is looked at for that."""

COMMAND_CHARS: Final = 200
"""How much of the command line a reason quotes."""

Quote: TypeAlias = Callable[[bytes, int], str]
"""Makes a text for people of the end of an output, which has the size that was asked for if it was cut off."""


def shown(output: bytes, _size_bytes: int) -> str:
    """Return the end of an output as it can be printed, whatever is in it."""
    return plain(output)


async def verify(  # noqa: PLR0913 - each is said by its name
    folder: Path,
    commands: Sequence[Sequence[str]],
    *,
    timeout_ms: int,
    records: Path,
    env: Mapping[str, str] | None = None,
    quote: Quote = shown,
) -> str | None:
    """Run the commands in ``folder``, one after the other; return None if all exit 0, else what is wrong.

    The reason is for people and for the agent's next prompt: the command, how it ended, the end of its output.
    ``timeout_ms`` holds for each command; its files are kept in a new folder in ``records``. ``env`` is the whole
    environment; without it, ours is inherited. ``quote`` makes the text of a reason. No shell. Cancelling this ends
    the command that runs.
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
        reason = await _objection(spec, _free(records), quote)
        if reason is not None:
            return reason
    return None


async def end_left_over(records: Path) -> None:
    """End commands that an earlier runner has started and not seen the end of."""
    for record in sorted(records.glob("*")):  # noqa: ASYNC240 - a handful of names
        found = await adopt(record)
        if isinstance(found, SessionProcess):
            await _kill(found)


def _free(records: Path) -> Path:
    return next(path for path in (records / str(number) for number in count(1)) if not path.exists())


async def _objection(spec: SessionSpec, record: Path, quote: Quote) -> str | None:
    line = shlex.join(spec.argv).encode(errors="replace")
    said = quote(line, len(line) + 1)
    command = f"{said[:COMMAND_CHARS]}…" if len(said) > COMMAND_CHARS else said
    if not spec.argv:
        return f"The command `{command}` could not be started: it is empty."
    try:
        ended = await _run(spec, record)
    except (LaunchError, OSError, ValueError) as error:
        return f"The command `{command}` could not be started: {error}."
    if ended.outcome == "spawn-failed":
        return f"The command `{command}` could not be started: {ended.message}"
    if ended.outcome == "exited" and ended.code == 0:
        return None
    end = quote(await output_tail(record, QUOTED_BYTES), QUOTED_BYTES)
    return f"The command `{command}` {_ending(ended, spec)}. {_quotation(end)}"


async def _run(spec: SessionSpec, record: Path) -> SessionExit:
    process = await launch(record, spec)
    try:
        return await end_of(process, wake_after_ms(spec.timeout_ms, spec.grace_ms), spec.grace_ms)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await _kill(process)
        raise


async def _kill(process: SessionProcess) -> None:
    """Kill a command, and see it dead."""
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
