"""The agent of document 000, for subclassing: its methods, its hooks, its safe points.

Every method sends an event of ``lifefold.core.lifecycles.runtime``, and that machine decides. An agent may be used from
several threads. Hooks are called without any lock held, and may call the agent again. The order is that of ``driver``:
a transition by a hook takes effect at once, and its own hooks follow after the earlier ones (A22).

Nothing runs by itself. Timeouts that are due fire first at every call, and at ``tick``. The supervisor of an agent
should call ``tick`` regularly.
"""

import itertools
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final, Generic, Self, TypeVar, overload

from lifefold.core.kernel import Event, LifecycleEvent, Machine, Transition, journal, replace
from lifefold.core.lifecycles import runtime, runtime_profiles
from lifefold.core.lifecycles.runtime import SEED, Limits, Numbering, Runtime, State
from lifefold.effects import CallHook, LogFailure, LogFatal, ReportStuck, ReportTaskFailed, SignalPreemption
from lifefold.interpreters.facades.arguments import string
from lifefold.interpreters.facades.cooperative.requests import duration_ms, preempt_request
from lifefold.interpreters.facades.cooperative.states import AgentRetiredError, HookError, StateTransitionError
from lifefold.interpreters.facades.driver import Driver, RefusedError, wall_ms
from lifefold.interpreters.facades.moves import open_targets

default_machine: Final[ContextVar[Machine[Runtime]]] = ContextVar("default_machine", default=runtime.machine)
"""The machine of an agent without its own one; a program that runs agents of others may set another profile."""

session_grace_ms: Final[ContextVar[int | None]] = ContextVar("session_grace_ms", default=None)
"""The grace of an agent's process when it is ended; None if it is not ended from outside. Agents' limits respect it."""

Audit = Callable[[LifecycleEvent], None]

T = TypeVar("T")


def record_of(agent: "Agent") -> Runtime:
    """Return the machine's record of an agent, also if its class redefines ``record``."""
    record: _Given[Runtime] = vars(Agent)["record"]
    return record.__get__(agent, Agent)


