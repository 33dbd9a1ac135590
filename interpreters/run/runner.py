"""One runner of one fleet: opens its log, runs it until it is finished or told to leave, and says how it went.

Leaving is not stopping. A runner that is asked to leave tells every worker to hold, waits until nothing runs any more
and goes; the next one tells them to go on. Asked twice, it kills what still runs and waits for nothing else.
"""

import json
import secrets
from collections import Counter
from contextlib import ExitStack
from enum import IntEnum
from pathlib import Path
from typing import Final

import anyio

from lifefold.core import task
from lifefold.core.fleet import board, intent, opening, status, system, worker
from lifefold.core.kernel import Aggregate, Envelope, Event, Reaction, Refusal
from lifefold.interpreters.body.workplace import FolderWorkplace, GitWorkplace, Workplace
from lifefold.interpreters.engine import Clock, Engine, Interpreter, Observer, WallClock
from lifefold.interpreters.fleet import Fleet, describe_difference
from lifefold.interpreters.run.folder import FleetFolder
from lifefold.interpreters.run.handlers import Handlers, renew_leases
from lifefold.interpreters.store import SqliteStore

REFUSALS_LIMIT: Final = 10_000
"""How many refused events one run writes down; all are counted."""


class OtherFleetError(Exception):
    """The log belongs to another fleet, or to this one as it was before its file was changed."""


class Verdict(IntEnum):
    """How a run ended; the value is the exit code."""

    ALL_CLOSED = 0
    SOME_FAILED = 1
    LEFT = 130


class Runner:
    """Runs one fleet on one log. Make one with ``open``; ``close`` it in the end."""

    def __init__(
        self, fleet: Fleet, store: SqliteStore, workplace: Workplace, interpreter: Interpreter | None, clock: Clock
    ) -> None:
        """Take what ``open`` has prepared."""
        self.fleet: Final = fleet
        self.notices: Final[list[tuple[str, str]]] = []
        self.refused: Final[Counter[str]] = Counter()
        self.observers: Final[list[Observer]] = []
        self.leaving = 0
        self._cut_short = False
        self._store: Final = store
        self._workplace: Final = workplace
        self.folder: Final = FleetFolder(store.path)
        self.handlers: Final = Handlers(
            fleet, self.folder, workplace, lambda agent, text: self.notices.append((agent, text))
        )
        standard = self.handlers.interpreter()
        whole = interpreter.over(standard) if interpreter else standard
        self.engine: Final = Engine(system, store, whole, clock=clock, observer=self._observe)

    @classmethod
    async def open(
        cls, fleet: Fleet, log: Path, *, interpreter: Interpreter | None = None, clock: Clock | None = None
    ) -> "Runner":
        """Open and fold the fleet's log, or begin one; ``interpreter``'s handlers go before the standard ones.

        Raises ``StoreError``, ``OtherFleetError``, ``WorkplaceError``, ``LogMismatchError``; then nothing has changed.
        """
        runner = await cls._open(fleet, log, interpreter, clock or WallClock())
        try:
            await runner.load()
        except BaseException:
            runner.close()
            raise
        return runner

    @classmethod
    async def _open(cls, fleet: Fleet, log: Path, interpreter: Interpreter | None, clock: Clock) -> "Runner":
        """Take the log and the repository, or neither; change nothing but that there is a log."""
        folder = FleetFolder(log)
        with ExitStack() as taken:
            if log.exists():  # noqa: ASYNC240 - before there is anything to wait for
                store = SqliteStore.open(log)
                taken.callback(store.close)
                _must_belong(fleet, store)
                workplace = await _workplace(fleet, folder, store.meta("branch") or "")
                taken.callback(workplace.close)
            else:
                workplace = await _workplace(fleet, folder, "")
                taken.callback(workplace.close)
                log.parent.mkdir(parents=True, exist_ok=True)
                store = SqliteStore.create(log, _meta(fleet, workplace))
                taken.callback(store.close)
            runner = cls(fleet, store, workplace, interpreter, clock)
            taken.pop_all()
            return runner

    async def load(self) -> None:
        """Fold the log, and make the workplace this run's; while nothing is in the log, that may not be done yet."""
        await self.engine.load()
        run = self._store.meta("run") or ""
        if self.aggregates:
            await self._workplace.go_on(run)
        else:
            await self._workplace.take_over(run, self._store.path)
            self.folder.make()

    def close(self) -> None:
        """Let go of the log and of the repository."""
        self._store.close()
        self._workplace.close()

    @property
    def aggregates(self) -> dict[str, Aggregate]:
        """The present state: read it, do not write it."""
        return self.engine.aggregates

    async def run(self) -> Verdict:
        """Run until everything is settled, or until the runner was asked to leave."""
        if self._is_over(self.engine):
            return self.verdict()
        self.engine.resume()
        self._open_or_resume()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(renew_leases, lambda: [p for _, p in self.handlers.live.values()], self.fleet.lease_ms)
            await self.engine.run(self._is_over)
            tasks.cancel_scope.cancel()
        return self.verdict()

    def _keep(self, name: str, refusal: Refusal) -> None:
        """Count what was refused, and write it down: late events, stale reports, letters to the stopped (D12)."""
        self.refused[refusal.kind] += 1
        if self.refused.total() <= REFUSALS_LIMIT:
            with self.folder.refusals.open("a") as file:
                file.write(_line(name, refusal))

    def leave(self) -> None:
        """Ask the runner to leave; a second time, to leave at once."""
        self.leaving += 1
        if self.leaving == 1:
            for name in self._workers():
                self._say(name, "intent", intent.HoldWanted())
        else:
            workers = [self.aggregates[name] for name in self._workers()]
            self._cut_short = self._cut_short or any(
                entity.running for each in workers for entity in each.entities.values()
            )
            for _, process in self.handlers.live.values():
                self.engine.spawn(process.kill)
            self.engine.wake()

    def verdict(self) -> Verdict:
        """Return how things stand."""
        if self._cut_short or not board.finished(self.aggregates[board.NAME]):
            return Verdict.LEFT
        closed = all(each.state == task.State.CLOSED for each in status.tasks(self.aggregates))
        return Verdict.ALL_CLOSED if closed else Verdict.SOME_FAILED

    def _open_or_resume(self) -> None:
        for name, envelope in opening(self.fleet.plan, self.engine.clock.now_ms()):
            if name not in self.aggregates:
                self.engine.offer(name, envelope)
        for name in self._workers():
            if self.aggregates[name].record("intent").state is intent.State.HOLD:
                self._say(name, "intent", intent.RunWanted())

    def _workers(self) -> list[str]:
        return sorted(name for name in self.aggregates if name.startswith(worker.KIND))

    def _say(self, name: str, ref: str, event: Event) -> None:
        self.engine.offer(name, Envelope(ref, event, self.engine.clock.now_ms(), "runner"))

    def _is_over(self, engine: Engine) -> bool:
        workers = [engine.aggregates[name] for name in self._workers()]
        if len(workers) < len(self.fleet.agents):
            return False
        if self.leaving > 1:
            return not self.handlers.live
        if self.leaving:
            return all(worker.quiet(each) for each in workers)
        return board.finished(engine.aggregates[board.NAME]) and all(worker.settled(each) for each in workers)

    def _observe(self, name: str, outcome: Reaction | Refusal) -> None:
        for refusal in (outcome,) if isinstance(outcome, Refusal) else outcome.refusals:
            self._keep(name, refusal)
        for observer in self.observers:
            observer(name, outcome)


