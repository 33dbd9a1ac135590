"""The standard interpreter of the fleet: agents as processes, work in worktrees.

A handler performs and reports; it decides nothing. Whatever goes wrong in the world outside is reported as the event
that the lifecycle has for it, so that no error of one agent stops the fleet.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Final

import anyio

from lifefold.core import session
from lifefold.core.fleet import assignment
from lifefold.effects import (
    CancelSession,
    CheckOutWork,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    MergeWork,
    PrepareWorktree,
    RunSession,
    StorePrompt,
    VerifyWork,
)
from lifefold.interpreters.body import (
    SessionError,
    SessionExit,
    SessionProcess,
    SessionSpec,
    ShimUnresponsiveError,
    adopt,
    launch,
)
from lifefold.interpreters.body.verification import end_left_over, verify
from lifefold.interpreters.body.workplace import MergeConflict, Workplace, WorkplaceError
from lifefold.interpreters.engine import Interpreter, Occasion, Ongoing
from lifefold.interpreters.fleet import Agent, Fleet, expand
from lifefold.interpreters.run.folder import FleetFolder

Notice = Callable[[str, str], None]
"""Told of what people must know: ``(agent, message)``."""


MERGE_PAUSE_S: Final = 3.0
"""How long a merge waits before it looks again whether what was in its way has gone."""


class Handlers:
    """Performs what the fleet's workers ask for. ``live`` has the sessions of now, by agent."""

    def __init__(self, fleet: Fleet, folder: FleetFolder, workplace: Workplace, notice: Notice) -> None:
        """Take what the handlers need to know."""
        self.live: Final[dict[str, tuple[int, SessionProcess]]] = {}
        self._fleet: Final = fleet
        self._agents: Final = {agent.name: agent for agent in fleet.agents}
        self._folder: Final = folder
        self._workplace: Final = workplace
        self._notice: Final = notice

    def interpreter(self) -> Interpreter:
        """Return the interpreter made of these handlers."""
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
                VerifyWork: self.verify,
                MergeWork: self.merge,
            },
        )

    def pid(self, agent: str) -> int | None:
        """Return the process of an agent's session that runs now; None if none does."""
        _attempt, process = self.live.get(agent, (0, None))
        return None if process is None or process.identity is None else process.identity.pid

    async def store_prompt(self, effect: StorePrompt, occasion: Occasion) -> None:
        """Write the prompt where the agent and people can read it."""
        record: session.Session = occasion.entity.record
        path = self._folder.prompt(record.name, record.attempt)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(effect.prompt)

    async def cancel_session(self, _effect: CancelSession, occasion: Occasion) -> None:
        """Ask the session to end; its shim sees to it that it does, even if the runner dies meanwhile."""
        process = self._session_of(occasion)
        if process is not None:
            await _end(process, occasion.entity.record.limits.grace_ms)

    async def force_stop_session(self, _effect: ForceStopSession, occasion: Occasion) -> None:
        """Kill the session."""
        process = self._session_of(occasion)
        if process is not None:
            await process.kill()

    def _session_of(self, occasion: Occasion) -> SessionProcess | None:
        """Return the session that the effect means; after a crash the agent may be at a later one."""
        attempt, process = self.live.get(occasion.within.key, (0, None))
        return process if attempt == occasion.entity.record.attempt else None

    async def log_fatal(self, effect: LogFatal, occasion: Occasion) -> None:
        """Tell people."""
        self._notice(occasion.within.key, effect.message)

    async def increment_session(self, effect: IncrementSession, occasion: Occasion) -> None:
        """Do nothing: the reducer has counted, and the journal says so."""

    async def prepare_worktree(self, _activity: PrepareWorktree, ongoing: Ongoing) -> None:
        """Make the agent's worktree."""
        if ongoing.leftover:
            return
        try:
            await self._workplace.prepare(ongoing.occasion.within.key)
        except (WorkplaceError, OSError) as error:
            await ongoing.report(session.FatalError(f"no worktree: {error}"))
        else:
            await ongoing.report(session.WorktreeReady())

    async def check_out(self, activity: CheckOutWork, ongoing: Ongoing) -> None:
        """Give the task its clean place."""
        if ongoing.leftover:
            return
        try:
            await self._workplace.check_out(ongoing.occasion.within.key, activity.task, activity.epoch)
        except (WorkplaceError, OSError) as error:
            await ongoing.report(assignment.CheckoutFailed(str(error)))
        else:
            await ongoing.report(assignment.CheckedOut())

    async def verify(self, activity: VerifyWork, ongoing: Ongoing) -> None:
        """Run the verification commands."""
        records = self._folder.verification(activity.task, activity.epoch)
        folder = self._workplace.folder(ongoing.occasion.within.key, activity.task)
        try:
            if ongoing.leftover:
                await end_left_over(records)
                return
            reason = await verify(folder, activity.commands, timeout_ms=activity.timeout_ms, records=records)
        except (SessionError, OSError) as error:
            reason = str(error)
        await ongoing.report(assignment.Verified() if reason is None else assignment.Rejected(reason))

    async def merge(self, activity: MergeWork, ongoing: Ongoing) -> None:
        """Bring the work into the fleet's branch."""
        agent = ongoing.occasion.within.key
        told = ""
        while True:
            try:
                commit = await self._workplace.merge(agent, activity.task, activity.epoch, activity.title)
            except MergeConflict as error:
                await ongoing.report(assignment.Conflicted(str(error)))
                return
            except (WorkplaceError, OSError) as error:  # something of the user's is in the way; the work is done
                if str(error) != told:
                    told = str(error)
                    self._notice(agent, f"waits to merge {activity.task}: {told}")
                await anyio.sleep(MERGE_PAUSE_S)
            else:
                await ongoing.report(assignment.Merged(commit))
                return

    async def run_session(self, activity: RunSession, ongoing: Ongoing) -> None:
        """Run one session: start or adopt its process, say that it runs, wait, say how it ended."""
        try:
            found = await self._adopted(activity, ongoing) if ongoing.resumed else None
            if ongoing.leftover:
                await _finish(found, activity.grace_ms)
                return
            if found is None:
                found = await self._launched(activity, ongoing)
        except (SessionError, OSError) as error:
            await ongoing.report(session.SessionExited(session.Error(f"not started: {error}")))
            return
        if isinstance(found, SessionProcess):
            ended = await self._attend(found, activity, ongoing)
        else:
            ended = found
            if ended.outcome != "spawn-failed":
                await ongoing.report(session.SessionStarted(activity.session_seq))
        await ongoing.report(session.SessionExited(outcome(ended)))

    async def _adopted(self, activity: RunSession, ongoing: Ongoing) -> SessionProcess | SessionExit | None:
        """Return what an earlier runner has started; None if nothing was, which is then certain to remain so."""
        return await adopt(self._folder.last_start(ongoing.occasion.within.key, activity.attempt))

    async def _launched(self, activity: RunSession, ongoing: Ongoing) -> SessionProcess:
        agent = ongoing.occasion.within.key
        folder = self._folder.next_start(agent, activity.attempt)
        spec = self._spec(self._agents[agent], activity, ongoing)
        return await launch(folder, spec, lease_ms=self._fleet.lease_ms)

    async def _attend(self, process: SessionProcess, activity: RunSession, ongoing: Ongoing) -> SessionExit:
        """Wait for the session's end, and bring it about if it is not wanted any more."""
        agent = ongoing.occasion.within.key
        self.live[agent] = (activity.attempt, process)
        try:
            if process.start is not None:
                await ongoing.report(session.SessionStarted(activity.session_seq))
            return await process.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await _finish(process, activity.grace_ms)
            raise
        finally:
            del self.live[agent]

    def _spec(self, agent: Agent, activity: RunSession, ongoing: Ongoing) -> SessionSpec:
        task = ongoing.occasion.within.record("assignment").brief.task
        worktree = self._workplace.folder(agent.name, task)
        prompt_file = self._folder.prompt(agent.name, activity.attempt)
        argv = expand(
            agent.command, prompt=activity.prompt, prompt_file=str(prompt_file), task=task, worktree=str(worktree)
        )
        known = {
            "LIFEFOLD_AGENT": agent.name,
            "LIFEFOLD_TASK": task,
            "LIFEFOLD_ATTEMPT": str(activity.attempt),
            "LIFEFOLD_PROMPT_FILE": str(prompt_file),
        }
        return SessionSpec(
            argv=tuple(argv),
            cwd=str(worktree),
            env={**os.environ, **agent.env, **known},
            timeout_ms=activity.timeout_ms,
            grace_ms=activity.grace_ms,
            output_limit_bytes=agent.output_limit_bytes,
            generation=f"{agent.name}-{activity.attempt}",
        )


async def _end(process: SessionProcess, grace_ms: int) -> None:
    """Ask a session to end; kill it at once if its shim does not listen."""
    try:
        await process.end(grace_ms)
    except ShimUnresponsiveError:
        await process.kill()


async def _finish(found: SessionProcess | SessionExit | None, grace_ms: int) -> None:
    """See a session to its end, if it has not ended yet."""
    if isinstance(found, SessionProcess):
        await _end(found, grace_ms)
        await found.wait()


def outcome(ended: SessionExit) -> session.Success | session.Error | session.Timeout:
    """Return what the lifecycle calls a session's end."""
    if ended.outcome == "timeout":
        return session.Timeout()
    if ended.outcome == "exited" and ended.code == 0:
        return session.Success()
    return session.Error(ended.message)


async def renew_leases(live: Callable[[], list[SessionProcess]], lease_ms: int) -> None:
    """Tell the shims, again and again, that somebody is still there: three times within every lease."""
    while True:
        for process in live():
            with contextlib.suppress(ShimUnresponsiveError):  # a frozen one; if it stays so, its lease ends it
                await process.renew(lease_ms)
        await anyio.sleep(lease_ms / 3_000)
