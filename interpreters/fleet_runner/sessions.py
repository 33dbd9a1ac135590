"""The handlers of sessions: start or adopt a process, see it to its end, and report how it ended.

A handler returns only when the processes of its session are verifiably gone. A handler that is cancelled without a
request to end (``ending``) belongs to a runner that goes down. It leaves the session to its shim and its lease, like a
runner that is killed, and the next run adopts the session.
"""

import contextlib
import os
from collections.abc import Callable, Generator
from errno import ENOTDIR
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from lifefold.core.fleet import service
from lifefold.core.fleet.service import invocation
from lifefold.core.fleet.worker import desired_state, question
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session
from lifefold.core.policy.overdue import kill_after_ms, wake_after_ms
from lifefold.effects import CancelSession, ForceStopSession, RunSession, StorePrompt
from lifefold.interpreters.engine import ActivityContext, EffectContext, Unreached, handles
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.command import is_python_command
from lifefold.interpreters.fleet_file.model import model_of
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.fleet_runner.obstacles import Obstacles
from lifefold.interpreters.fleet_runner.retry_until import patiently
from lifefold.interpreters.fleet_runner.session_facts import adapter_of_start, facts_of
from lifefold.interpreters.fleet_runner.session_outcome import Agent, exited, program_of
from lifefold.interpreters.fleet_runner.specs import session_spec
from lifefold.interpreters.fleet_runner.time_limits import TimeLimits
from lifefold.interpreters.fleet_runner.variables import hint
from lifefold.interpreters.processes import (
    Fence,
    SessionError,
    SessionExit,
    SessionProcess,
    ShimUnresponsiveError,
    SurvivorsError,
    adopt,
    launch,
    read_order,
)
from lifefold.interpreters.processes.fenced import is_at_its_fence
from lifefold.interpreters.processes.overdue import end_of
from lifefold.interpreters.processes.private import write_whole
from lifefold.interpreters.worktrees.aside import DISPLACED, is_displaced
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.workplace import Workplace

KEEP_S: Final = 60.0
"""The longest time that the end of a session waits until other machines can go on with its work."""

ENTER_S: Final = 600.0
"""The longest wait of a session for what another machine has of its task."""

UNCERTAIN: Final = (SurvivorsError, OSError)
"""Errors after which it is unknown whether the processes of a session are gone."""


