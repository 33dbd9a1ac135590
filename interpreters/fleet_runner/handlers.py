"""The standard interpreter of a fleet: agents as processes, work in worktrees.

A handler performs and reports; it decides nothing. It reports failures outside as events of the lifecycle, so that an
error of one agent does not stop the fleet. It waits for obstacles that may pass, and shows the operator the wait.

A handler returns only when the processes of its session are verifiably gone. A handler that is cancelled without a
request to end (``ending``) belongs to a runner that goes down. It leaves the session to its shim and its lease, like a
runner that is killed, and the next run adopts the session.
"""

import contextlib
import os
from collections.abc import Awaitable, Callable, Generator
from errno import ENOTDIR
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio

from lifefold.core.fleet import service
from lifefold.core.fleet.service import invocation
from lifefold.core.fleet.worker import assignment, desired_state, nothing_done
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session
from lifefold.core.policy import ends
from lifefold.core.policy.overdue import kill_after_ms, wake_after_ms
from lifefold.effects import (
    CancelSession,
    CheckOutWork,
    ForceStopSession,
    IncrementSession,
    InspectWork,
    LogFatal,
    ParkWork,
    PrepareWorktree,
    RunSession,
    StorePrompt,
    VerifyWork,
)
from lifefold.interpreters.engine import ActivityContext, Clock, EffectContext, Interpreter, Unreached, WallClock
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.command import is_python_command
from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.file_variables import FileVariables, changed_names
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.follower import Follower
from lifefold.interpreters.fleet_runner.merging import Merging
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.fleet_runner.plan_changes import joined
from lifefold.interpreters.fleet_runner.redaction import secrets_of, variables_of
from lifefold.interpreters.fleet_runner.retry_until import patiently, pause
from lifefold.interpreters.fleet_runner.session_outcome import Agent, outcome, program_of, said_of_work, spent
from lifefold.interpreters.fleet_runner.specs import as_begun, session_spec, write_whole
from lifefold.interpreters.fleet_runner.stall import Watcher
from lifefold.interpreters.fleet_runner.triggers import Attendant
from lifefold.interpreters.fleet_runner.variables import environment, hint
from lifefold.interpreters.processes import (
    SessionError,
    SessionExit,
    SessionProcess,
    ShimUnresponsiveError,
    SurvivorsError,
    adopt,
    launch,
    read_order,
)
from lifefold.interpreters.processes.overdue import end_of
from lifefold.interpreters.worktrees.aside import DISPLACED, is_displaced
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.verification import end_left_over, verify
from lifefold.interpreters.worktrees.workplace import Workplace

T = TypeVar("T")

PLACE_LIMIT_S: Final = 600.0
"""The longest wait for a worktree in which other processes are at work."""

UNCERTAIN: Final = (SurvivorsError, OSError)
"""Errors after which it is unknown whether the processes of a session are gone."""


