"""The runner of a fleet: it opens the log, runs the fleet until it is over or the runner leaves, and returns a verdict.

Leaving is not stopping. A leaving runner tells every worker to hold, and waits until no session runs. The next runner
tells them to run. A blocked merge does not delay leaving; the next runner performs it. Asked twice, the runner kills
the sessions and leaves.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread
from msgspec.structs import replace

from lifefold.core.fleet import opening, service, system
from lifefold.core.fleet.system import board, plan_change, plan_enforcement, worker
from lifefold.core.fleet.system.completion import waits_for_operators
from lifefold.core.fleet.system.rerun import is_over, remainder
from lifefold.core.fleet.worker import assignment, desired_state, shutdown
from lifefold.core.kernel import Aggregate, Envelope, Event, Phase, Reaction, Refusal, System
from lifefold.core.lifecycles import process, session
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.engine import STOP, Clock, Engine, Interpreter, Observer, WallClock
from lifefold.interpreters.explain import status
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_runner import quarantines
from lifefold.interpreters.fleet_runner.custom import RunContext, composed, found
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.fleet_runner.last_deliveries import LastDeliveries, tell_notifiers
from lifefold.interpreters.fleet_runner.log_owner import (
    CLAIM_KEY,
    NONE_BEFORE,
    Before,
    OtherFleetError,
    before_of,
    must_belong,
    must_mean,
    must_watch,
    onward,
    written_of,
)
from lifefold.interpreters.fleet_runner.notices import About, Notice
from lifefold.interpreters.fleet_runner.quoting import quoting
from lifefold.interpreters.fleet_runner.refused_events import RefusedEvents
from lifefold.interpreters.fleet_runner.resumption import continuing
from lifefold.interpreters.fleet_runner.verdict import Verdict, verdict_of
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.store import Displaced, LogStore, create_log, open_log
from lifefold.interpreters.worktrees.errors import TakenOverError, WorkplaceError
from lifefold.interpreters.worktrees.left_at_pipes import end_left_at_pipes
from lifefold.interpreters.worktrees.workplace import FolderWorkplace, Workplace
from lifefold.interpreters.worktrees.worktrees import GitWorkplace

REPEAT_MS: Final = 500
"""Requests to leave within this time count as one: ``timeout`` signals its command, and then its whole group."""


_UP: Final = frozenset({session.State.RUNNING, process.State.RUNNING})
"""States in which a session or service is up again."""


_TO_MERGE: Final = frozenset({assignment.State.MERGING, assignment.State.DISPUTED})


class Runner:
    """Runs one fleet on one log. Make one with ``open``, and ``close`` it at the end."""

    def __init__(
        self, store: LogStore, handlers: Handlers, interpreter: Interpreter, clock: Clock, rules: System
    ) -> None:
        """Use ``open`` instead."""
        self.notices: Final = handlers.notices
        self.refused: Final = RefusedEvents(handlers.folder.refusals)
        self.observers: Final[list[Observer]] = [quarantines.telling(handlers.operator)]
        self.leaving = 0
        self.waits_for_operators = True
        self._is_held = False
        self._asked_ms = 0
        self._leaves_by = AbortReason.SHUTDOWN_SIGNAL
        self._cut_short = False
        self._store: Final = store
        self._workplace: Final = handlers.workplace
        self.folder: Final = handlers.folder
        self.handlers: Final = handlers
        self.engine: Final = Engine(rules, store, interpreter, clock=clock, observer=self._observe, on_error=STOP)
        self._last_deliveries: Final = LastDeliveries(lambda: self.engine.aggregates, self.engine.clock.now_ms)
        handlers.when_put_off = self.engine.wake
        handlers.when_blocked = partial(tell_notifiers, self.engine)
        handlers.sessions.when_unknown = self._stop_removed
        store.when_displaced = self._leave_a_displaced_log

    @classmethod
    async def open(  # noqa: PLR0913 - what may be chosen, each with its name
        cls,
        fleet: Fleet,
        log: Path,
        *,
        interpreter: Interpreter | None = None,
        clock: Clock | None = None,
        before: Before = NONE_BEFORE,
        rules: System = system,
    ) -> "Runner":
        """Open and fold the fleet's log, or begin one with the tasks that the runs ``before`` have left.

        ``rules`` is the fleet's system, or that system ``with_machine`` of the caller, which the log then needs.

        The handlers of ``interpreter`` come first, then those of the interpreters in the fleet file, then the standard
        ones. Raises ``StoreError``, ``OtherFleetError``, ``WorkplaceError``, ``LogMismatchError``,
        ``UnusableInterpreterError``; then nothing has changed.
        """
        runner = await cls._open(fleet, log, interpreter or Interpreter(), clock or WallClock(), before, rules)
        try:
            await runner.load()
        except BaseException:
            runner.close()
            raise
        return runner

    @classmethod
    async def _open(  # noqa: PLR0913, PLR0917 - what ``open`` takes, with its defaults
        cls, fleet: Fleet, log: Path, interpreter: Interpreter, clock: Clock, before: Before, rules: System
    ) -> "Runner":
        """Take the log and the repository, or neither; create a missing log, and change nothing else."""
        factories, folder = found(fleet), FleetFolder(log)
        if fleet.repository is not None:  # before the first git command of this runner, which can fail
            places = (fleet.repository, folder.root)
            await to_thread.run_sync(end_left_at_pipes, places, fleet.repository / ".git")
        with ExitStack() as taken:
            begun = taken.enter_context(closing(open_log(log))) if log.exists() else None  # noqa: ASYNC240 - before there is anything to wait for
            if begun is not None:
                await must_belong(fleet, begun)
            branch = begun.meta("branch") if begun else before.branch
            workplace = taken.enter_context(closing(await _workplace(fleet, folder, branch or "")))
            said = {"run": begun.meta("run") or ""} if begun else await written_of(fleet, workplace, before)
            handlers = Handlers(fleet, folder, workplace, clock, said["run"])
            standard = handlers.interpreter()
            context = RunContext(fleet, said["run"], folder, workplace, standard, handlers.tell, handlers.present)
            whole = quoting(interpreter.over(composed(factories, context)), handlers.secrets)
            runner = cls(begun or taken.enter_context(closing(_begin(log, said))), handlers, whole, clock, rules)
            taken.pop_all()
            return runner

    @property
    def fleet(self) -> Fleet:
        """The fleet with the plan in force."""
        return self.handlers.fleet

    async def load(self) -> None:
        """Fold the log, and take over the worktrees for this run; a new log has no run yet."""
        await self.engine.load()
        run, meaning = self._store.meta("run") or "", self._store.meta("meaning") or "{}"
        of = self.aggregates.get(board.NAME)
        must_mean(self.fleet, self._store, meaning if of is None else plan_change.meaning_of(of, meaning))
        if self.aggregates:
            must_watch(self.fleet, self._store.path, of)
            try:
                await self._workplace.go_on(run)
            except TakenOverError as error:
                raise onward(error, self.fleet, self._store.path) from error
        else:
            await self._workplace.take_over(run, self._store.path)
            self.folder.make()
        self.handlers.operator.waits.begin()

    def close(self) -> None:
        """Release the log and the repository."""
        self._store.close()
        self._workplace.close()

    @property
    def aggregates(self) -> dict[str, Aggregate]:
        """The present state; read only."""
        return self.engine.aggregates

    def standing(self) -> list[Notice]:
        """Return the notices that still hold; each screen takes silent sessions from the log."""
        operator = self.handlers.operator
        is_over = board.NAME in self.aggregates and board.finished(self.aggregates[board.NAME])
        return operator.standing(About.SILENCE, *([About.WAITING] if is_over else []))

    @property
    def log(self) -> Path:
        """The file of the log."""
        return self._store.path

    def now_ms(self) -> int:
        """Return the time of the run, in Unix milliseconds."""
        return self.engine.clock.now_ms()

    @property
    def displaced(self) -> Displaced | None:
        """The deletion, move or replacement of the log during the run; ``log`` is its copy then."""
        return self._store.displaced

    @property
    def branch(self) -> str:
        """The branch that work is merged into; empty without a repository."""
        return self._store.meta("branch") or ""

    async def run(self) -> Verdict:
        """Run until the fleet is over, or until the runner was asked to leave."""
        if not self._is_over(self.engine):
            await self._go_on()
            await self._warn()
        verdict = self.verdict()
        if verdict is Verdict.ALL_CLOSED:
            await self._clear()
        await self._store.look()
        return verdict

    async def _go_on(self) -> None:
        if board.NAME in self.aggregates:
            said = continuing(self.aggregates, self.folder)
            self.handlers.operator.tell_while(About.GREETING, self.fleet.name, said)
        self.engine.resume()
        self._open_or_resume()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.handlers.sessions.renew_leases)
            await self.engine.run(self._is_over)
            tasks.cancel_scope.cancel()
        self.handlers.operator.over(About.GREETING, self.fleet.name)
        for agent, task_ in merges_left(self.aggregates):
            self.handlers.tell(agent, f"the merge of {task_} is left for the next run")

    async def _warn(self) -> None:
        """Show what agents may have left in the configuration of the repository."""
        with suppress(WorkplaceError, OSError):  # a repository that is gone misleads no git
            for warning in await self._workplace.warnings():
                self.handlers.tell(self.fleet.name, warning)

    async def _clear(self) -> None:
        """Remove the worktrees of the agents from the repository."""
        try:
            await self._workplace.clear()
        except (WorkplaceError, OSError) as error:
            self.handlers.tell(self.fleet.name, f"worktrees of agents are left: {error}")

    def leave(self, abort_reason: AbortReason = AbortReason.SHUTDOWN_SIGNAL) -> bool:
        """Ask the runner to leave; the reason enters the journal. The second request makes it leave at once.

        Return whether the request counted: a repetition within ``REPEAT_MS`` does not, nor one after the end.
        """
        if self.engine.has_ended:
            return False
        now_ms = self.engine.clock.now_ms()
        if self.leaving and now_ms - self._asked_ms < REPEAT_MS:
            return False
        self.leaving, self._asked_ms = self.leaving + 1, now_ms
        if self.leaving == 1:
            self._leaves_by = abort_reason
            for name in self._workers():
                if self.aggregates[name].record("desired_state").state in desired_state.WORKS:
                    self._say(name, "desired_state", desired_state.HoldWanted(self._leaves_by))
        else:
            workers = [self.aggregates[name] for name in self._workers()]
            self._cut_short = self._cut_short or any(
                entity.running for each in workers for entity in each.entities.values()
            )
            for _, process in self.handlers.sessions.live.values():
                self.engine.spawn(process.kill)
        self.engine.wake()  # nothing may be left to wait for: a paused worker sends no event
        return True

    def _leave_a_displaced_log(self) -> None:
        """Leave in the ordinary way; the copy gets the ends of the sessions."""
        if self.displaced is not None:
            path, what, copy = self.displaced
            self.handlers.tell(self.fleet.name, f"the runner leaves its log {path}: {what}; the copy is {copy}")
        if not self.leaving:
            self.leave()

    def verdict(self) -> Verdict:
        """Return the verdict of the present state."""
        if self._cut_short or not board.finished(self.aggregates[board.NAME]):
            return Verdict.HELD if self._is_held and self.leaving == 1 else Verdict.LEFT
        return verdict_of(self.aggregates)

    def _open_or_resume(self) -> None:
        plan = replace(self.fleet.plan, key=self._store.meta(CLAIM_KEY) or "")
        for name, envelope in opening(remainder(plan, before_of(self._store).ended), self.engine.clock.now_ms()):
            if name not in self.aggregates:
                self.engine.offer(name, envelope)
        for name in self._workers():
            if self.aggregates[name].record("desired_state").state is desired_state.State.HOLD:
                if name.startswith(f"{worker.KIND}/") and self.fleet.named(self.aggregates[name].key) is None:
                    self._stop_removed(self.aggregates[name].key)
                else:
                    self._say(name, "desired_state", desired_state.RunWanted())

    def _stop_removed(self, agent: str) -> None:
        """Stop an agent that a plan change has removed before this runner began: its command is not known any more.

        A stopped worker gives its task back without a failure, and merges finished work.
        """
        stop = desired_state.StopWanted(plan_enforcement.REMOVED)
        self._say(f"{worker.KIND}/{agent}", "desired_state", stop)

    def _workers(self) -> list[str]:
        return sorted(name for name, each in self.aggregates.items() if each.kind in {worker.KIND, service.KIND})

    def _say(self, name: str, ref: str, event: Event) -> None:
        self.engine.offer(name, Envelope(ref, event, self.engine.clock.now_ms(), "runner"))

    def _is_over(self, engine: Engine) -> bool:
        workers = [engine.aggregates[name] for name in self._workers()]
        if len(workers) < len(self.fleet.agents) + len(self.fleet.services):
            return False
        if self.leaving > 1:
            return not self.handlers.sessions.live
        waits = self.waits_for_operators or not engine.has_heard
        is_held = not self.leaving and not waits and waits_for_operators(engine.aggregates)
        if is_held and self._last_deliveries.are_done():
            self._is_held = True
            self.leave()
        if self.leaving:
            return all(is_quiet(each) or self._only_waits(each) for each in workers)
        return is_over(engine.aggregates) and self._last_deliveries.are_done()

    def _only_waits(self, each: Aggregate) -> bool:
        """Tell whether a worker has no running activity except a blocked merge, which the next run can perform."""
        parts = [part for entity in each.entities.values() for part in entity.running]
        return each.key in self.handlers.put_off and all(part.phase is Phase.LIVE for part in parts)

    def _adopt(self, of: Aggregate) -> None:
        """Follow the changed fleet file. If it has changed again since, the runner leaves."""
        try:
            fleet = load(self.fleet.source, watch=self.fleet.watch)
            must_mean(fleet, self._store, plan_change.meaning_of(of, "{}"))
        except (FleetFileError, OtherFleetError) as error:
            self.handlers.tell(self.fleet.name, f"the runner leaves, because the plan has changed: {error}")
            self.leave()
        else:
            self.handlers.adopt(fleet)
            self.handlers.tell(
                self.fleet.name, f"the plan has changed: change {plan_change.last_in_force(of)} is in force"
            )

    def _observe(self, name: str, outcome: Reaction | Refusal) -> None:
        for refusal in (outcome,) if isinstance(outcome, Refusal) else outcome.refusals:
            self.refused.add(name, refusal)
        if isinstance(outcome, Reaction) and any(each.entered in _UP for each in outcome.transitions):
            self.handlers.operator.over(About.DOWN, outcome.aggregate.key)
        if isinstance(outcome, Reaction) and any(
            each.entered is plan_change.State.IN_FORCE for each in outcome.transitions
        ):
            self._adopt(outcome.aggregate)
        if self.leaving and isinstance(outcome, Reaction) and _is_let_go_on(outcome):
            self._say(name, "desired_state", desired_state.HoldWanted(self._leaves_by))
        for observer in self.observers:
            observer(name, outcome)


def merges_left(aggregates: Mapping[str, Aggregate]) -> Iterator[tuple[str, str]]:
    """Yield the agents with work to merge, each with its task."""
    for each in status.agents(aggregates):
        if each.kind == worker.KIND and each.doing in _TO_MERGE:
            yield each.name, each.task


def is_quiet(of: Aggregate) -> bool:
    """Tell whether an agent has no live session, and begins none while it is held."""
    return service.quiet(of) if of.kind == service.KIND else shutdown.quiet(of)


def _is_let_go_on(reaction: Reaction) -> bool:
    """Tell whether this lets a worker work: it was resumed, or begins."""
    return any(each.entered in desired_state.WORKS for each in reaction.transitions)


def _begin(log: Path, said: dict[str, str]) -> LogStore:
    make_private(log.parent)
    return create_log(log, said)


async def _workplace(fleet: Fleet, folder: FleetFolder, branch: str) -> Workplace:
    if fleet.repository is None:
        return FolderWorkplace.open(folder.worktrees)
    return await GitWorkplace.open(fleet.repository, folder.worktrees, fleet.name, branch)