def _line(name: str, refusal: Refusal) -> str:
    envelope = refusal.envelope
    told = {
        "at_ms": envelope.at_ms,
        "aggregate": name,
        "entity": envelope.entity,
        "event": type(envelope.event).__name__,
        "actor": envelope.actor,
        "kind": refusal.kind,
        "reason": refusal.reason,
    }
    return json.dumps(told) + "\n"


def _must_belong(fleet: Fleet, store: SqliteStore) -> None:
    owner, meaning = store.meta("fleet"), store.meta("meaning") or "{}"
    if owner != fleet.name:
        message = f"{store.path}: is the log of the fleet {owner!r}, not of {fleet.name!r}; use another --db"
        raise OtherFleetError(message)
    if json.loads(meaning) != json.loads(fleet.meaning):
        changes = "; ".join(describe_difference(meaning, fleet.meaning))
        message = (
            f"{fleet.source}: was changed since {store.path} was begun ({changes}); change it back, or use another --db"
        )
        raise OtherFleetError(message)


async def _workplace(fleet: Fleet, folder: FleetFolder, branch: str) -> Workplace:
    if fleet.repository is None:
        return FolderWorkplace(folder.worktrees)
    return await GitWorkplace.open(fleet.repository, folder.worktrees, fleet.name, branch)


def _meta(fleet: Fleet, workplace: Workplace) -> dict[str, str]:
    """Return what a new log says of its run."""
    branch = workplace.branch if isinstance(workplace, GitWorkplace) else ""
    run = secrets.token_hex(8)
    return {"fleet": fleet.name, "meaning": fleet.meaning, "source": str(fleet.source), "branch": branch, "run": run}