class _Given(Generic[T]):
    """A property that an attribute of the instance may replace."""

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
    """A cooperative agent. Override its hooks, and call its methods from its work.

    ``machine`` is ``runtime.machine`` or a profile of it, such as ``runtime_profiles.graceful``. The default is
    ``runtime.machine``, and ``runtime_profiles.graceful`` in a fleet (A4). With ``auto_run``, ``resume`` continues to
    RUNNING (A10). ``clock`` returns Unix time in milliseconds. ``numbering`` maps states to integers. ``audit`` gets
    the journal's entry for every transition and for the retirement.

    Every method that moves the agent raises ``StateTransitionError`` if the state forbids it, and ``HookError`` if a
    hook prevents it. It raises ``AgentRetiredError`` if the agent was retired, and ``TypeError`` or ``ValueError`` for
    an invalid argument. In each case nothing has changed (A12).
    """

    def __init__(  # noqa: PLR0913 - the environment of an agent, by keyword
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
        lived = runtime_profiles.auto_running(profile) if auto_run else profile
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
        """The assigned task; None if there is none."""
        return self.__life.record.task_id

    @property
    def failure_reason(self) -> str | None:
        """The reason of the failure; None if the agent did not fail, or has recovered."""
        return self.__life.record.failure_reason

    @property
    def error_code(self) -> str:
        """The code of the failure, such as ``suspend_timeout``; empty if the agent itself reported the failure."""
        return self.__life.record.error_code

    def __repr__(self) -> str:
        """Return the agent's id, its state, and its task."""
        task = f", task {self.current_task_id!r}" if self.current_task_id is not None else ""
        return f"<{type(self).__name__} {self.agent_id!r}: {self.state_name}{task}>"

    @_Given
    def record(self) -> Runtime:
        """The machine's present record of the agent; a subclass may use this name for another attribute."""
        return self.__life.record

    @property
    def failures(self) -> tuple[Exception, ...]:
        """The last hundred errors of hooks that came too late to prevent a transition (A14)."""
        return tuple(self.__life.failures)

    @property
    def is_retired(self) -> bool:
        """Whether the agent was retired."""
        return self.__retired

    def is_terminal(self) -> bool:
        """Tell whether the task is finished: COMPLETED (A2)."""
        return self.__life.record.state is State.COMPLETED

    def can_transition_to(self, target_state: int) -> bool:
        """Tell whether an event leads to the state with this number; no event does after the retirement (A9)."""
        reached = open_targets(self.__life.machine, self.__life.record)
        return not self.is_retired and target_state in [self.__numbering.number(State(target)) for target in reached]

    def restore(self, record: Runtime) -> None:
        """Continue the agent of this record in another process. No hook is called, not even ``on_startup``.

        That hook belongs to INITIALIZING, which the agent has left. A process that needs a new connection, for
        example, opens it in ``on_resume``.

        Raises ``ValueError`` if the record belongs to another agent, or if this one has been started already.
        """
        present = self.__life.record
        if record.agent_id != self.agent_id or present.state is not State.INITIALIZING:
            message = f"{self.agent_id} in {present.state} cannot continue as {record.agent_id}"
            raise ValueError(message)
        # Sections belong to threads of the other process, limits to the class.
        waiting = replace(record.preemption, sections=())
        self.__life.restore(replace(record, preemption=waiting, limits=present.limits))

    # What moves it

    def start(self) -> None:
        """Go from INITIALIZING to RUNNABLE, after ``on_startup``."""
        self.__send(runtime.Start(), State.RUNNABLE)

    def schedule(self, task_id: str) -> None:
        """Accept a task: from RUNNABLE to SCHEDULED, then ``on_scheduled``."""
        self.__send(runtime.Schedule(string("task_id", task_id, empty=False)), State.SCHEDULED)

    def run(self) -> None:
        """Begin or continue: from SCHEDULED, WAITING, WAITING_RESOURCES or RESUMED to RUNNING."""
        self.__send(runtime.Run(), State.RUNNING)

    def wait(self) -> None:
        """Wait for a message or an event: from RUNNING to WAITING."""
        self.__send(runtime.Wait(), State.WAITING)

    def wait_resources(self) -> None:
        """Wait for resources: from RUNNING to WAITING_RESOURCES."""
        self.__send(runtime.WaitResources(), State.WAITING_RESOURCES)

    def suspend(self) -> None:
        """Yield: from RUNNING to SUSPENDED, after ``on_suspend``. Consumes a preemption request (A16)."""
        self.__send(runtime.Suspend(), State.SUSPENDED)

    def resume(self) -> None:
        """Resume: from SUSPENDED to RESUMED, then ``on_resume``. Call ``run`` afterwards (A10)."""
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
        """Begin to end: from RUNNING or RECOVERING (A5) to SHUTTING_DOWN, after ``on_shutdown``."""
        self.__send(runtime.Shutdown(), State.SHUTTING_DOWN)

    def recover(self) -> None:
        """Try to recover: from FAILED to RECOVERING, then ``on_recovery_start``."""
        self.__send(runtime.Recover(), State.RECOVERING)

    def complete_recovery(self) -> None:
        """Complete the recovery: to RUNNABLE, without a task (A23), then ``on_recovery_complete(True)``."""
        self.__send(runtime.CompleteRecovery(), State.RUNNABLE)

    def fail_recovery(self, reason: str) -> None:
        """Give the recovery up: from RECOVERING to FAILED, then ``on_recovery_complete(False)``."""
        self.__send(runtime.FailRecovery(string("reason", reason)), State.FAILED)

    def tick(self) -> None:
        """Fire what is due: timeouts, deadlines of preemption, recoveries of a supervised agent."""
        if self.__retired:
            return
        self.__life.tick()
        while self.__life.would_take(runtime.DeadlinePassed()):
            with suppress(RefusedError):  # another thread was faster
                self.__life.take(runtime.DeadlinePassed(), "timer")

    def retire(self, reason: str = "") -> None:
        """Retire the agent in any state, for good. The retirement is no transition of its table (A9, A26)."""
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
            entry = LifecycleEvent(at_s, kind, self.agent_id, record.state, "RETIRED", "", reason, metadata=task)
            with self.__kept():
                self.__audit(entry)

    # Preemption

    def safe_point(self) -> bool:
        """Tell whether the caller should yield: preemption is requested, and no critical section is being executed."""
        self.tick()
        return self.__retired or runtime.safe_point(self.__life.record)

    @contextmanager
    def non_preemptible(self, *, deadline_ms: int | None = None) -> Generator[None, None, None]:
        """Execute a critical section, for ``deadline_ms`` at most if given.

        Safe points inside do not ask to yield (A15). Sections may be nested; the earliest deadline counts (A18).
        """
        key = next(self.__sections)
        self.__send(runtime.SectionEntered(key, duration_ms(deadline_ms)), None)
        try:
            yield
        finally:
            self.__leave(key)

    def request_preemption(self, reason: str = "") -> None:
        """Ask the agent to yield at its next safe point, then call ``on_preempt_request`` (A25)."""
        self.__send(runtime.PreemptionRequested(string("reason", reason)), None)

    def force_preemption(self, reason: str = "") -> None:
        """Give a RUNNING agent only its grace period to yield, as when resources are critically low (A17)."""
        self.__send(runtime.PreemptionForced(string("reason", reason)), State.FAILED)

    def on_control(self, message: Any) -> None:
        """Handle a control message, ``{"content_type": "application/json", "payload": bytes}``.

        Its payload may be ``{"type": "PREEMPT_REQUEST", "reason": ...}``; the reason is optional. Other messages are
        ignored.
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
        """React to a change of state. Called for every transition, with those of timeouts."""

    def on_preempt_request(self, reason: str) -> None:
        """React to a request to yield."""

    def on_preempt_overdue(self, reason: str, grace_ms: int) -> None:
        """React to an overdue preemption: the agent fails unless it yields within ``grace_ms``."""
        self.logger.warning("preemption is overdue (%s): %d ms of grace", reason, grace_ms)

    def on_suspend(self) -> None:
        """Save the data for a later continuation. Called in RUNNING; an error prevents the suspension."""

    def on_resume(self) -> None:
        """Load the saved data. Called in RESUMED."""

    def on_recovery_start(self) -> None:
        """Try to recover, and call ``complete_recovery`` or ``fail_recovery``, here or later."""

    def on_recovery_complete(self, success: bool) -> None:  # noqa: FBT001 - the document's signature
        """React to the end of a recovery; one that timed out or was aborted did not succeed."""

    def on_task_failed(self, task_id: str, reason: str) -> None:
        """Report to the task's dispatcher that the task is lost (A23)."""
        self.logger.error("task %s failed: %s", task_id, reason)

    # The way in and out

    def __send(self, event: Event, target: State | None) -> None:
        """Send an event to the machine; the error of a refusal names ``target``."""
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
        """Leave a section, also if the agent's state has changed meanwhile."""
        self.tick()
        with suppress(RefusedError):  # the work of the section is over already
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
        """Keep errors of the audit, and continue: the transition has happened."""
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
