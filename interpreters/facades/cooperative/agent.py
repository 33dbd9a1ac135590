"""The agent of document 000, for subclassing: its methods, its hooks, its safe points.

Every method is an event of ``lifefold.core.lifecycles.runtime``, and every answer is that machine's; what is here is
the way in and out. An agent may be used from several threads. Hooks are called without any lock held, and may call the
agent again; the order is that of ``driver``: a transition made by a hook takes effect at once, and its own hooks follow
when those before them are done (A22).

Nothing runs by itself. Timeouts that are due happen first at every call, and at ``tick``, which whoever supervises the
agent should call now and then.
"""

import itertools
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final, Generic, Self, TypeVar, overload

from lifefold.core.kernel import Event, LifecycleEvent, Machine, Transition, journal, replace
from lifefold.core.lifecycles import runtime
from lifefold.core.lifecycles.runtime import SEED, Limits, Numbering, Runtime, State
from lifefold.effects import CallHook, LogFailure, LogFatal, ReportStuck, ReportTaskFailed, SignalPreemption
from lifefold.interpreters.facades.arguments import string
from lifefold.interpreters.facades.cooperative.requests import duration_ms, preempt_request
from lifefold.interpreters.facades.cooperative.states import AgentRetiredError, HookError, StateTransitionError
from lifefold.interpreters.facades.driver import Driver, RefusedError, wall_ms
from lifefold.interpreters.facades.moves import open_targets

default_machine: Final[ContextVar[Machine[Runtime]]] = ContextVar("default_machine", default=runtime.machine)
"""The machine of an agent that is made without one; whoever runs agents that others write may set another profile."""

session_grace_ms: Final[ContextVar[int | None]] = ContextVar("session_grace_ms", default=None)
"""How long an agent's process is left alone when it is to end; None if nobody ends it. Agents' limits keep to it."""

Audit = Callable[[LifecycleEvent], None]

T = TypeVar("T")


def record_of(agent: "Agent") -> Runtime:
    """Return all that the machine knows of an agent, whatever its class keeps by the name ``record``."""
    record: _Given[Runtime] = vars(Agent)["record"]
    return record.__get__(agent, Agent)


class _Given(Generic[T]):
    """A property that an attribute of the instance may take the place of."""

    def __init__(self, get: Callable[[Any], T]) -> None:
        self._get = get
        self.__doc__ = get.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        return self if instance is None else self._get(instance)


