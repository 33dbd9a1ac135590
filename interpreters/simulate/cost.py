"""What a run has cost, and how long its tasks were in nobody's hands: read off the log.

What a fleet spends is the time of its agents: sessions, each of which is for one task. Money is on record only where a
record has an account (``core/lifecycles/budget``), which no record of the fleet has; only for that the log is folded
again. Times are those of the log, as the runner's clock had them: where that jumps, a session seems to have taken so
long.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import ActivityEnded, Aggregate, AggregateType, Envelope, Reaction, System, react
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.budget.account import Account
from lifefold.effects import RunSession
from lifefold.interpreters.simulate.inputs import Entry


class TaskCost(msgspec.Struct):
    """What one task has cost: how often it was given to a worker, its sessions, and how long they took together."""

    claims: int = 0
    sessions: int = 0
    session_ms: int = 0


class Cost(msgspec.Struct, frozen=True):
    """What a run has cost: its sessions, those of each task, and money, if any is on record.

    ``unclaimed_ms`` has, for each time that a task came back undone and was given out again, how long that took.
    """

    sessions: int
    session_ms: int
    tasks: Mapping[str, TaskCost]
    unclaimed_ms: tuple[int, ...]
    microusd: int | None


def cost(system: System, entries: Sequence[Entry]) -> Cost:
    """Return what the run with this log has cost."""
    bill = _Bill()
    for name, envelope in entries:
        if type(envelope.event) in _READ:
            bill.read(name, envelope)
    bill.close(entries[-1].envelope.at_ms if entries else 0)
    return Cost(bill.sessions, bill.session_ms, bill.tasks, tuple(bill.unclaimed_ms), _microusd(system, entries))


_UNDONE: Final = (task.Failed, task.Rejected, task.Released)
"""By which words a worker gives back what it has not done."""

_READ: Final = frozenset(
    {
        assignment.Assigned,
        session.SessionStarted,
        session.SessionExited,
        ActivityEnded,
        *_UNDONE,
        task.Verified,
        worker_slot.WorkerGone,
    }
)


class _Bill:
    """What is known after some of the entries."""

    def __init__(self) -> None:
        self.sessions = self.session_ms = 0
        self.tasks: Final[dict[str, TaskCost]] = {}
        self.unclaimed_ms: Final[list[int]] = []
        self._given: Final[dict[str, str]] = {}
        """By worker: the task that it was given last."""
        self._claims: Final[dict[str, tuple[str, int]]] = {}
        """By worker: the task that is its own, and the number of the claim."""
        self._since_ms: Final[dict[str, int]] = {}
        """By worker: since when its session runs."""
        self._lost_ms: Final[dict[str, int]] = {}
        """By task: since when it is undone and in nobody's hands."""

    def read(self, name: str, envelope: Envelope) -> None:
        """Take an entry into account."""
        match envelope.event:
            case session.SessionStarted():
                self._start(name, envelope.at_ms)
            case session.SessionExited() | ActivityEnded(slot=RunSession.__name__):
                self._exit(name, envelope.at_ms)
            case assignment.Assigned(brief=brief):
                self._claim(name, brief, envelope.at_ms)
            case task.Failed(epoch=epoch) | task.Rejected(epoch=epoch) | task.Released(epoch=epoch):
                if self._claims.get(envelope.sender) == (envelope.entity.removeprefix("task:"), epoch):
                    self._lose(envelope.sender, envelope.at_ms)
            case worker_slot.WorkerGone():
                self._lose(envelope.sender, envelope.at_ms)
            case task.Verified():
                self._claims.pop(envelope.sender, None)
            case _:
                pass

    def close(self, at_ms: int) -> None:
        """Let sessions that are not over have lasted until now."""
        for worker in list(self._since_ms):
            self._exit(worker, at_ms)

    def _claim(self, worker: str, brief: task.Brief, at_ms: int) -> None:
        self._given[worker] = brief.task
        self._claims[worker] = (brief.task, brief.epoch)
        self.tasks.setdefault(brief.task, TaskCost()).claims += 1
        if brief.task in self._lost_ms:
            self.unclaimed_ms.append(at_ms - self._lost_ms.pop(brief.task))

    def _lose(self, worker: str, at_ms: int) -> None:
        claim = self._claims.pop(worker, None)
        if claim is not None:
            self._lost_ms[claim[0]] = at_ms

    def _start(self, worker: str, at_ms: int) -> None:
        self._since_ms[worker] = at_ms
        self.sessions += 1
        if worker in self._given:
            self.tasks[self._given[worker]].sessions += 1

    def _exit(self, worker: str, at_ms: int) -> None:
        took_ms = at_ms - self._since_ms.pop(worker, at_ms)
        self.session_ms += took_ms
        if worker in self._given:
            self.tasks[self._given[worker]].session_ms += took_ms


def _microusd(system: System, entries: Iterable[Entry]) -> int | None:
    """Return what all accounts together have paid at the end, in millionths of a dollar; None if there is no account.

    What one account has granted another is paid once: by who has spent it.
    """
    kinds = {kind for kind, of in system.aggregates.items() if _has_account(of)}
    if not kinds:
        return None
    aggregates: dict[str, Aggregate] = {}
    for name, envelope in entries:
        of = system.type_of(name)
        if of.kind in kinds:
            outcome = react(of, aggregates.get(name) or of.start(name), envelope)
            if isinstance(outcome, Reaction):
                aggregates[name] = outcome.aggregate
    records = (entity.record for each in aggregates.values() for entity in each.entities.values())
    return sum(account.cost for record in records for account in _accounts(record))


def _has_account(of: AggregateType) -> bool:
    return any(_accounts(machine.initial) for machine in of.machines.values())


def _accounts(record: object) -> list[Account]:
    fields = getattr(record, "__struct_fields__", ())
    return [value for value in (getattr(record, name) for name in fields) if isinstance(value, Account)]
