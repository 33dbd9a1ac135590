"""The outcome of a session, the reason of a failure, and the cost.

The reason and the cost come from the last lines of the agent's output.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from anyio import to_thread

from lifefold.core.lifecycles import session
from lifefold.core.policy import ends
from lifefold.core.policy.reasons import SUSPENDED_STATUS
from lifefold.interpreters.adapters.command import is_cost
from lifefold.interpreters.fleet_file.units import format_duration
from lifefold.interpreters.fleet_runner import last_words, usage
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets
from lifefold.interpreters.processes import SessionExit, output_tail
from lifefold.interpreters.processes.command import plain

TAIL_BYTES: Final = 8_192
"""The bytes at the end of the output that are searched for a reason."""

LINE_CHARS: Final = 300
"""The longest quotation of the last line in an error, which prompts and screens repeat."""


def _nothing(_said: str) -> str:
    return ""


class Agent(msgspec.Struct, frozen=True):
    """What explains the end of an agent's session.

    ``program`` gives exit statuses their meaning; that of a cooperative agent may mean that it is suspended. ``lacks``
    returns a missing variable, judged by the output of a session that ended by itself. ``limit_ms`` is the time limit.
    ``asks``: operators, or the standing answers of the fleet file, decide about its tools.
    """

    program: ends.Program = ends.Program.ANY
    lacks: Callable[[str], str] = _nothing
    limit_ms: int | None = None
    asks: bool = False


ANY_AGENT: Final = Agent()
"""An agent of which nothing is known."""


async def outcome(
    ended: SessionExit, directory: Path, secrets: Secrets = NO_SECRETS, agent: Agent = ANY_AGENT
) -> session.Success | session.Error | session.Timeout | session.Suspended:
    """Return the outcome of the session in a run directory.

    An error has the end of the session and the agent's last words: ``exit status 1: no api key``. Those are the last
    line of its output, or the sentence in a line of JSON. A program that exits with 0 has failed if its result reports
    an error. The error contains none of the ``secrets``.
    """
    if ended.outcome == "timeout":
        return session.Timeout("" if agent.limit_ms is None else over(agent.limit_ms))
    output = await _tail(directory, usage.TAIL_BYTES)
    reported = await to_thread.run_sync(last_words.of_error, output) if ended.outcome == "exited" else None
    if ended.outcome == "exited" and ends.is_success(ended.code, reports_error=reported is not None):
        return session.Success()
    if agent.program is ends.Program.COOPERATIVE and ended.code == SUSPENDED_STATUS:
        return session.Suspended(asked=ended.outcome != "exited")
    if reported is not None and ended.code == 0:
        what = "its result reports an error, with exit status 0"
        return session.Error(_with(what, _quoted(reported, secrets)), ends.diagnosis(reported.known, None))
    return await to_thread.run_sync(_error, ended, output, secrets, agent)


def over(limit_ms: int) -> str:
    """Return the message of a time-out."""
    return f"session_timeout of {format_duration(limit_ms)} is over"


def _error(ended: SessionExit, output: bytes, secrets: Secrets, agent: Agent) -> session.Error:
    text, words = _end_of(output, secrets), last_words.at_the_end(output)
    said = _said(words, text, secrets)
    message, lacking, known = secrets.hidden(ended.message), "", said
    if ended.outcome == "exited":
        message, lacking = message + ends.in_words(ended.code), agent.lacks(text)
    if words is not None:
        known = words.known
    return session.Error(with_hint(_with(message, said), lacking), _diagnosis(ended, known, agent.program))


def with_hint(message: str, lacking: str) -> str:
    """Return a message with what its agent may lack."""
    return f"{message} ({lacking})" if lacking else message


def _with(message: str, said: str) -> str:
    return f"{message}: {said}" if said else message


async def last_said(directory: Path, secrets: Secrets = NO_SECRETS) -> str:
    """Return the agent's last words in the output of a session; empty without any."""
    output = await _tail(directory, usage.TAIL_BYTES)
    words = await to_thread.run_sync(last_words.at_the_end, output)
    return _said(words, _end_of(output, secrets), secrets)


def _said(words: last_words.LastWords | None, text: str, secrets: Secrets) -> str:
    return _last_line(text) if words is None else _quoted(words, secrets)


def _quoted(words: last_words.LastWords, secrets: Secrets) -> str:
    """Return redacted words on one line. White space is shortened last, because a secret value can have it."""
    said = plain((words.said or words.kind).encode("utf-8", "replace"))
    return short(" ".join(secrets.hidden(said).split()))


def _end_of(output: bytes, secrets: Secrets) -> str:
    """Return the redacted end of an output that is quoted from."""
    size_bytes = TAIL_BYTES + secrets.longest_bytes
    return secrets.quotable(output[-size_bytes:], size_bytes)


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
        case _:
            return by_cause(ended)


def by_cause(ended: SessionExit) -> ends.Diagnosis:
    """Return the diagnosis of a session that did not end by itself."""
    match ended.outcome:
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
    return short(next((line for line in reversed(lines) if line and not is_cost(line.encode())), ""))


def short(said: str) -> str:
    """Return a quotation, cut to ``LINE_CHARS``."""
    return said if len(said) <= LINE_CHARS else f"{said[:LINE_CHARS]}…"


async def _tail(directory: Path, size_bytes: int) -> bytes:
    """Return the end of the output; empty if it is unreadable, because agents can change the file."""
    with contextlib.suppress(OSError):
        return await output_tail(directory, size_bytes)
    return b""