class Sessions:
    """Performs the effects and activities of sessions, and of the runs of services.

    ``live`` has the running sessions by agent, and ``limits`` their limits. ``when_unknown`` is called for an agent
    that should begin a session but is no longer in the fleet file.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a runner, each with its name
        self,
        fleet: Callable[[], Fleet],
        present: Callable[[], Fleet],
        folder: FleetFolder,
        workplace: Workplace,
        operator: Notices,
        run: str = "",
    ) -> None:
        """Take the fleet, as the plan has it and with the present variables; the places of its sessions; its run."""
        self.live: Final[dict[str, tuple[int, SessionProcess]]] = {}
        self.limits: Final = TimeLimits(folder)
        self.fences: Final[dict[str, Fence]] = {}
        """The fences of agents that another host may take over. A session without a fence has a lease."""
        self.when_unknown: Callable[[str], None] = _nothing_of
        self._fleet: Final = fleet
        self._present: Final = present
        self._folder: Final = folder
        self._workplace: Final = workplace
        self._secrets: Final = operator.secrets
        self._operator: Final = operator
        self._run: Final = run
        self._obstacles: Final = Obstacles(operator)

    async def renew_leases(self) -> None:
        """Renew the leases of all sessions, three times within each lease."""
        while True:
            for agent, (_, process) in list(self.live.items()):
                await self._renew(agent, process)
            await anyio.sleep(self._fleet().lease_ms / 3_000)

    async def renew_fence(self, agent: str, fence: Fence) -> None:
        """Let the present and the next session of an agent live until this fence."""
        self.fences[agent] = fence
        _attempt, process = self.live.get(agent, (0, None))
        if process is not None:
            await self._renew(agent, process)

    async def _renew(self, agent: str, process: SessionProcess) -> None:
        fence = self.fences.get(agent)
        with contextlib.suppress(ShimUnresponsiveError):  # a frozen shim; its lease or fence ends the session
            if fence is None:
                await process.renew(self._fleet().lease_ms)
            else:
                await process.renew_fence(fence)

    def pid(self, agent: str) -> int | None:
        """Return the process id of an agent's running session; None without one."""
        _attempt, process = self.live.get(agent, (0, None))
        return None if process is None or process.identity is None else process.identity.pid

    @handles(StorePrompt)
    async def store_prompt(self, effect: StorePrompt, context: EffectContext) -> None:
        """Write the prompt to a file for the agent and the operator."""
        record: session.Session | invocation.Invocation = context.entity.record
        with contextlib.suppress(OSError):  # the start of the session writes it again, and reports errors
            write_whole(self._folder.prompt(record.name, record.attempt), effect.prompt)

    @handles(CancelSession)
    async def cancel_session(self, _effect: CancelSession, context: EffectContext) -> None:
        """Ask the session to end; its shim ends it even if the runner dies meanwhile."""
        process = self._session_of(context)
        if process is not None:
            await _end(process, _session_in(context.within).present_grace_ms)

    @handles(ForceStopSession)
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

    @handles(RunSession)
    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Run one session: start or adopt its process, report the start, wait, report the end."""
        if context.cleanup_only:
            await self._obstacles.see_to_the_end(context, partial(self._end_left_over, activity, context))
            return
        found = None
        try:
            found = await self._found(activity, context)
            ended = await self._attend(found, activity, context) if isinstance(found, SessionProcess) else found
        except (SessionError, OSError) as error:
            if context.ending:
                await self._obstacles.see_to_the_end(context, partial(self._end_left_over, activity, context))
            what = "not started" if found is None else "its end is not known"
            await context.report(session.SessionExited(session.Error(f"{what}: {error}")))
            return
        if ended is found and ended.outcome != "spawn-failed":
            await _say_that_it_runs(activity, context)
        if not is_at_its_fence(ended):  # what it has left is not finished, and another host may go on with the work
            await self._keep_work(context.origin.within)
        await context.report(await self._exited(ended, activity, context.origin.within))

    async def _keep_work(self, within: Aggregate) -> None:
        """Keep what a session has left, so that another machine can verify it; the verification tries it again."""
        if within.kind == service.KIND:
            return
        brief = within.record("assignment").brief
        state = self._folder.state(brief.task, brief.kept)
        for what, keep in (
            ("work", partial(self._workplace.keep, within.key, brief.task, brief.epoch)),
            ("state", partial(self._workplace.keep_state, brief.task, brief.kept, state)),
        ):
            try:
                with anyio.fail_after(KEEP_S / 2):
                    await keep()
            except (WorkplaceError, OSError, TimeoutError) as error:
                why = str(error) or f"it was not pushed within {KEEP_S / 2:.0f} s"
                self._operator.tell(within.key, f"the {what} at {brief.task} is on this machine only: {why}")

    async def _exited(self, ended: SessionExit, activity: RunSession, within: Aggregate) -> session.SessionExited:
        """Return the end of a session, by the adapter with which it began."""
        agent, asks = within.key, question.REF in within.entities
        directory = self._folder.last_start(agent, activity.attempt)
        known = self._fleet().named(agent)  # a plan change may have removed it before this runner began
        lacks = _no_hint if known is None else partial(hint, os.environ, known)
        order = read_order(directory)
        command = known.command if known is not None else () if order is None else order.argv
        program = program_of(command, cooperative=is_python_command(command))
        facts = (await facts_of(adapter_of_start(directory), directory, ended)).priced(
            self._fleet().prices, model_of(known)
        )
        return exited(ended, facts, self._secrets, Agent(program, lacks, activity.timeout_ms, asks))

    async def _found(self, activity: RunSession, context: ActivityContext) -> SessionProcess | SessionExit:
        """Adopt the session that an earlier runner started, or launch it."""
        agent = context.origin.within.key
        if context.resumed:
            look = partial(adopt, self._folder.last_start(agent, activity.attempt))
            with self._obstacles.waits(agent, "adopt its session") as tell:
                found = await patiently(look, UNCERTAIN, tell)
            if found is not None:
                return found
        if context.origin.within.kind != service.KIND and self._fleet().named(agent) is None:
            self.when_unknown(agent)
            await anyio.sleep_forever()  # the answer ends this activity
        write_whole(self._folder.prompt(agent, activity.attempt), activity.prompt)
        folder = self._folder.next_start(agent, activity.attempt)
        spec = session_spec(self._present(), self._folder, self._workplace, activity, context.origin, self._run)
        if context.origin.within.kind != service.KIND:
            await self._enter(context.origin.within)
        if context.origin.within.kind != service.KIND and is_displaced(Path(spec.cwd)):
            raise NotADirectoryError(ENOTDIR, DISPLACED, spec.cwd)
        fence = self.fences.get(agent)
        return await launch(folder, spec, lease_ms=None if fence else self._fleet().lease_ms, fence=fence)

    async def _enter(self, within: Aggregate) -> None:
        """Let the worktree have the claim, also if it was checked out on another machine. Raises SessionError."""
        agent, brief = within.key, within.record("assignment").brief
        enter = partial(self._workplace.enter, agent, brief.task, brief.epoch)
        state = self._folder.state(brief.task, brief.kept)
        try:
            with self._obstacles.waits(agent, f"begin with {brief.task}") as tell:
                await patiently(enter, (InTheWayError,), tell, limit_s=ENTER_S)
                bring = partial(self._workplace.bring_state, brief.task, brief.kept, state)
                await patiently(bring, (InTheWayError,), tell, limit_s=ENTER_S)
        except WorkplaceError as error:
            raise SessionError(str(error)) from error

    async def _attend(self, process: SessionProcess, activity: RunSession, context: ActivityContext) -> SessionExit:
        """Wait for the end of the session; end it when the handler is cancelled with ``ending``."""
        agent = context.origin.within.key
        with self._alive(context, activity.attempt, process):
            try:
                await self._renew(agent, process)  # the lease of an adopted session may be about to expire
                if process.start is not None:
                    await _say_that_it_runs(activity, context)
                wake_ms = wake_after_ms(activity.timeout_ms, activity.grace_ms)
                within = partial(self.limits.within, agent, is_held=question.waits(context.origin.within))
                tell_of = partial(self._operator.tell, agent)
                see = partial(end_of, process, wake_ms, activity.grace_ms, tell_of, within)
                with self._obstacles.waits(agent, "see its session's end") as tell:
                    return await patiently(see, UNCERTAIN, tell)
            except anyio.get_cancelled_exc_class():
                if context.ending:
                    await self._obstacles.see_to_the_end(context, partial(_finish, process, activity.grace_ms))
                raise

    async def _end_left_over(self, activity: RunSession, context: ActivityContext) -> None:
        """End a session that no handler attends, if any process of it is left."""
        agent = context.origin.within.key
        found = await adopt(self._folder.last_start(agent, activity.attempt))
        if isinstance(found, SessionProcess):
            wanted: desired_state.DesiredState = context.origin.within.record("desired_state")
            with self._alive(context, activity.attempt, found):
                await _finish(found, 0 if wanted.at_once else activity.grace_ms)

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
