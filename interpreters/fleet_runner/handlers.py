"""The standard interpreter of a fleet: agents as processes, work in worktrees.

A handler performs and reports; it decides nothing. It reports failures outside as events of the lifecycle, so that an
error of one agent does not stop the fleet. It waits for obstacles that may pass, and shows the operator the wait.
"""

import contextlib
import os
from collections.abc import Awaitable, Callable
from functools import partial, reduce
from pathlib import Path
from typing import Final, TypeVar

from lifefold.core.fleet.worker import assignment, nothing_done
from lifefold.core.lifecycles import session
from lifefold.core.policy import ends
from lifefold.effects import (
    CheckOutWork,
    IncrementSession,
    InspectWork,
    LogFatal,
    Notification,
    ParkWork,
    PrepareWorktree,
    VerifyWork,
)
from lifefold.interpreters.engine import ActivityContext, Clock, EffectContext, Interpreter, WallClock
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.fleet_file import Agent, Fleet
from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.file_variables import FileVariables, changed_names
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.follower import Follower
from lifefold.interpreters.fleet_runner.merging import Merging
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.fleet_runner.notifying import Notifying
from lifefold.interpreters.fleet_runner.obstacles import Obstacles
from lifefold.interpreters.fleet_runner.plan_changes import joined
from lifefold.interpreters.fleet_runner.quoting import without
from lifefold.interpreters.fleet_runner.retry_until import patiently, pause
from lifefold.interpreters.fleet_runner.session_outcome import said_of_work
from lifefold.interpreters.fleet_runner.sessions import Sessions
from lifefold.interpreters.fleet_runner.stall import Watcher
from lifefold.interpreters.fleet_runner.steering import Steersman
from lifefold.interpreters.fleet_runner.triggers import Attendant
from lifefold.interpreters.fleet_runner.variables import environment, secrets_of, variables_of
from lifefold.interpreters.processes import SessionError
from lifefold.interpreters.processes.fenced import FencedProcesses, PastFenceError
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.verification import end_left_over, verify
from lifefold.interpreters.worktrees.workplace import Workplace

T = TypeVar("T")

PLACE_LIMIT_S: Final = 600.0
"""The longest wait for a worktree in which other processes are at work."""


