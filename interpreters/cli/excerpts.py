"""What a log has about one task or one agent: read by its index and by name, without a fold of the whole log.

The present comes from the newest snapshot. The past of a task is in the entries that have changed its entities on the
board, and in the streams of the agents that have had it.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Final

import anyio

from lifefold.core.fleet.dispatch.task_messages import MAILBOX
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import encode
from lifefold.core.lifecycles import task
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.engine import Decision, Ledger, LogMismatchError
from lifefold.interpreters.engine.excerpt import Excerpt
from lifefold.interpreters.store import Busy, LogStore, StoreError
from lifefold.interpreters.store.reading import Placed

_RECOVERED: Final = b'"RunnerRecovered"'
"""In the input of each entry that says that a runner goes on."""


def of_task(store: LogStore, ledger: Ledger, name: str) -> Iterator[Decision]:
    """Yield the decisions about a task, up to the newest entry of a ledger.

    These are the ones of its entities on the board, those of runners that go on, and all of each agent that has had it.
    Raises ``BadInput`` as ``logs.fold`` does.
    """
    refs = _refs(name)
    on_board = _read(store, ledger, [board.NAME], (*map(encode, refs), _RECOVERED))
    agents = {
        f"{worker.KIND}/{step.event.owner}"
        for decision in _folded(ledger, refs, on_board)
        for step in decision.reaction.transitions
        if isinstance(step.event, task.Claimed)
    }
    theirs = _read(store, ledger, sorted(agents))
    yield from _folded(ledger, refs, merge(on_board, theirs, key=itemgetter(0)))


def of_claims(store: LogStore, ledger: Ledger, name: str) -> Iterator[Decision]:
    """Yield the decisions about a task on the board alone, as ``of_task`` does."""
    refs = _refs(name)
    yield from _folded(ledger, refs, _read(store, ledger, [board.NAME], [*map(encode, refs)]))


def of_agent(store: LogStore, ledger: Ledger, name: str) -> Iterator[Decision]:
    """Yield the decisions of an agent, as ``of_task`` does."""
    yield from _folded(ledger, (), _read(store, ledger, [f"{worker.KIND}/{name}"]))


def _refs(name: str) -> tuple[str, ...]:
    """Return the entities of a task on the board."""
    return f"task:{name}", f"{MAILBOX}{name}"


def _read(store: LogStore, ledger: Ledger, streams: list[str], texts: Iterable[bytes] = ()) -> list[Placed]:
    try:
        return anyio.run(store.excerpt, streams, ledger.entries, tuple(texts))
    except Busy:
        raise
    except StoreError as error:
        raise BadInput(str(error)) from error


def _folded(ledger: Ledger, refs: Iterable[str], found: Iterable[Placed]) -> Iterator[Decision]:
    try:
        yield from Excerpt(ledger, {board.NAME: frozenset(refs)}).fold(entry for _, entry in found)
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
