"""What an agent program has printed in a session that is over: its end, its cost, its conversation, a limit.

The whole output is read through the program's adapter, piece by piece, so that the memory is bounded by the longest
line. The moment of all lines is that of the end: a runner that reads them again finds the same facts.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from anyio import to_thread

from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session
from lifefold.core.policy.outcomes import Outcome, diagnosis_of
from lifefold.interpreters.adapters import (
    Adapter,
    AdapterError,
    ConversationBegan,
    Counted,
    Cutter,
    Ended,
    Fact,
    Limited,
    Now,
    Spent,
    adapter_of,
    cut,
    remaining,
)
from lifefold.interpreters.adapters.prices import Prices, priced
from lifefold.interpreters.adapters.reading import SENTENCE_CHARS
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.fleet_runner.session_outcome import Agent, by_cause, last_said, over, short, with_hint
from lifefold.interpreters.fleet_runner.usage import as_usage
from lifefold.interpreters.processes import SessionExit, output_pieces, read_exit, read_order

_MINUTE_S: Final = 60


class Told(msgspec.Struct, frozen=True):
    """The facts of a session that is over, the last one of each kind.

    ``by_session`` is a total of the session alone, ``by_conversation`` one of its whole conversation.
    """

    ended: Ended
    conversation: str = ""
    by_session: Spent | None = None
    by_conversation: Spent | None = None
    limited: Limited | None = None

    def after(self, fact: Fact) -> "Told":
        """Return the facts after one more."""
        match fact:
            case ConversationBegan(id=conversation):
                return msgspec.structs.replace(self, conversation=conversation)
            case Spent(counted=Counted.CONVERSATION):
                return msgspec.structs.replace(self, by_conversation=fact)
            case Spent():
                return msgspec.structs.replace(self, by_session=fact)
            case Limited():
                return msgspec.structs.replace(self, limited=fact)
            case _:
                return self

    def priced(self, prices: Prices, model: str) -> "Told":
        """Return the facts with the money of their tokens, as far as the model has a price."""
        totals = [each and priced(each, prices, model) for each in (self.by_session, self.by_conversation)]
        return msgspec.structs.replace(self, by_session=totals[0], by_conversation=totals[1])

    @property
    def usage(self) -> session.Usage:
        """The cost that the agent has reported last: of its conversation, or else of the session."""
        last = self.by_conversation or self.by_session
        return session.Usage() if last is None else as_usage(last.total)


def adapter_of_start(directory: Path) -> Adapter[Any] | None:
    """Return the adapter with which a session began; None of a command, and of an adapter that is gone.

    The fleet file may name another one since.
    """
    order = read_order(directory)
    with contextlib.suppress(AdapterError):
        return adapter_of(order.kind) if order is not None and order.kind else None
    return None


async def told_by(adapter: Adapter[Any], directory: Path, ended: SessionExit) -> Told:
    """Return the facts in the output of a session; without an output, what the adapter makes of its exit status."""
    return await to_thread.run_sync(_told, adapter, directory, ended)


def _told(adapter: Adapter[Any], directory: Path, ended: SessionExit) -> Told:
    now = Now(ended.at_ms, time.localtime(ended.at_ms // 1_000).tm_gmtoff // _MINUTE_S)
    told, state = Told(Ended(Outcome.CRASHED)), adapter.initial
    for line in _lines(directory):
        state, facts = adapter.read(state, line, now)
        for fact in facts:
            told = told.after(fact)
    return msgspec.structs.replace(told, ended=adapter.finish(state, status_of(ended)))


def _lines(directory: Path) -> Iterator[bytes]:
    """Yield the lines of an output, as far as it is readable: agents can put another kind of file in its place."""
    cutter = Cutter()
    with contextlib.suppress(OSError):
        for piece in output_pieces(directory):
            cutter, lines = cut(cutter, piece)
            yield from lines
    yield from remaining(cutter)


def status_of(ended: SessionExit) -> int | None:
    """Return the status of a session that ended by itself; None if the runner has ended it, or nothing is known."""
    if ended.outcome == "exited":
        return ended.code
    return -ended.signal if ended.outcome == "signalled" and ended.signal is not None else None


def exited(ended: SessionExit, told: Told, secrets: Secrets, agent: Agent) -> session.SessionExited:
    """Return the end of a session as the log gets it. A cause of the runner's own counts before the agent's word."""
    if ended.outcome == "timeout":
        called: session.Timeout | session.Success | session.Limited | session.Error = session.Timeout(
            "" if agent.limit_ms is None else over(agent.limit_ms)
        )
    elif ended.outcome in {"exited", "signalled"}:
        called = called_of(told, status_of(ended), said_by(told, secrets), agent)
    else:
        called = session.Error(secrets.hidden(ended.message), by_cause(ended))
    return session.SessionExited(called, told.usage, told.conversation, told.by_conversation is not None)


def called_of(
    told: Told, status: int | None, said: str, agent: Agent
) -> session.Success | session.Limited | session.Error:
    """Return the outcome of a session that ended by itself, by the agent's own word.

    A tool that was refused to an agent that asks was refused on purpose. Its agent knows that, and its word counts.
    """
    match told.ended.outcome:
        case Outcome.SUCCESS:
            return session.Success()
        case Outcome.DENIED if agent.asks and status == 0:
            return session.Success()
        case Outcome.LIMITED:
            limit = told.limited or Limited(None)
            return session.Limited(limit.until_ms, limit.scope, said or limit.reason)
        case outcome:
            message = said or outcome.replace("_", " ")
            return session.Error(with_hint(message, agent.lacks(message)), diagnosis_of(outcome, status))


def said_by(told: Told, secrets: Secrets) -> str:
    """Return the agent's sentence for people. An adapter cuts a long one, so a secret value may be cut at its end."""
    shown = secrets.hidden(told.ended.reason)
    is_cut = len(told.ended.reason) >= SENTENCE_CHARS
    return short(shown[: len(shown) - secrets.longest_bytes] if is_cut else shown)


async def said_of_work(folder: FleetFolder, worker: Aggregate, secrets: Secrets) -> str:
    """Return the last words of the session whose work a worker inspects or verifies.

    They are empty if another agent has done the work, and if the session has died: its death has them already.
    """
    work: assignment.Assignment = worker.record(assignment.machine.name)
    if not work.sessions or assignment.is_orphan(work):
        return ""
    return await last_words(folder.last_start(worker.key, worker.record(session.machine.name).attempt), secrets)


async def last_words(directory: Path, secrets: Secrets) -> str:
    """Return the last words in the output of a session that is over, as its adapter reads them."""
    adapter, ended = adapter_of_start(directory), read_exit(directory)
    if adapter is None or ended is None:
        return await last_said(directory, secrets)
    return said_by(await told_by(adapter, directory, ended), secrets)
