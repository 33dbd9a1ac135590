"""The outcome of a session as the log gets it: from the facts in its output, its exit status, and the runner's cause.

A cause of the runner's own counts before the agent's word. The reasons of an error have no secret value.
"""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session
from lifefold.core.policy import ends
from lifefold.core.policy.outcomes import Outcome, diagnosis_of
from lifefold.core.policy.reasons import SUSPENDED_STATUS
from lifefold.interpreters.adapters import Limited
from lifefold.interpreters.adapters.reading import SENTENCE_CHARS
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.fleet_runner.session_facts import SessionFacts, adapter_of_start, facts_of, status_of
from lifefold.interpreters.processes import SessionExit, read_exit
from lifefold.interpreters.units import format_duration

LINE_CHARS: Final = 300
"""The longest quotation of last words in an error, which prompts and screens repeat."""


def _nothing(_said: str) -> str:
    return ""


class Agent(msgspec.Struct, frozen=True):
    """What explains the end of an agent's session.

    ``program`` gives exit statuses their meaning; that of a cooperative agent may mean that it is suspended. ``lacks``
    returns a missing variable, judged by the reason of an error. ``limit_ms`` is the time limit.
    ``asks``: operators, or the standing answers of the fleet file, decide about its tools.
    """

    program: ends.Program = ends.Program.ANY
    lacks: Callable[[str], str] = _nothing
    limit_ms: int | None = None
    asks: bool = False


ANY_AGENT: Final = Agent()
"""An agent of which nothing is known."""


def exited(
    ended: SessionExit, facts: SessionFacts, secrets: Secrets, agent: Agent = ANY_AGENT
) -> session.SessionExited:
    """Return the end of a session as the log gets it."""
    called = _outcome(ended, facts, secrets, agent)
    is_total = facts.by_conversation is not None
    was_killed = ended.signal == signal.SIGKILL
    return session.SessionExited(
        called, facts.usage, facts.conversation, is_total, facts.messages, facts.before, was_killed
    )


def _outcome(
    ended: SessionExit, facts: SessionFacts, secrets: Secrets, agent: Agent
) -> session.Success | session.Error | session.Timeout | session.Suspended | session.Limited:
    if ended.outcome == "timeout":
        return session.Timeout("" if agent.limit_ms is None else over(agent.limit_ms))
    if agent.program is ends.Program.COOPERATIVE and ended.code == SUSPENDED_STATUS:
        return session.Suspended(asked=ended.outcome != "exited")
    if ended.outcome in {"exited", "signalled"}:
        return _called(facts, status_of(ended), said_by(facts, secrets), agent)
    return session.Error(secrets.hidden(ended.message), by_cause(ended))


def _called(
    facts: SessionFacts, status: int | None, said: str, agent: Agent
) -> session.Success | session.Limited | session.Error:
    """Return the outcome of a session that ended by itself, by the agent's own word.

    A tool that was refused to an agent that asks was refused on purpose. Its agent knows that, and its word counts.
    """
    match facts.ended.outcome:
        case Outcome.SUCCESS:
            return session.Success()
        case Outcome.DENIED if agent.asks and status == 0:
            return session.Success()
        case Outcome.LIMITED:
            limit = facts.limited or Limited(None)
            return session.Limited(limit.until_ms, limit.scope, said or limit.reason)
        case outcome:
            message = said or outcome.replace("_", " ")
            means = diagnosis_of(outcome, status, facts.ended.words, agent.program)
            return session.Error(with_hint(message, agent.lacks(message)), means)


def said_by(facts: SessionFacts, secrets: Secrets) -> str:
    """Return the agent's sentence for people. An adapter cuts a long one, so a secret value may be cut at its end."""
    shown = secrets.hidden(facts.ended.reason)
    is_cut = len(facts.ended.reason) >= SENTENCE_CHARS
    return short(shown[: len(shown) - secrets.longest_bytes] if is_cut else shown)


def short(said: str) -> str:
    """Return a quotation, cut to ``LINE_CHARS``."""
    return said if len(said) <= LINE_CHARS else f"{said[:LINE_CHARS]}…"


def over(limit_ms: int) -> str:
    """Return the message of a time-out."""
    return f"session_timeout of {format_duration(limit_ms)} is over"


def with_hint(message: str, lacking: str) -> str:
    """Return a message with what its agent may lack."""
    return f"{message} ({lacking})" if lacking else message


def program_of(command: tuple[str, ...], *, cooperative: bool = False) -> ends.Program:
    """Return the program whose exit statuses a command has, by its name; an agent in Python is cooperative."""
    if cooperative:
        return ends.Program.COOPERATIVE
    name = Path(command[0]).name if command else ""
    return ends.Program.CLAUDE if name == ends.Program.CLAUDE else ends.Program.ANY


def by_cause(ended: SessionExit) -> ends.Diagnosis:
    """Return the diagnosis of a session that did not end by itself."""
    match ended.outcome:
        case "spawn-failed":
            return ends.diagnosis(ended.message)
        case "lost":
            return ends.Diagnosis()
        case _:
            return ends.LEFT


async def said_of_work(folder: FleetFolder, worker: Aggregate, secrets: Secrets) -> str:
    """Return the last words of the session whose work a worker inspects or verifies.

    They are empty if another agent has done the work, and if the session has died: its death has them already.
    """
    work: assignment.Assignment = worker.record(assignment.machine.name)
    if not work.sessions or assignment.is_orphan(work):
        return ""
    return await last_words(folder.last_start(worker.key, worker.record(session.machine.name).attempt), secrets)


async def last_words(directory: Path, secrets: Secrets) -> str:
    """Return the last words of a session that is over, as its adapter reads them; empty without a record of its end."""
    ended = read_exit(directory)
    return "" if ended is None else said_by(await facts_of(adapter_of_start(directory), directory, ended), secrets)
