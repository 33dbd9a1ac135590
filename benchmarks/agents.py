"""Agents in memory: a system of one session each, served by handlers that report at once, or after a pause.

The first line of a handler measures the time since its event was offered. By then the event has been decided on and
written durably, and its effect has reached the handler.
"""

import gc
import tracemalloc
from collections.abc import Callable
from time import perf_counter

import anyio

from lifefold.core.kernel import AggregateType, Envelope, Event, Opened, System
from lifefold.core.lifecycles import session
from lifefold.effects import (
    BuildPrompt,
    CancelSession,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    PrepareWorktree,
    RefreshWorktree,
    RunSession,
    StorePrompt,
)
from lifefold.interpreters.engine import ActivityContext, EffectContext, Engine, Interpreter
from lifefold.interpreters.store import EventStore

REF = "session"
PROMPT = "Make the tests of the package pass, and say in two sentences what was wrong with them."

system = System("agents", AggregateType("agent", machines=(session.machine,)))


class Agents:
    """A number of agents with a number of sessions each. ``latencies_s`` has a time for every performed effect."""

    def __init__(self, count: int, sessions: int, pause_s: Callable[[], float] | None = None) -> None:
        """Prepare the agents. ``pause_s`` returns the pause before a report; None means no pause."""
        self.names = [f"agent/{number:04}" for number in range(count)]
        self.latencies_s: list[float] = []
        self._sessions = sessions
        self._pause_s = pause_s
        self._offered_s: dict[tuple[str, type[Event]], float] = {}
        self._left = count
        self._engine: Engine | None = None

    async def live(self, store: EventStore) -> float:
        """Run all agents to their end; return the time in seconds since the first event was offered."""
        engine = self._engine = Engine(system, store, self.interpreter())
        await engine.load()
        start = perf_counter()
        for name in self.names:
            opened = Opened({REF: session.Session(name=name)})
            engine.offer(name, Envelope("", opened, engine.clock.now_ms(), "plan", key="opened"))
        await engine.run(self.finished)
        return perf_counter() - start

    def finished(self, _engine: Engine) -> bool:
        """Tell whether every agent has completed its sessions."""
        return self._left == 0

    def interpreter(self) -> Interpreter:
        """Return the handlers."""
        return Interpreter(
            effects={
                StorePrompt: self.store_prompt,
                IncrementSession: self.increment_session,
                LogFatal: self.log_fatal,
                CancelSession: self.never,
                ForceStopSession: self.never,
            },
            activities={
                PrepareWorktree: self.prepare_worktree,
                BuildPrompt: self.build_prompt,
                RunSession: self.run_session,
                RefreshWorktree: self.refresh_worktree,
            },
        )

    def _arrived(self, context: EffectContext, cause: type[Event]) -> None:
        self.latencies_s.append(perf_counter() - self._offered_s[context.within.name, cause])

    async def _report(self, context: ActivityContext, event: Event) -> None:
        if self._pause_s is not None:
            await anyio.sleep(self._pause_s())
        self._offered_s[context.origin.within.name, type(event)] = perf_counter()
        await context.report(event)

    async def store_prompt(self, _effect: StorePrompt, context: EffectContext) -> None:
        """Measure the latency."""
        self._arrived(context, session.PromptReady)

    async def increment_session(self, _effect: IncrementSession, context: EffectContext) -> None:
        """Measure the latency."""
        self._arrived(context, session.WorktreeReady)

    async def log_fatal(self, _effect: LogFatal, context: EffectContext) -> None:
        """Measure the latency; this agent has completed all its sessions."""
        self._arrived(context, session.FatalError)
        self._finish()

    def _finish(self) -> None:
        self._left -= 1
        if self._left == 0 and self._engine is not None:
            self._engine.wake()

    async def never(self, effect: CancelSession | ForceStopSession, _context: EffectContext) -> None:
        """Fail: these agents are never interrupted."""
        raise AssertionError(effect)

    async def prepare_worktree(self, _activity: PrepareWorktree, context: ActivityContext) -> None:
        """Report that the worktree is ready. The simultaneous opening of all agents is not measured."""
        await self._report(context, session.WorktreeReady())

    async def build_prompt(self, activity: BuildPrompt, context: ActivityContext) -> None:
        """Measure the latency; the prompt is ready if a session is left."""
        self._arrived(context.origin, session.WorktreeReady)
        if activity.session_seq < self._sessions:
            await self._report(context, session.PromptReady(PROMPT))
        else:
            await self._report(context, session.FatalError("all sessions are done"))

    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Measure the latency; the session starts, and succeeds."""
        self._arrived(context.origin, session.PromptReady)
        await self._report(context, session.SessionStarted(activity.session_seq))
        await self._report(context, session.SessionExited(session.Success()))

    async def refresh_worktree(self, _activity: RefreshWorktree, context: ActivityContext) -> None:
        """Measure the latency; the worktree is ready again."""
        self._arrived(context.origin, session.SessionExited)
        await self._report(context, session.WorktreeReady())


class Sitting(Agents):
    """Agents whose first session never ends. ``bytes_each`` is the size of Python's objects per running agent."""

    def __init__(self, count: int) -> None:
        """Prepare the agents."""
        super().__init__(count, sessions=1)
        self.bytes_each = 0.0

    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Start the session, and never end it."""
        await self._report(context, session.SessionStarted(activity.session_seq))
        self._finish()
        await anyio.sleep_forever()

    def finished(self, engine: Engine) -> bool:
        """Tell whether every session runs, and then measure the memory."""
        done = super().finished(engine)
        if done:
            gc.collect()
            size, _peak = tracemalloc.get_traced_memory()
            self.bytes_each = size / len(self.names)
        return done
