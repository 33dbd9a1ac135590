"""The standard interpreter of the fleet: agents as processes, work in worktrees.

A handler performs and reports; it decides nothing. Whatever goes wrong in the world outside is reported as the event
that the lifecycle has for it, so that no error of one agent stops the fleet. What may pass is waited for, and told.

A handler that has returned has left nothing: as long as it is not certain that a session's processes are gone, it does
not return. But a handler that is cancelled although nobody asked for its end (``ending``) has a runner that goes down;
it leaves the session to its shim and its lease, as a runner that is killed does, and the next run adopts it.
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
from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.merging import Merging
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.fleet_runner.plan_changes import joined
from lifefold.interpreters.fleet_runner.redaction import secrets_of, variables_of
from lifefold.interpreters.fleet_runner.retry_until import patiently, pause
from lifefold.interpreters.fleet_runner.session_outcome import outcome, program_of, spent
from lifefold.interpreters.fleet_runner.specs import session_spec, write_whole
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
)
from lifefold.interpreters.processes.overdue import end_of
from lifefold.interpreters.worktrees.aside import DISPLACED, is_displaced
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.verification import end_left_over, verify
from lifefold.interpreters.worktrees.workplace import Workplace

T = TypeVar("T")

PLACE_LIMIT_S: Final = 600.0
"""How long a worktree that others are at work in is waited for."""

UNCERTAIN: Final = (SurvivorsError, OSError)
"""What leaves it open whether a session's processes are gone."""


