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

from lifefold.core.lifecycles import session
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import (
    Adapter,
    ConversationBegan,
    Counted,
    Cutter,
    Ended,
    Fact,
    Limited,
    MessageTaken,
    Now,
    Spent,
    adapter_or_command,
    cut,
    remaining,
)
from lifefold.interpreters.adapters.adapter import beginning
from lifefold.interpreters.adapters.prices import Prices, priced
from lifefold.interpreters.fleet_runner.usage import as_usage
from lifefold.interpreters.processes import SessionExit, output_pieces, read_order

_MINUTE_S: Final = 60


class SessionFacts(msgspec.Struct, frozen=True):
    """The facts of a session that is over, the last one of each kind.

    ``by_session`` is a total of the session alone, ``by_conversation`` one of its whole conversation.
    ``messages`` is the number of the last message that it has taken while it ran.
    """

    ended: Ended
    conversation: str = ""
    by_session: Spent | None = None
    by_conversation: Spent | None = None
    limited: Limited | None = None
    messages: int = 0

    def after(self, fact: Fact) -> "SessionFacts":
        """Return the facts after one more."""
        match fact:
            case ConversationBegan(id=conversation):
                return msgspec.structs.replace(self, conversation=conversation)
            case Spent(counted=Counted.CONVERSATION):
                return msgspec.structs.replace(self, by_conversation=fact)
            case Spent():
                return msgspec.structs.replace(self, by_session=fact)
            case MessageTaken(number=number):
                return msgspec.structs.replace(self, messages=max(number, self.messages))
            case Limited():
                return msgspec.structs.replace(self, limited=fact)
            case _:
                return self

    def priced(self, prices: Prices, model: str) -> "SessionFacts":
        """Return the facts with the money of their tokens, as far as the model has a price."""
        totals = [each and priced(each, prices, model) for each in (self.by_session, self.by_conversation)]
        return msgspec.structs.replace(self, by_session=totals[0], by_conversation=totals[1])

    @property
    def usage(self) -> session.Usage:
        """The cost that the agent has reported last: of its conversation, or else of the session."""
        last = self.by_conversation or self.by_session
        return session.Usage() if last is None else as_usage(last.total)

    @property
    def before(self) -> session.Usage | None:
        """The program's own total of the conversation when the session began, if it tells that."""
        last = self.by_conversation
        return None if last is None or last.before is None else as_usage(last.before)


def adapter_of_start(directory: Path, kind: str = "") -> Adapter[Any]:
    """Return the adapter with which a session began; the fleet file may name another one since.

    Without a record of that it is the adapter of ``kind``.
    """
    order = read_order(directory)
    return adapter_or_command(kind if order is None else order.kind)


def state_of_start(adapter: Adapter[Any], directory: Path) -> Any:
    """Return the state of an adapter before the first line of a session: its command line can name a conversation."""
    order = read_order(directory)
    return adapter.initial if order is None else beginning(adapter, tuple(order.argv))


async def facts_of(adapter: Adapter[Any], directory: Path, ended: SessionExit) -> SessionFacts:
    """Return the facts in the output of a session; without an output, what the adapter makes of its exit status."""
    return await to_thread.run_sync(_facts_of, adapter, directory, ended)


def _facts_of(adapter: Adapter[Any], directory: Path, ended: SessionExit) -> SessionFacts:
    now = Now(ended.at_ms, time.localtime(ended.at_ms // 1_000).tm_gmtoff // _MINUTE_S)
    found, state = SessionFacts(Ended(Outcome.CRASHED)), state_of_start(adapter, directory)
    for line in _lines(directory):
        state, facts = adapter.read(state, line, now)
        for fact in facts:
            found = found.after(fact)
    conversation = found.conversation if adapter.resumable else ""
    return msgspec.structs.replace(found, ended=adapter.finish(state, status_of(ended)), conversation=conversation)


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