class Handlers:
    """Performs the effects and activities of workers and services.

    ``sessions`` has the handlers of sessions. ``put_off`` has the agents with a blocked merge, and ``when_put_off`` is
    called for each. ``operator`` shows notices, ``notices`` has all of them.
    """

    def __init__(  # noqa: PLR0913 - the parts of a runner, each with its name
        self,
        fleet: Fleet,
        folder: FleetFolder,
        workplace: Workplace,
        clock: Clock | None = None,
        run: str = "",
        *,
        waits: Waits | None = None,
    ) -> None:
        """Make the handlers of a fleet; triggers are due by ``clock``, the clock of the engine; ``run`` is its log.

        ``waits`` keeps the obstacles of agents; without it a file in the folder does.
        """
        self.put_off: Final[set[str]] = set()
        self.when_put_off: Callable[[], None] = _nothing
        self.secrets: Final = secrets_of(fleet, os.environ)
        self.operator: Final = Notices(waits or Waits(folder.waits), self.secrets)
        self.notices: Final = self.operator.history
        self.fleet = fleet
        self._variables: Final = FileVariables(fleet.source)
        self.folder: Final = folder
        self.workplace: Final = workplace
        self._obstacles: Final = Obstacles(self.operator)
        self.sessions: Final = Sessions(lambda: self.fleet, self.present, folder, workplace, self.operator, run)
        self.fenced: Final = FencedProcesses()
        """The commands of verifications, by agent."""
        self.when_blocked: Callable[[Notification, str], None] = _ignore
        self._merging: Final = Merging(workplace, self._obstacles.waits, self._put_off, self.tell, self._is_blocked)
        self._watcher: Final = Watcher(folder, self.operator)
        self._follower: Final = Follower(folder, self._kind_of, self.operator)
        self._notifying: Final = Notifying(self.present, folder, self.secrets, run)
        self._attendant: Final = Attendant(fleet, folder, self.operator, (clock or WallClock()).now_ms)

    def adopt(self, fleet: Fleet) -> None:
        """Follow a changed fleet file."""
        self.fleet = joined(self.fleet, fleet)
        self.secrets.learn(variables_of(fleet, os.environ), fleet.redact)
        self._attendant.adopt(self.fleet)

    def present(self) -> Fleet:
        """Return the fleet with the plan in force, and with the present variables of its file."""
        now = self._variables.of(self.fleet)
        names = changed_names(self.fleet, now)
        if names:
            self.fleet = now
            self.secrets.learn(variables_of(now, os.environ), now.redact)
            self.tell(now.name, f"{', '.join(names)} changed in the fleet file: new sessions have the new values")
        return self.fleet

    def tell(self, agent: str, message: str) -> None:
        """Show the operator a notice."""
        self.operator.tell(agent, message)

    def interpreter(self) -> Interpreter:
        """Return the interpreter with these handlers."""
        own = (
            *(self.sessions, self.sessions.limits, self._watcher, self._follower, self._attendant, self._merging),
            *(self._notifying, Steersman(self.folder, self.operator)),
        )
        return reduce(Interpreter.over, map(Interpreter.of, own)).over(self._standard())

    def _kind_of(self, agent: str) -> str:
        """Return the adapter of an agent's program; empty for a command."""
        known = self.fleet.named(agent)
        return known.program.adapter if isinstance(known, Agent) and known.program is not None else ""

    def _standard(self) -> Interpreter:
        return Interpreter(
            effects={LogFatal: self.log_fatal, IncrementSession: self.increment_session},
            activities={
                PrepareWorktree: self.prepare_worktree,
                CheckOutWork: self.check_out,
                InspectWork: self.inspect,
                VerifyWork: self.verify,
                ParkWork: self.park,
            },
        )

    async def log_fatal(self, effect: LogFatal, context: EffectContext) -> None:
        """Show the operator a notice while the agent is down."""
        self.operator.tell_while(About.DOWN, context.within.key, in_plain_words(effect.message))

    async def increment_session(self, effect: IncrementSession, context: EffectContext) -> None:
        """Do nothing: the reducer counts, and the journal has the number."""

    async def prepare_worktree(self, _activity: PrepareWorktree, context: ActivityContext) -> None:
        """Make the agent's worktree."""
        if context.cleanup_only:
            return
        agent = context.origin.within.key
        try:
            await self._placed(agent, "prepare its worktree", partial(self.workplace.prepare, agent))
        except (WorkplaceError, OSError) as error:
            await context.report(session.FatalError(f"no worktree: {error}"))
        else:
            await context.report(session.WorktreeReady())

    async def check_out(self, activity: CheckOutWork, context: ActivityContext) -> None:
        """Check out a clean worktree for the task."""
        if context.cleanup_only:
            return
        agent, task = context.origin.within.key, activity.task
        try:
            kept = (activity.result, activity.commit)
            check_out = partial(
                self.workplace.check_out, agent, task, activity.epoch, kept, resumes=bool(activity.resumes)
            )
            await self._placed(agent, f"check out {task}", check_out)
        except (WorkplaceError, OSError) as error:
            await context.report(assignment.CheckoutFailed(str(error)))
        else:
            await context.report(assignment.CheckedOut())

    async def _placed(self, agent: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work in the agent's worktree; wait up to ``PLACE_LIMIT_S`` while other processes block it."""
        with self._obstacles.waits(agent, what) as tell:
            return await patiently(work, (InTheWayError,), tell, limit_s=PLACE_LIMIT_S)

    async def inspect(self, activity: InspectWork, context: ActivityContext) -> None:
        """Report the changes that a dead session has left; an unreadable worktree counts as unchanged."""
        if context.cleanup_only:
            return
        agent, task = context.origin.within.key, activity.task
        look = partial(self.workplace.differs, agent, task, activity.epoch)
        try:
            differs = await self._for_other_machines(agent, f"inspect the worktree of {task}", look)
            hidden = () if differs else await self.workplace.ignored(agent, task, activity.epoch)
            said = "" if differs else await said_of_work(self.folder, context.origin.within, self.secrets)
        except (WorkplaceError, OSError) as error:
            self.tell(agent, f"the changes of {task} cannot be read, so the task counts as unchanged: {error}")
            differs, hidden, said = False, (), ""
        await context.report(assignment.Inspected(differs, hidden[: nothing_done.MOST_HIDDEN + 1], said))

    async def verify(self, activity: VerifyWork, context: ActivityContext) -> None:
        """Run the verification commands."""
        records = self.folder.verification(activity.task, activity.epoch)
        agent, task, epoch = context.origin.within.key, activity.task, activity.epoch
        folder = self.workplace.folder(agent, task)
        if context.resumed:
            await self._obstacles.see_to_the_end(context, partial(end_left_over, records))
        if context.cleanup_only:
            return
        try:
            await self._for_other_machines(agent, f"verify {task}", partial(self.workplace.enter, agent, task, epoch))
            await self._for_other_machines(agent, f"verify {task}", partial(self.workplace.keep, agent, task, epoch))
            await self._keep_state(context)
            reason = await self._verified(activity, agent, folder, records)
            if reason is None:
                keep = partial(self.workplace.keep, agent, task, epoch)
                await self._for_other_machines(agent, f"keep {task}", keep)
        except (SessionError, OSError, WorkplaceError) as error:
            await self._obstacles.see_to_the_end(context, partial(end_left_over, records))
            reason = str(error)
        if reason is None:
            await context.report(assignment.Verified())
        else:
            said = ends.telling(await said_of_work(self.folder, context.origin.within, self.secrets))
            await context.report(assignment.Rejected(f"The agent's last words: {said}. {reason}" if said else reason))

    async def _keep_state(self, context: ActivityContext) -> None:
        """Keep the state of a task for other machines. The work does not depend on it, so an error is only shown."""
        agent, brief = context.origin.within.key, context.origin.within.record("assignment").brief
        keep = partial(self.workplace.keep_state, brief.task, brief.kept, self.folder.state(brief.task, brief.kept))
        try:
            await self._for_other_machines(agent, f"keep the state of {brief.task}", keep)
        except (WorkplaceError, OSError) as error:
            self.tell(agent, f"the state at {brief.task} is on this machine only: {error}")

    async def _for_other_machines(self, agent: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Bring work from another machine, or keep it for one; wait for obstacles, because the work is done.

        Raises WorkplaceError if the work is lost.
        """
        with self._obstacles.waits(agent, what) as tell:
            return await patiently(work, (InTheWayError,), tell, pause=partial(self._put_off, agent))

    async def _verified(self, activity: VerifyWork, agent: str, folder: Path, records: Path) -> str | None:
        """Run the verification commands, and return why the work is rejected; None if it is verified.

        A command that has ended at its fence says nothing of the work. The commands run again once this host has word
        of its server. A host that has lost the work gets none, and leaves this handler.
        """
        given = environment(os.environ, self.present())
        check = partial(verify, timeout_ms=activity.timeout_ms, records=records, env=given, quote=self.secrets.quotable)
        try:
            while True:
                with contextlib.suppress(PastFenceError):
                    return await check(folder, activity.commands, start=partial(self.fenced.start, agent))
                await self.fenced.until_renewed(agent)
        finally:
            self.fenced.forget(agent)

    async def park(self, activity: ParkWork, context: ActivityContext) -> None:
        """Commit the work to a reference of its own, from which it is merged later."""
        if context.cleanup_only:
            return
        agent = context.origin.within.key
        keep = partial(self.workplace.park, agent, activity.task, activity.epoch, activity.title)
        try:
            commit = await self._for_other_machines(agent, f"keep {activity.task}", keep)
        except (WorkplaceError, OSError) as error:
            await context.report(assignment.ParkingFailed(str(error)))
        else:
            await context.report(assignment.Parked(commit))

    def _is_blocked(self, notification: Notification, key: str) -> None:
        """Report a blocked merge to the runner."""
        self.when_blocked(without(notification, self.secrets), key)

    async def _put_off(self, agent: str) -> None:
        """Pause a blocked merge; meanwhile a runner may leave."""
        self.put_off.add(agent)
        self.when_put_off()
        try:
            await pause()
        finally:
            self.put_off.discard(agent)


def _nothing() -> None:
    """Do nothing; a runner replaces this."""


def _ignore(_notification: Notification, _key: str) -> None:
    """Do nothing; a runner replaces this."""