class Handlers:
    """Performs what the fleet's workers and services ask for.

    ``live`` has the sessions of now, by agent; ``put_off`` the agents whose merge waits for what is in its way, and
    ``when_put_off`` is called whenever one is. ``people`` is what people must know, ``notices`` all they were told.
    """

    def __init__(self, fleet: Fleet, folder: FleetFolder, workplace: Workplace, clock: Clock | None = None) -> None:
        """Take what the handlers need to know; ``clock`` is that of the engine, by which triggers are due."""
        self.live: Final[dict[str, tuple[int, SessionProcess]]] = {}
        self.put_off: Final[set[str]] = set()
        self.when_put_off: Callable[[], None] = _nothing
        self.secrets: Final = secrets_of(fleet, os.environ)
        self.people: Final = Notices(Waits(folder.waits), self.secrets)
        self.notices: Final = self.people.told
        self.fleet = fleet
        self.folder: Final = folder
        self.workplace: Final = workplace
        self._merging: Final = Merging(workplace, self._waits, self._put_off, self.tell)
        self._watcher: Final = Watcher(folder, self.people)
        self._attendant: Final = Attendant(fleet, folder, self.people, (clock or WallClock()).now_ms)

    def adopt(self, fleet: Fleet) -> None:
        """Go on by a changed fleet file."""
        self.fleet = joined(self.fleet, fleet)
        self.secrets.learn(variables_of(fleet, os.environ), fleet.redact)
        self._attendant.adopt(self.fleet)

    @property
    def _cooperative(self) -> set[str]:
        """The agents that come to a safe point by themselves."""
        return {agent.name for agent in self.fleet.agents if agent.target}

    def tell(self, agent: str, message: str) -> None:
        """Let people know something."""
        self.people.tell(agent, message)

    def interpreter(self) -> Interpreter:
        """Return the interpreter made of these handlers."""
        of = Interpreter.of
        return of(self._watcher).over(of(self._attendant)).over(of(self._merging)).over(self._standard())

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
        """Return the process of an agent's session that runs now; None if none does."""
        _attempt, process = self.live.get(agent, (0, None))
        return None if process is None or process.identity is None else process.identity.pid

    async def store_prompt(self, effect: StorePrompt, occasion: EffectContext) -> None:
        """Write the prompt where the agent and people can read it."""
        record: session.Session | invocation.Invocation = occasion.entity.record
        with contextlib.suppress(OSError):  # the session writes it, too, before it begins, and reports what is wrong
            write_whole(self.folder.prompt(record.name, record.attempt), effect.prompt)

    async def cancel_session(self, _effect: CancelSession, occasion: EffectContext) -> None:
        """Ask the session to end; its shim sees to it that it does, even if the runner dies meanwhile."""
        process = self._session_of(occasion)
        if process is not None:
            await _end(process, _session_in(occasion.within).patience_ms)

    async def force_stop_session(self, _effect: ForceStopSession, occasion: EffectContext) -> None:
        """Kill the session: it has outlasted its grace, or is to have none."""
        process = self._session_of(occasion)
        if process is not None:
            await process.kill()

    def _session_of(self, occasion: EffectContext) -> SessionProcess | None:
        """Return the session that the effect means; None if it is over: the agent may be at a later one.

        Raises ``Unreached`` while no session of the agent is attended: after a crash it is looked for first.
        """
        attempt, process = self.live.get(occasion.within.key, (0, None))
        if process is None:
            raise Unreached(RunSession)
        return process if attempt == _session_in(occasion.within).attempt else None

    async def log_fatal(self, effect: LogFatal, occasion: EffectContext) -> None:
        """Tell people."""
        self.people.tell_while(About.DOWN, occasion.within.key, effect.message)

    async def increment_session(self, effect: IncrementSession, occasion: EffectContext) -> None:
        """Do nothing: the reducer has counted, and the journal says so."""

    async def prepare_worktree(self, _activity: PrepareWorktree, context: ActivityContext) -> None:
        """Make the agent's worktree."""
        if context.cleanup_only:
            return
        agent = context.occasion.within.key
        try:
            await self._placed(agent, "prepare its worktree", partial(self.workplace.prepare, agent))
        except (WorkplaceError, OSError) as error:
            await context.report(session.FatalError(f"no worktree: {error}"))
        else:
            await context.report(session.WorktreeReady())

    async def check_out(self, activity: CheckOutWork, context: ActivityContext) -> None:
        """Give the task its clean place."""
        if context.cleanup_only:
            return
        agent, task = context.occasion.within.key, activity.task
        try:
            check_out = partial(self.workplace.check_out, agent, task, activity.epoch)
            await self._placed(agent, f"check out {task}", check_out)
        except (WorkplaceError, OSError) as error:
            await context.report(assignment.CheckoutFailed(str(error)))
        else:
            await context.report(assignment.CheckedOut())

    async def _placed(self, agent: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do something to the agent's place; wait, but not for ever, while others are in the way."""
        with self._waits(agent, what) as tell:
            return await patiently(work, (InTheWayError,), tell, limit_s=PLACE_LIMIT_S)

    async def inspect(self, activity: InspectWork, context: ActivityContext) -> None:
        """Look at what a session has left of the task. What nobody can look at any more is nothing."""
        if context.cleanup_only:
            return
        agent, task = context.occasion.within.key, activity.task
        look = partial(self.workplace.differs, agent, task, activity.epoch)
        try:
            differs = await self._placed(agent, f"look at what is left of {task}", look)
            hidden = () if differs else await self.workplace.ignored(agent, task, activity.epoch)
        except (WorkplaceError, OSError) as error:
            self.tell(agent, f"nobody can say what is left of {task}: {error}")
            differs, hidden = False, ()
        await context.report(assignment.Inspected(differs, hidden[: nothing_done.MOST_HIDDEN + 1]))

    async def verify(self, activity: VerifyWork, context: ActivityContext) -> None:
        """Run the verification commands."""
        records = self.folder.verification(activity.task, activity.epoch)
        folder = self.workplace.folder(context.occasion.within.key, activity.task)
        if context.resumed:
            await self._see_to_the_end(context, partial(end_left_over, records))
        if context.cleanup_only:
            return
        try:
            given, within_ms = environment(os.environ, self.fleet), activity.timeout_ms
            check = partial(verify, timeout_ms=within_ms, records=records, env=given, quote=self.secrets.quotable)
            reason = await check(folder, activity.commands)
        except (SessionError, OSError) as error:
            await self._see_to_the_end(context, partial(end_left_over, records))
            reason = str(error)
        await context.report(assignment.Verified() if reason is None else assignment.Rejected(reason))

    async def park(self, activity: ParkWork, context: ActivityContext) -> None:
        """Keep the work for whoever merges it."""
        if context.cleanup_only:
            return
        agent = context.occasion.within.key
        keep = partial(self.workplace.park, agent, activity.task, activity.epoch, activity.title)
        try:
            commit = await self._placed(agent, f"keep {activity.task}", keep)
        except (WorkplaceError, OSError) as error:
            await context.report(assignment.ParkingFailed(str(error)))
        else:
            await context.report(assignment.Parked(commit))

    async def _put_off(self, agent: str) -> None:
        """Let a merge rest for a while: a runner that is to leave may do so now."""
        self.put_off.add(agent)
        self.when_put_off()
        try:
            await pause()
        finally:
            self.put_off.discard(agent)

    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Run one session: start or adopt its process, say that it runs, wait, say how it ended."""
        if context.cleanup_only:
            await self._see_to_the_end(context, partial(self._end_left_over, activity, context))
            return
        found = None
        try:
            found = await self._found(activity, context)
            ended = await self._attend(found, activity, context) if isinstance(found, SessionProcess) else found
        except (SessionError, OSError) as error:
            if context.ending:
                await self._see_to_the_end(context, partial(self._end_left_over, activity, context))
            what = "not started" if found is None else "its end is not known"
            await context.report(session.SessionExited(session.Error(f"{what}: {error}")))
            return
        if ended is found and ended.outcome != "spawn-failed":
            await _say_that_it_runs(activity, context)
        agent = context.occasion.within.key
        directory = self.folder.last_start(agent, activity.attempt)
        lacks = partial(hint, os.environ, self.fleet.named(agent))
        program = program_of(self.fleet.named(agent).command, cooperative=agent in self._cooperative)
        called = await outcome(ended, directory, self.secrets, lacks, program)
        await context.report(session.SessionExited(called, await spent(directory)))

    async def _found(self, activity: RunSession, context: ActivityContext) -> SessionProcess | SessionExit:
        """Return the session that an earlier runner has started; if none has, launch it."""
        agent = context.occasion.within.key
        if context.resumed:
            look = partial(adopt, self.folder.last_start(agent, activity.attempt))
            with self._waits(agent, "adopt its session") as tell:
                found = await patiently(look, UNCERTAIN, tell)
            if found is not None:
                return found
        write_whole(self.folder.prompt(agent, activity.attempt), activity.prompt)
        folder = self.folder.next_start(agent, activity.attempt)
        spec = session_spec(self.fleet, self.folder, self.workplace, activity, context.occasion)
        if context.occasion.within.kind != service.KIND and is_displaced(Path(spec.cwd)):
            raise NotADirectoryError(ENOTDIR, DISPLACED, spec.cwd)
        return await launch(folder, spec, lease_ms=self.fleet.lease_ms)

    async def _attend(self, process: SessionProcess, activity: RunSession, context: ActivityContext) -> SessionExit:
        """Wait for the session's end, and bring it about if it is not wanted any more."""
        agent = context.occasion.within.key
        with self._alive(context, activity.attempt, process):
            try:
                await _renew(process, self.fleet.lease_ms)  # an adopted one's lease may be about to end
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
        """End a session that nobody attends, if anything of it is there."""
        agent = context.occasion.within.key
        found = await adopt(self.folder.last_start(agent, activity.attempt))
        if isinstance(found, SessionProcess):
            wanted: desired_state.DesiredState = context.occasion.within.record("desired_state")
            with self._alive(context, activity.attempt, found):
                await _finish(found, 0 if wanted.at_once else activity.grace_ms)

    async def _see_to_the_end(self, context: ActivityContext, end: Callable[[], Awaitable[object]]) -> None:
        """End what there may be of an activity, and return only when that is certain: its end is confirmed then.

        A handler whose end is asked for meanwhile goes on with it.
        """
        agent, what = context.occasion.within.key, "end what is left"
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
        """Give what tells people why an agent waits. It holds until that is over; who is cancelled may wait again."""
        try:
            yield lambda why: self.people.in_the_way(agent, what, why)
        except Exception:
            self.people.out_of_the_way(agent, what)
            raise
        self.people.out_of_the_way(agent, what)

    @contextlib.contextmanager
    def _alive(self, context: ActivityContext, attempt: int, process: SessionProcess) -> Generator[None]:
        """Let a session be the one that the agent has now."""
        agent = context.occasion.within.key
        self.live[agent] = (attempt, process)
        context.attend()
        try:
            yield
        finally:
            del self.live[agent]


def _session_in(within: Aggregate) -> session.Session | invocation.Invocation:
    """Return the record of a worker's session, or of a service's run, which is attended to in the same way."""
    record: session.Session | invocation.Invocation = within.record(
        invocation.REF if within.kind == service.KIND else session.machine.name
    )
    return record


def _nothing() -> None:
    """Do nothing, until a runner wants to know."""


async def _say_that_it_runs(activity: RunSession, context: ActivityContext) -> None:
    """Report the start, unless the log has it from the runner that this one takes the session over from."""
    if context.occasion.entity.state == session.State.SPAWNING:  # a service's run has a state of the same name
        await context.report(session.SessionStarted(activity.session_seq))


async def _end(process: SessionProcess, grace_ms: int) -> None:
    """Ask a session to end; kill it at once if its shim does not listen."""
    try:
        await process.end(grace_ms)
    except ShimUnresponsiveError:
        await process.kill()


async def _finish(process: SessionProcess, grace_ms: int) -> None:
    """See a session to its end."""
    await _end(process, grace_ms)
    await end_of(process, kill_after_ms(grace_ms), grace_ms)


async def _renew(process: SessionProcess, lease_ms: int) -> None:
    with contextlib.suppress(ShimUnresponsiveError):  # a frozen one; if it stays so, its lease ends it
        await process.renew(lease_ms)


async def renew_leases(live: Callable[[], list[SessionProcess]], lease_ms: int) -> None:
    """Tell the shims, again and again, that somebody is still there: three times within every lease."""
    while True:
        for process in live():
            await _renew(process, lease_ms)
        await anyio.sleep(lease_ms / 3_000)
