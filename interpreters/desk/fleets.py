"""The fleets of this machine in short: whether a runner is at work, how far each is, and what waits for an operator."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from lifefold.core.fleet import system
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.desk.registry import Noted
from lifefold.interpreters.engine import Ledger, LogMismatchError
from lifefold.interpreters.explain import pending, task_status
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.store import StoreError, peek_log


class FleetSummary(msgspec.Struct, frozen=True):
    """A fleet in short. ``runs``: its runner is at work, as the process ``pid``, which began at ``began_ms``.

    ``states`` counts the tasks by state, ``in_words`` by the words that screens have for it. ``failed`` are the
    tasks that have failed for good. ``unread`` says why the log cannot be read; the rest is empty then.
    """

    fleet: str
    log: str
    source: str
    runs: bool
    pid: int
    began_ms: int
    is_over: bool = False
    tasks: int = 0
    states: dict[str, int] = {}
    in_words: dict[str, int] = {}
    failed: tuple[str, ...] = ()
    cost: Usage = Usage()
    waiting: tuple[pending.Waiting, ...] = ()
    unread: str = ""


WaitingOf = Callable[[Mapping[str, Aggregate]], tuple[pending.Waiting, ...]]


async def summary(noted: Noted, waiting: WaitingOf = pending.waiting) -> FleetSummary:
    """Return a noted fleet in short; the log is read as a whole, and ``waiting`` finds what waits in its state."""
    try:
        with peek_log(Path(noted.log)) as store:
            runs = noted.is_alive and store.is_written()
            ledger, spending = Ledger(system), Spending()
            for decision in ledger.fold(await store.read()):
                for transition in decision.reaction.transitions:
                    spending = spend(spending, decision.entry.stream, transition)
    except (StoreError, LogMismatchError, OSError) as error:
        why = " ".join(str(error).split())
        return FleetSummary(
            noted.fleet, noted.log, noted.source, noted.is_alive, noted.runner.pid, noted.began_ms, unread=why
        )
    there = ledger.aggregates
    tasks = task_status.counted(task_status.tasks(there)) if there else ()
    states: dict[str, int] = Counter(str(each.state) for each in tasks)
    return FleetSummary(
        noted.fleet,
        noted.log,
        noted.source,
        runs,
        noted.runner.pid,
        noted.began_ms,
        is_over=is_over(there),
        tasks=len(tasks),
        states=states,
        in_words=Counter(each.in_words for each in tasks),
        failed=tuple(each.id for each in tasks if each.state == State.FAILED and each.settled),
        cost=spending.total,
        waiting=waiting(there),
    )