class Agent:
    """A cooperative agent. Override its hooks; call its methods where its work gets to the point.

    ``machine`` is ``runtime.machine`` or a profile of it, such as ``runtime.graceful``; without it, it is the default:
    ``runtime.machine``, and ``runtime.graceful`` in a fleet (A4). With ``auto_run``, ``resume`` goes on to RUNNING
    (A10). ``clock`` returns Unix time in milliseconds. ``numbering`` says what the integers mean.
    ``audit`` is given the journal's entry for every transition and for the retirement.

    Every method that moves the agent raises ``StateTransitionError`` if it may not, ``HookError`` if a hook prevents
    it, ``AgentRetiredError`` if the agent was retired, and ``TypeError`` or ``ValueError`` for an argument that makes
    no sense. Whichever it is, nothing has changed (A12).
    """

    def __init__(  # noqa: PLR0913 - what surrounds an agent, each with its name
        self,
        agent_id: str,
        name: str = "",
        *,
        machine: Machine[Runtime] | None = None,
        limits: Limits | None = None,
        auto_run: bool = False,
        clock: Callable[[], int] = wall_ms,
        numbering: Numbering = SEED,
        audit: Audit | None = None,
    ) -> None:
        """Create the agent in INITIALIZING."""
        self.agent_id = string("agent_id", agent_id, empty=False)
        self.name = string("name", name)
        self.logger: logging.Logger | logging.LoggerAdapter[Any] = logging.LoggerAdapter(
            logging.getLogger("lifefold.agent"), {"agent_id": agent_id}
        )
        self.__numbering: Final = numbering
        self.__audit: Final = audit
        self.__clock: Final = clock
        self.__sections: Final = itertools.count(1)
        self.__retiring: Final = Lock()
        self.__retired = False
        self.__retired_for = ""
        profile = machine or default_machine.get()
        own, grace_ms = limits or profile.initial.limits, session_grace_ms.get()
        kept_to = own if grace_ms is None else own.within(grace_ms)
        born = replace(profile.initial, agent_id=agent_id, limits=kept_to)
        performers: Mapping[Any, Callable[[Any], None]] = {
            CallHook: self.__call_hook,
            LogFailure: lambda e: self.logger.error("%s: %s", e.error_code, e.reason),
            LogFatal: lambda e: self.logger.critical("%s", e.message),
            ReportStuck: lambda e: self.logger.warning("in %s for %d ms", e.state, e.after_ms),
            ReportTaskFailed: lambda e: self.on_task_failed(e.task_id, e.reason),
            SignalPreemption: lambda e: self.on_preempt_overdue(e.reason, e.grace_ms),
        }
        lived = runtime.auto_running(profile) if auto_run else profile
        self.__life: Final = Driver(lived, born, performers, observer=self.__observe, clock=clock)

    # What it is

    @property
    def state(self) -> int:
        """The current state's number."""
        return self.__numbering.number(self.__life.record.state)

    @property
    def state_name(self) -> str:
        """The current state's name."""
        return self.__life.record.state.value

    @property
    def current_task_id(self) -> str | None:
        """The task in hand; None if there is none."""
        return self.__life.record.task_id

    @property
    def failure_reason(self) -> str | None:
        """Why the agent failed; None if it did not, or has recovered."""
        return self.__life.record.failure_reason

    @property
    def error_code(self) -> str:
        """The code of the failure, such as ``suspend_timeout``; empty if the agent itself said that it failed."""
        return self.__life.record.error_code

    def __repr__(self) -> str:
        """Say which agent it is, its state, and its task."""
        task = f", task {self.current_task_id!r}" if self.current_task_id is not None else ""
        return f"<{type(self).__name__} {self.agent_id!r}: {self.state_name}{task}>"

    @_Given
    def record(self) -> Runtime:
        """All that the machine knows of the agent, as it is now; a subclass may keep something else by this name."""
        return self.__life.record

    @property
    def failures(self) -> tuple[Exception, ...]:
        """What hooks raised that could not prevent anything any more, the last hundred (A14)."""
        return tuple(self.__life.failures)

    @property
    def is_retired(self) -> bool:
        """Whether the agent was retired."""
        return self.__retired

    def is_terminal(self) -> bool:
        """Tell whether the task is finished: COMPLETED (A2)."""
        return self.__life.record.state is State.COMPLETED

    def can_transition_to(self, target_state: int) -> bool:
        """Tell whether some event leads from here to the state of this number; none does once it is retired (A9)."""
        reached = open_targets(self.__life.machine, self.__life.record)
        return not self.is_retired and target_state in [self.__numbering.number(State(target)) for target in reached]

    def restore(self, record: Runtime) -> None:
        """Go on as the agent that this record is of, in another process; no hook is called, ``on_startup`` neither.

        That hook belongs to INITIALIZING, which the agent has left once for all: what a process needs anew, such as a
        connection, is for ``on_resume``.

        Raises ``ValueError`` if the record is another agent's, or if this one has been started already.
        """
        present = self.__life.record
        if record.agent_id != self.agent_id or present.state is not State.INITIALIZING:
            message = f"{self.agent_id} in {present.state} cannot go on as {record.agent_id}"
            raise ValueError(message)
        # Sections belong to threads of that process, limits to the class.
        waiting = replace(record.preemption, sections=())
        self.__life.restore(replace(record, preemption=waiting, limits=present.limits))

    # What moves it

    def start(self) -> None:
        """Go from INITIALIZING to RUNNABLE; ``on_startup`` comes first."""
        self.__send(runtime.Start(), State.RUNNABLE)

    def schedule(self, task_id: str) -> None:
        """Take a task: from RUNNABLE to SCHEDULED; ``on_scheduled`` follows."""
        self.__send(runtime.Schedule(string("task_id", task_id, empty=False)), State.SCHEDULED)

    def run(self) -> None:
        """Begin or go on: from SCHEDULED, WAITING, WAITING_RESOURCES or RESUMED to RUNNING."""
        self.__send(runtime.Run(), State.RUNNING)

    def wait(self) -> None:
        """Wait for a message or an event: from RUNNING to WAITING."""
        self.__send(runtime.Wait(), State.WAITING)

    def wait_resources(self) -> None:
        """Wait for resources: from RUNNING to WAITING_RESOURCES."""
        self.__send(runtime.WaitResources(), State.WAITING_RESOURCES)

    def suspend(self) -> None:
        """Yield: from RUNNING to SUSPENDED; ``on_suspend`` comes first. Consumes a preemption request (A16)."""
        self.__send(runtime.Suspend(), State.SUSPENDED)

    def resume(self) -> None:
        """Get the turn again: from SUSPENDED to RESUMED; ``on_resume`` follows. Then call ``run`` (A10)."""
        self.__send(runtime.Resume(), State.RESUMED)
        self.tick()

    def complete(self) -> None:
        """Finish the task: from RUNNING to COMPLETED."""
        self.__send(runtime.Complete(), State.COMPLETED)

    def ready(self) -> None:
        """Be ready for the next task: from COMPLETED to RUNNABLE (A3)."""
        self.__send(runtime.Ready(), State.RUNNABLE)

    def fail(self, reason: str) -> None:
        """Fail: from RUNNING, SHUTTING_DOWN or RECOVERING (A7)."""
        self.__send(runtime.Fail(string("reason", reason)), State.FAILED)

    def shutdown(self) -> None:
        """Begin to end: from RUNNING or RECOVERING (A5) to SHUTTING_DOWN; ``on_shutdown`` comes first."""
        self.__send(runtime.Shutdown(), State.SHUTTING_DOWN)

    def recover(self) -> None:
        """Try to recover: from FAILED to RECOVERING; ``on_recovery_start`` follows."""
        self.__send(runtime.Recover(), State.RECOVERING)

    def complete_recovery(self) -> None:
        """Be recovered: from RECOVERING to RUNNABLE, without a task (A23); ``on_recovery_complete(True)`` follows."""
        self.__send(runtime.CompleteRecovery(), State.RUNNABLE)

    def fail_recovery(self, reason: str) -> None:
        """Give the recovery up: from RECOVERING to FAILED; ``on_recovery_complete(False)`` follows."""
        self.__send(runtime.FailRecovery(string("reason", reason)), State.FAILED)

    def tick(self) -> None:
        """Let happen what is due: timeouts, the deadlines of preemption, recoveries of a supervised agent."""
        if self.__retired:
            return
        self.__life.tick()
        while self.__life.would_take(runtime.DeadlinePassed()):
            with suppress(RefusedError):  # somebody else was faster
                self.__life.take(runtime.DeadlinePassed(), "timer")

    def retire(self, reason: str = "") -> None:
        """Take the agent out of service, whatever its state; no edge of its table, and no way back (A9, A26)."""
        string("reason", reason)
        with self.__retiring:
            if self.__retired:
                return
            self.__retired_for, self.__retired = reason, True
        record = self.__life.record
        self.logger.warning("retired in %s%s", record.state, f": {reason}" if reason else "")
        if self.__audit is not None:
            task = {} if record.task_id is None else {"task_id": record.task_id}
            kind, at_s = self.__life.machine.name, self.__clock() / 1_000
            told = LifecycleEvent(at_s, kind, self.agent_id, record.state, "RETIRED", "", reason, metadata=task)
            with self.__kept():
                self.__audit(told)

    # Preemption

    def safe_point(self) -> bool:
        """Tell whether the caller should yield: somebody asked for it, and no critical section is being executed."""
        self.tick()
        return self.__retired or runtime.safe_point(self.__life.record)

    @contextmanager
    def non_preemptible(self, *, deadline_ms: int | None = None) -> Generator[None, None, None]:
        """Execute a critical section, for ``deadline_ms`` at most if given; no safe point asks to yield inside (A15).

        Sections may be nested; the earliest of their deadlines counts (A18).
        """
        key = next(self.__sections)
        self.__send(runtime.SectionEntered(key, duration_ms(deadline_ms)), None)
        try:
            yield
        finally:
            self.__leave(key)

    def request_preemption(self, reason: str = "") -> None:
        """Ask the agent to yield at its next safe point; ``on_preempt_request`` follows (A25)."""
        self.__send(runtime.PreemptionRequested(string("reason", reason)), None)

    def force_preemption(self, reason: str = "") -> None:
        """Give a RUNNING agent only its grace period to yield, as when resources are critically low (A17)."""
        self.__send(runtime.PreemptionForced(string("reason", reason)), State.FAILED)

    def on_control(self, message: Any) -> None:
        """Take a control message, ``{"content_type": "application/json", "payload": bytes}``.

        Its payload may be ``{"type": "PREEMPT_REQUEST", "reason": ...}``, the reason being optional; whatever else
        comes is ignored.
        """
        reason = preempt_request(message)
        if reason is not None:
            self.request_preemption(reason)

    # Hooks

    def on_startup(self) -> None:
        """Prepare for work. Called in INITIALIZING; an error prevents the start."""

    def on_shutdown(self) -> None:
        """Clean up. Called before SHUTTING_DOWN; an error prevents it."""

    def on_scheduled(self, task_id: str) -> None:
        """Prepare for this task. Called in SCHEDULED."""

    def on_state_change(self, old_state: int, new_state: int) -> None:
        """Learn that the state has changed. Called for every transition, timeouts included."""

    def on_preempt_request(self, reason: str) -> None:
        """Learn that somebody wants the agent to yield."""

    def on_preempt_overdue(self, reason: str, grace_ms: int) -> None:
        """Learn that the agent has not yielded in time, and is failed if it has not within ``grace_ms``."""
        self.logger.warning("preemption is overdue (%s): %d ms of grace", reason, grace_ms)

    def on_suspend(self) -> None:
        """Save what is needed to go on later. Called in RUNNING; an error prevents the suspension."""

    def on_resume(self) -> None:
        """Load what was saved. Called in RESUMED."""

    def on_recovery_start(self) -> None:
        """Try to recover, and call ``complete_recovery`` or ``fail_recovery``, here or later."""

    def on_recovery_complete(self, success: bool) -> None:  # noqa: FBT001 - the document's signature
        """Learn how the recovery ended; one that took too long or was aborted did not succeed."""

    def on_task_failed(self, task_id: str, reason: str) -> None:
        """Tell whoever gave the task out that it is lost (A23)."""
        self.logger.error("task %s failed: %s", task_id, reason)

    # The way in and out

    def __send(self, event: Event, target: State | None) -> None:
        """Let the machine take an event; ``target`` is what a refusal names."""
        if self.__retired:
            raise AgentRetiredError(self.agent_id, self.__retired_for)
        self.tick()
        try:
            self.__life.take(event)
        except RefusedError as refused:
            record = self.__life.record
            numbers = self.__numbering.number(record.state), self.__numbering.number(target or record.state)
            allowed = tuple(state.value for state in open_targets(self.__life.machine, record))
            raise StateTransitionError(*numbers, allowed, self.__numbering) from refused

    def __leave(self, key: int) -> None:
        """Leave a section; nothing that became of the agent meanwhile is the section's concern."""
        self.tick()
        with suppress(RefusedError):  # what the section belonged to is over
            self.__life.take(runtime.SectionLeft(key))

    def __observe(self, transition: Transition) -> None:
        if self.__audit is not None:
            with self.__kept():
                self.__audit(journal(f"agent/{self.agent_id}", transition))
        old, new = transition.before, transition.after
        if old is not None and old.state is not new.state:
            number = self.__numbering.number
            self.__call(self.on_state_change, number(State(old.state)), number(State(new.state)))

    @contextmanager
    def __kept(self) -> Generator[None, None, None]:
        """Keep what the audit raises, and go on: what it is told of has happened."""
        try:
            yield
        except Exception as error:
            self.logger.exception("audit failed")
            self.__life.failures.append(error)

    def __call_hook(self, hook: CallHook) -> None:
        try:
            self.__call(getattr(self, hook.name), *hook.arguments)
        except Exception as error:
            if hook.before:
                raise HookError(hook.name) from error
            raise

    def __call(self, hook: Callable[..., object], *arguments: object) -> None:
        try:
            hook(*arguments)
        except Exception:
            self.logger.exception("%s() failed", getattr(hook, "__name__", hook))
            raise
