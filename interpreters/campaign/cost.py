"""The cost of a run, and how long its tasks had no worker, from the log.

A fleet spends the time of its agents: sessions, each for one task. Money is in the log only if a record has an account
(``core/lifecycles/budget``), which no record of the fleet has. The log is folded again for accounts only. Times are
those of the log, by the runner's clock: where the clock jumps, a session seems to have taken so long.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import ActivityEnded, AggregateType, Envelope, Input, System, World
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.budget.account import Account
from lifefold.effects import RunSession


class TaskCost(msgspec.Struct):
    """The cost of one task: its claims, its sessions, and their duration together."""

    claims: int = 0
    sessions: int = 0
    session_ms: int = 0


class Cost(msgspec.Struct, frozen=True):
    """The cost of a run: its sessions, those of each task, and money, if it is in the log.

    ``unclaimed_ms`` has the time without a worker for each task that came back undone and was claimed again.
    """

    sessions: int
    session_ms: int
    tasks: Mapping[str, TaskCost]
    unclaimed_ms: tuple[int, ...]
    microusd: int | None


def cost(system: System, entries: Sequence[Input]) -> Cost:
    """Return the cost of the run with this log."""
    bill = _Bill()
    for name, envelope in entries:
        if type(envelope.event) in _READ:
            bill.read(name, envelope)
    bill.close(entries[-1].envelope.at_ms if entries else 0)
    return Cost(bill.sessions, bill.session_ms, bill.tasks, tuple(bill.unclaimed_ms), _microusd(system, entries))


_UNDONE: Final = (task.Failed, task.Rejected, task.Released)
"""The events with which a worker gives a task back undone."""

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
    """The account after some of the entries."""

    def __init__(self) -> None:
        self.sessions = self.session_ms = 0
        self.tasks: Final[dict[str, TaskCost]] = {}
        self.unclaimed_ms: Final[list[int]] = []
        self._given: Final[dict[str, str]] = {}
        """By worker: the task that it was given last."""
        self._claims: Final[dict[str, tuple[str, int]]] = {}
        """By worker: its task, and the number of the claim."""
        self._since_ms: Final[dict[str, int]] = {}
        """By worker: the start of its session."""
        self._lost_ms: Final[dict[str, int]] = {}
        """By task: since when it is undone and has no worker."""

    def read(self, name: str, envelope: Envelope) -> None:
        """Add an entry."""
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
        """Let running sessions end now."""
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


def _microusd(system: System, entries: Iterable[Input]) -> int | None:
    """Return the sum that all accounts have paid, in millionths of a dollar; None if there is no account.

    A grant of one account to another counts once: for the account that has spent it.
    """
    kinds = {kind for kind, of in system.aggregates.items() if _has_account(of)}
    if not kinds:
        return None
    world = World(system)
    for each in entries:
        came = world.step(each) if system.type_of(each.aggregate).kind in kinds else None
        if isinstance(came, tuple):
            world, _ = came
    records = (entity.record for each in world.aggregates.values() for entity in each.entities.values())
    return sum(account.cost for record in records for account in _accounts(record))


def _has_account(of: AggregateType) -> bool:
    return any(_accounts(machine.initial) for machine in of.machines.values())


def _accounts(record: object) -> list[Account]:
    fields = getattr(record, "__struct_fields__", ())
    return [value for value in (getattr(record, name) for name in fields) if isinstance(value, Account)]