class Handlers:
    """Performs the effects and activities of workers and services.

    ``live`` has the running sessions by agent. ``put_off`` has the agents with a blocked merge, and ``when_put_off`` is
    called for each. ``when_unknown`` is called for an agent that should begin a session but is no longer in the fleet
    file. ``operator`` shows notices, ``notices`` has all of them.
    """

    def __init__(self, fleet: Fleet, folder: FleetFolder, workplace: Workplace, clock: Clock | None = None) -> None:
        """Make the handlers of a fleet; triggers are due by ``clock``, the clock of the engine."""
        self.live: Final[dict[str, tuple[int, SessionProcess]]] = {}
        self.put_off: Final[set[str]] = set()
        self.when_put_off: Callable[[], None] = _nothing
        self.when_unknown: Callable[[str], None] = _nothing_of
        self.secrets: Final = secrets_of(fleet, os.environ)
        self.operator: Final = Notices(Waits(folder.waits), self.secrets)
        self.notices: Final = self.operator.told
        self.fleet = fleet
        self._variables: Final = FileVariables(fleet.source)
        self.folder: Final = folder
        self.workplace: Final = workplace
        self._merging: Final = Merging(workplace, self._waits, self._put_off, self.tell)
        self._watcher: Final = Watcher(folder, self.operator)
        self._follower: Final = Follower(folder, self._kind_of, self.operator)
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
        of = Interpreter.of
        beside = of(self._watcher).over(of(self._follower)).over(of(self._attendant)).over(of(self._merging))
        return beside.over(self._standard())

    def _kind_of(self, agent: str) -> str:
        """Return the kind of an agent: the name of its adapter, if it has one."""
        return str(getattr(self.fleet.named(agent), "kind", ""))

    def _standard(self) -> Interpreter:
        return Interpreter(
            effects={
                StorePrompt: self.store_prompt,
                CancelSession: self.cancel_session,
                ForceStopSession: self.force_stop_session,
                LogFatal: self.log_fatal,
                IncrementSession: self.increment_session,
            },
            activities={
                PrepareWorktree: self.prepare_worktree,
                RunSession: self.run_session,
                CheckOutWork: self.check_out,
                InspectWork: self.inspect,
                VerifyWork: self.verify,
                ParkWork: self.park,
            },
        )

    def pid(self, agent: str) -> int | None:
        """Return the process id of an agent's running session; None without one."""
        _attempt, process = self.live.get(agent, (0, None))
        return None if process is None or process.identity is None else process.identity.pid

    async def store_prompt(self, effect: StorePrompt, context: EffectContext) -> None:
        """Write the prompt to a file for the agent and the operator."""
        record: session.Session | invocation.Invocation = context.entity.record
        with contextlib.suppress(OSError):  # the start of the session writes it again, and reports errors
            write_whole(self.folder.prompt(record.name, record.attempt), effect.prompt)

    async def cancel_session(self, _effect: CancelSession, context: EffectContext) -> None:
        """Ask the session to end; its shim ends it even if the runner dies meanwhile."""
        process = self._session_of(context)
        if process is not None:
            await _end(process, _session_in(context.within).patience_ms)

    async def force_stop_session(self, _effect: ForceStopSession, context: EffectContext) -> None:
        """Kill the session, after its grace or without one."""
        process = self._session_of(context)
        if process is not None:
            await process.kill()

    def _session_of(self, context: EffectContext) -> SessionProcess | None:
        """Return the session of the effect; None if it has ended and the agent has a later one.

        Raises ``Unreached`` while no handler attends the session: after a crash it must be adopted first.
        """
        attempt, process = self.live.get(context.within.key, (0, None))
        if process is None:
            raise Unreached(RunSession)
        return process if attempt == _session_in(context.within).attempt else None

    async def log_fatal(self, effect: LogFatal, context: EffectContext) -> None:
        """Show the operator a notice while the agent is down."""
        self.operator.tell_while(About.DOWN, context.within.key, effect.message)

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
            check_out = partial(self.workplace.check_out, agent, task, activity.epoch, kept)
            await self._placed(agent, f"check out {task}", check_out)
        except (WorkplaceError, OSError) as error:
            await context.report(assignment.CheckoutFailed(str(error)))
        else:
            await context.report(assignment.CheckedOut())

    async def _placed(self, agent: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work in the agent's worktree; wait up to ``PLACE_LIMIT_S`` while other processes block it."""
        with self._waits(agent, what) as tell:
            return await patiently(work, (InTheWayError,), tell, limit_s=PLACE_LIMIT_S)

    async def inspect(self, activity: InspectWork, context: ActivityContext) -> None:
        """Report the changes that a dead session has left; an unreadable worktree counts as unchanged."""
        if context.cleanup_only:
            return
        agent, task = context.origin.within.key, activity.task
        look = partial(self.workplace.differs, agent, task, activity.epoch)
        try:
            differs = await self._placed(agent, f"inspect the worktree of {task}", look)
            hidden = () if differs else await self.workplace.ignored(agent, task, activity.epoch)
            said = "" if differs else await said_of_work(self.folder, context.origin.within, self.secrets)
        except (WorkplaceError, OSError) as error:
            self.tell(agent, f"the changes of {task} cannot be read, so the task counts as unchanged: {error}")
            differs, hidden, said = False, (), ""
        await context.report(assignment.Inspected(differs, hidden[: nothing_done.MOST_HIDDEN + 1], said))

    async def verify(self, activity: VerifyWork, context: ActivityContext) -> None:
        """Run the verification commands."""
        records = self.folder.verification(activity.task, activity.epoch)
        folder = self.workplace.folder(context.origin.within.key, activity.task)
        if context.resumed:
            await self._see_to_the_end(context, partial(end_left_over, records))
        if context.cleanup_only:
            return
        try:
            given, within_ms = environment(os.environ, self.present()), activity.timeout_ms
            check = partial(verify, timeout_ms=within_ms, records=records, env=given, quote=self.secrets.quotable)
            reason = await check(folder, activity.commands)
        except (SessionError, OSError) as error:
            await self._see_to_the_end(context, partial(end_left_over, records))
            reason = str(error)
        if reason is None:
            await context.report(assignment.Verified())
        else:
            said = ends.telling(await said_of_work(self.folder, context.origin.within, self.secrets))
            await context.report(assignment.Rejected(f"The agent's last words: {said}. {reason}" if said else reason))

    async def park(self, activity: ParkWork, context: ActivityContext) -> None:
        """Commit the work to a reference of its own, from which it is merged later."""
        if context.cleanup_only:
            return
        agent = context.origin.within.key
        keep = partial(self.workplace.park, agent, activity.task, activity.epoch, activity.title)
        try:
            commit = await self._placed(agent, f"keep {activity.task}", keep)
        except (WorkplaceError, OSError) as error:
            await context.report(assignment.ParkingFailed(str(error)))
        else:
            await context.report(assignment.Parked(commit))

    async def _put_off(self, agent: str) -> None:
        """Pause a blocked merge; meanwhile a runner may leave."""
        self.put_off.add(agent)
        self.when_put_off()
        try:
            await pause()
        finally:
            self.put_off.discard(agent)

    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Run one session: start or adopt its process, report the start, wait, report the end."""
        if context.cleanup_only:
            await self._see_to_the_end(context, partial(self._end_left_over, activity, context))
            return
        found = None
        try:
            found = await self._found(activity, context)
            activity = as_begun(self.folder.last_start(context.origin.within.key, activity.attempt), activity)
            ended = await self._attend(found, activity, context) if isinstance(found, SessionProcess) else found
        except (SessionError, OSError) as error:
            if context.ending:
                await self._see_to_the_end(context, partial(self._end_left_over, activity, context))
            what = "not started" if found is None else "its end is not known"
            await context.report(session.SessionExited(session.Error(f"{what}: {error}")))
            return
        if ended is found and ended.outcome != "spawn-failed":
            await _say_that_it_runs(activity, context)
        agent = context.origin.within.key
        directory = self.folder.last_start(agent, activity.attempt)
        known = self.fleet.named(agent)  # a plan change may have removed it before this runner began
        lacks = _no_hint if known is None else partial(hint, os.environ, known)
        order = read_order(directory)
        command = known.command if known is not None else () if order is None else order.argv
        program = program_of(command, cooperative=is_python_command(command))
        called = await outcome(ended, directory, self.secrets, Agent(program, lacks, activity.timeout_ms))
        await context.report(session.SessionExited(called, await spent(directory)))

    async def _found(self, activity: RunSession, context: ActivityContext) -> SessionProcess | SessionExit:
        """Adopt the session that an earlier runner started, or launch it."""
        agent = context.origin.within.key
        if context.resumed:
            look = partial(adopt, self.folder.last_start(agent, activity.attempt))
            with self._waits(agent, "adopt its session") as tell:
                found = await patiently(look, UNCERTAIN, tell)
            if found is not None:
                return found
        if context.origin.within.kind != service.KIND and self.fleet.named(agent) is None:
            self.when_unknown(agent)
            await anyio.sleep_forever()  # the answer ends this activity
        write_whole(self.folder.prompt(agent, activity.attempt), activity.prompt)
        folder = self.folder.next_start(agent, activity.attempt)
        spec = session_spec(self.present(), self.folder, self.workplace, activity, context.origin)
        if context.origin.within.kind != service.KIND and is_displaced(Path(spec.cwd)):
            raise NotADirectoryError(ENOTDIR, DISPLACED, spec.cwd)
        return await launch(folder, spec, lease_ms=self.fleet.lease_ms)

    async def _attend(self, process: SessionProcess, activity: RunSession, context: ActivityContext) -> SessionExit:
        """Wait for the end of the session; end it when the handler is cancelled with ``ending``."""
        agent = context.origin.within.key
        with self._alive(context, activity.attempt, process):
            try:
                await _renew(process, self.fleet.lease_ms)  # the lease of an adopted session may be about to expire
                if process.start is not None:
                    await _say_that_it_runs(activity, context)
                wake_ms = wake_after_ms(activity.timeout_ms, activity.grace_ms)
                see = partial(end_of, process, wake_ms, activity.grace_ms, partial(self.tell, agent))
                with self._waits(agent, "see its session's end") as tell:
                    return await patiently(see, UNCERTAIN, tell)
            except anyio.get_cancelled_exc_class():
                if context.ending:
                    await self._see_to_the_end(context, partial(_finish, process, activity.grace_ms))
                raise

    async def _end_left_over(self, activity: RunSession, context: ActivityContext) -> None:
        """End a session that no handler attends, if any process of it is left."""
        agent = context.origin.within.key
        found = await adopt(self.folder.last_start(agent, activity.attempt))
        if isinstance(found, SessionProcess):
            wanted: desired_state.DesiredState = context.origin.within.record("desired_state")
            with self._alive(context, activity.attempt, found):
                await _finish(found, 0 if wanted.at_once else activity.grace_ms)

    async def _see_to_the_end(self, context: ActivityContext, end: Callable[[], Awaitable[object]]) -> None:
        """End the processes of an activity, and return only when their end is confirmed.

        A handler that is asked to end meanwhile continues.
        """
        agent, what = context.origin.within.key, "end what is left"
        try:
            with self._waits(agent, what) as tell:
                await patiently(end, (SessionError, OSError), tell)
        except anyio.get_cancelled_exc_class():
            if context.ending and not context.cleanup_only:
                with anyio.CancelScope(shield=True), self._waits(agent, what) as tell:
                    await patiently(end, (SessionError, OSError), tell)
            raise

    @contextlib.contextmanager
    def _waits(self, agent: str, what: str) -> Generator[Callable[[str], None]]:
        """Yield a function that shows why an agent waits; the wait ends with the block, unless it is cancelled."""
        try:
            yield lambda why: self.operator.in_the_way(agent, what, why)
        except Exception:
            self.operator.out_of_the_way(agent, what)
            raise
        self.operator.out_of_the_way(agent, what)

    @contextlib.contextmanager
    def _alive(self, context: ActivityContext, attempt: int, process: SessionProcess) -> Generator[None]:
        """Register the running session of an agent during the block."""
        agent = context.origin.within.key
        self.live[agent] = (attempt, process)
        context.attend()
        try:
            yield
        finally:
            del self.live[agent]


def _session_in(within: Aggregate) -> session.Session | invocation.Invocation:
    """Return the record of a worker's session, or of a service's invocation, which has the same handlers."""
    record: session.Session | invocation.Invocation = within.record(
        invocation.REF if within.kind == service.KIND else session.machine.name
    )
    return record


def _nothing() -> None:
    """Do nothing; a runner replaces this."""


def _nothing_of(_agent: str) -> None:
    """Do nothing; a runner replaces this."""


def _no_hint(_said: str) -> str:
    """Return no hint: the variables of a removed agent are not known."""
    return ""


async def _say_that_it_runs(activity: RunSession, context: ActivityContext) -> None:
    """Report the start, unless an earlier runner has reported it."""
    if context.origin.entity.state == session.State.SPAWNING:  # an invocation has a state of the same name
        await context.report(session.SessionStarted(activity.session_seq))


async def _end(process: SessionProcess, grace_ms: int) -> None:
    """Ask a session to end; kill it at once if its shim does not respond."""
    try:
        await process.end(grace_ms)
    except ShimUnresponsiveError:
        await process.kill()


async def _finish(process: SessionProcess, grace_ms: int) -> None:
    """End a session, and wait for its end."""
    await _end(process, grace_ms)
    await end_of(process, kill_after_ms(grace_ms), grace_ms)


async def _renew(process: SessionProcess, lease_ms: int) -> None:
    with contextlib.suppress(ShimUnresponsiveError):  # a frozen shim; its lease ends the session
        await process.renew(lease_ms)


async def renew_leases(live: Callable[[], list[SessionProcess]], lease_ms: int) -> None:
    """Renew the leases of all sessions, three times within each lease."""
    while True:
        for process in live():
            await _renew(process, lease_ms)
        await anyio.sleep(lease_ms / 3_000)
