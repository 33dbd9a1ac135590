"""The runtime of document 001: agents that are spawned, stopped, fail, and spend, over a state manager.

The state manager has the authoritative state. A call reads it, lets the core decide, and saves the result against the
version that it read. If another call was faster, it decides again (B16). Telemetry and the release of resources follow
the save. So a transition that could not be saved has not happened, and was not reported (B10, B11). Several runtimes,
in several processes, may work on the same agents.

The hook ``launch`` is called before an agent's start is saved, and prevents it by raising. ``release`` undoes the
launch if the start is not saved, and after the agent has stopped or failed. While one call launches an agent, other
calls that would launch it are refused. A runtime in another process may launch it too; the one that saves later undoes
its launch.

User code runs without any lock held, and may call the runtime again. Only the state manager's save is under a lock.
Errors of ``telemetry``, ``release`` and ``returned`` are kept in ``failures``.

Nothing runs by itself: due leases expire at the next call about their agent, or at ``tick``.
"""

import uuid
from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import Final

from lifefold.core.kernel import Aggregate, Envelope, Event, Opened, Reaction, Refusal, RequestedEffect, react
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.budget import agent as agent_budget
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.agent import STATUS, agent_type, lease_ref
from lifefold.core.lifecycles.status import State, Status
from lifefold.effects import CallHook, Effect, EmitTelemetry, ReturnBudget
from lifefold.interpreters.facades.arguments import instance, one_of, text, whole, yes_or_no
from lifefold.interpreters.facades.driver import wall_ms
from lifefold.interpreters.facades.outbox import Outbox
from lifefold.interpreters.facades.status.answers import (
    denied,
    due_timers,
    holder_of,
    is_same_run,
    must_not_have_failed,
    not_refreshed,
    refused_task,
)
from lifefold.interpreters.facades.status.configuration import EXIT_CODES, MOST_MICROUSD, AgentConfig, amount
from lifefold.interpreters.facades.status.errors import (
    AgentBusy,
    AgentError,
    AlreadyRunning,
    NotReserved,
    VersionConflict,
)
from lifefold.interpreters.facades.status.launching import Hook, Launching, Who, who_is
from lifefold.interpreters.facades.status.store import AgentState, StateManager

SOME_MICROUSD: Final = range(1, MOST_MICROUSD + 1)
"""The possible amounts of one reservation."""

Telemetry = Callable[[str, str, dict[str, str | int | None]], None]
"""Called with an agent's id, the event, and its fields."""

Liveness = Callable[[AgentState], bool]
"""Tells whether any process of a RUNNING agent is alive."""


def random_id() -> str:
    """Return a unique id."""
    return f"agent_{uuid.uuid4()}"


class Runtime:
    """Agents in a state manager.

    ``returned`` is called with an agent's id and an amount in micro-dollars when a grant is not needed any more.
    ``clock`` returns Unix time in milliseconds. With ``liveness``, dead agents that are RUNNING in the store become
    FAILED at once (B17).

    A method about an agent raises ``NotFound`` for an unknown one, and the other kinds of ``AgentError`` that its
    docstring names. Invalid arguments raise ``TypeError`` or ``ValueError``. Errors of the state manager and of
    ``launch`` are raised as they are. In each case nothing has changed.
    """

    def __init__(  # noqa: PLR0913 - the environment of the agents, by keyword
        self,
        state_manager: StateManager,
        telemetry: Telemetry | None = None,
        *,
        launch: Hook | None = None,
        release: Hook | None = None,
        returned: Callable[[str, int], None] | None = None,
        liveness: Liveness | None = None,
        new_id: Callable[[], str] = random_id,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        """Connect the parts; with ``liveness``, fail agents that have died."""
        self._store: Final = state_manager
        self._telemetry: Final = telemetry
        self._launch: Final = launch
        self._release: Final = release
        self._returned: Final = returned
        self._new_id: Final = new_id
        self._clock: Final = clock
        self._outbox: Final = Outbox(self._perform)
        self._lock: Final = RLock()
        self._under_way: Final[dict[Who, Launching]] = {}
        if liveness is not None:
            self.reconcile(liveness)

    def __repr__(self) -> str:
        """Return the state manager."""
        return f"<Runtime over {self._store!r}>"

    @property
    def failures(self) -> deque[Exception]:
        """The last hundred errors of telemetry, hooks and ``liveness``."""
        return self._outbox.failures

    # The status

    def spawn_agent(self, config: AgentConfig | None = None) -> str:
        """Make a new agent, RUNNING, and return its id. After an error there is no agent (B10)."""
        given = AgentConfig() if config is None else instance(AgentConfig, config)
        agent_id = text("the new id", self._new_id(), empty=False)
        return self._born(
            Status(agent_id=agent_id, name=given.name, budget_microusd=given.budget_microusd, lease_ms=given.lease_ms)
        )

    start_agent = spawn_agent

    def stop_agent(self, agent_id: str, *, drain: bool = False, force: bool = False) -> AgentState:
        """Stop an agent without active tasks, or raise ``AgentBusy`` (B2).

        With ``drain`` it stops when its tasks have ended, with ``force`` at once. An agent that has stopped or failed
        does not change (B3, B4).
        """
        event = status.Stop(yes_or_no("drain", drain), yes_or_no("force", force))
        return self._of_status(agent_id, event, lambda state: AgentBusy(state.agent_id, state.tasks))

    def fail(self, agent_id: str, reason: str, exit_code: int | None = None) -> AgentState:
        """Report a fatal error: the agent is FAILED (B20). For a stopped agent it is only recorded (B15)."""
        if exit_code is not None:
            whole("exit_code", exit_code, EXIT_CODES)
        return self._of_status(agent_id, status.FatalError(text("reason", reason), exit_code))

    def restart(self, agent_id: str, *, new_id: bool = False) -> str:
        """Run a stopped agent again, and return its id; with ``new_id``, a new agent replaces it (B6).

        Raises ``AlreadyRunning`` (B9), ``AgentFailed`` (B8).
        """
        if yes_or_no("new_id", new_id):
            state = self.get_agent(agent_id)
            must_not_have_failed(state)
            return self._successor(state)
        already = "runs already; stop it first"
        state = self._of_status(agent_id, status.Spawn(), lambda state: AlreadyRunning(state.agent_id, already))
        must_not_have_failed(state)
        return state.agent_id

    def replace(self, agent_id: str) -> str:
        """Make a new agent for one that has failed or stopped, and return its id (B8).

        It has the same configuration and new counters, and ``replaces`` names the old agent. The old agent does not
        change: a stopped one can still be restarted. Raises ``AlreadyRunning``.
        """
        return self._successor(self.get_agent(agent_id))

    def begin_task(self, agent_id: str, task: str) -> AgentState:
        """Record that the agent works on a task. Raises ``NotRunning``, ``AgentFailed``, ``TaskRefused``."""
        event = status.TaskBegan(text("task", task, empty=False))
        state = self._of_status(agent_id, event, lambda state: refused_task(state, event.task))
        must_not_have_failed(state)
        return state

    def end_task(self, agent_id: str, task: str) -> AgentState:
        """Record that the agent has ended a task; the last one stops a draining agent.

        Raises ``TaskRefused``. It does not change an agent that has stopped or failed, which ended its tasks.
        """
        event = status.TaskEnded(text("task", task, empty=False))
        return self._of_status(agent_id, event, lambda state: refused_task(state, event.task))

    def record_pii_detection(self, agent_id: str) -> AgentState:
        """Count found personal data, also after a stop; a failed agent does not change."""
        return self._of_status(agent_id, status.PiiDetected())

    def get_agent(self, agent_id: str) -> AgentState:
        """Return an agent's last saved state."""
        return self._store.get_agent_state(text("agent_id", agent_id))

    def list_agents(self, among: State | None = None) -> tuple[AgentState, ...]:
        """Return all agents, or those in one state, in the order of their ids."""
        wanted = None if among is None else one_of("among", State, among)
        states = (self.get_agent(agent_id) for agent_id in self._store.list_agents())
        return tuple(state for state in states if wanted is None or state.status == wanted)

    def reconcile(self, liveness: Liveness) -> tuple[str, ...]:
        """Fail the RUNNING agents without a live process, with the reason ``orphaned``, and return their ids (B17).

        An agent does not change if ``liveness`` raises for it: an error is no proof of death.
        """
        return tuple(state.agent_id for state in self.list_agents(State.RUNNING) if self._has_died(state, liveness))

    def tick(self) -> None:
        """Expire the leases that are due."""
        for agent_id in self._store.list_agents():
            self._change(agent_id, lambda _state: None)

    # The money

    def reserve(self, agent_id: str, name: str, amount_microusd: int) -> AgentState:
        """Reserve an amount for work that is about to begin; an equal second call changes nothing.

        A name belongs to one piece of work in the agent's whole life, with its restarts. Raises ``NotRunning`` or
        ``AgentFailed`` (I2), ``BudgetRefused``.
        """
        requested = lease.Reserve(
            text("name", name, empty=False), whole("amount_microusd", amount_microusd, SOME_MICROUSD)
        )
        return self._change(
            agent_id, lambda state: (lease_ref(state.incarnation), requested), lambda state: denied(state, requested)
        )

    def settle(self, agent_id: str, name: str, cost_microusd: int) -> AgentState:
        """Settle a reservation with the cost of its work, in any state of the agent (B12).

        Raises ``NotReserved``, also for a reservation that is settled already.
        """
        name = text("name", name, empty=False)
        return self._of_reservation(agent_id, lease.Settle(name, amount("cost_microusd", cost_microusd)))

    def refund(self, agent_id: str, name: str) -> AgentState:
        """Give a reservation up. Raises ``NotReserved``."""
        return self._of_reservation(agent_id, lease.Refund(text("name", name, empty=False)))

    def refresh(self, agent_id: str) -> AgentState:
        """Refresh an expired lease, if its grace is not over. Raises ``NotRunning``, ``RefreshRefused``."""
        return self._change(agent_id, lambda state: (lease_ref(state.incarnation), lease.Refresh()), not_refreshed)

    # How a call becomes a transition

    def _of_status(
        self, agent_id: str, event: Event, refused: Callable[[AgentState], AgentError] | None = None
    ) -> AgentState:
        return self._change(agent_id, lambda _state: (STATUS, event), refused)

    def _of_reservation(self, agent_id: str, event: lease.Settle | lease.Refund) -> AgentState:
        return self._change(
            agent_id,
            lambda state: (holder_of(state, event.name), event),
            lambda state: NotReserved(state.agent_id, f"there is no open reservation {event.name!r}"),
        )

    def _change(
        self,
        agent_id: str,
        input_for: Callable[[AgentState], tuple[str, Event] | None],
        refused: Callable[[AgentState], AgentError] | None = None,
    ) -> AgentState:
        """Send an input to the agent, after its due timers, and return its new state."""
        try:
            with self._launching() as launching:
                while True:
                    state, now_ms = self.get_agent(agent_id), self._clock()
                    due = next(due_timers(state, now_ms), None)
                    given = input_for(state) if due is None else due[:2]
                    if given is None:
                        return state
                    at_ms = now_ms if due is None else due[2]
                    reaction = react(agent_type, state.aggregate(), Envelope(given[0], given[1], at_ms))
                    if isinstance(reaction, Refusal):
                        raise AgentError(agent_id, reaction.reason) if refused is None else refused(state)
                    launching.prepare(reaction.effects)
                    saved = self._saved(state, reaction.aggregate, [each.effect for each in reaction.effects])
                    if saved is not None and due is None:
                        launching.succeed()
                        return saved
        finally:
            self._outbox.flush()  # a due timer has fired even if the call itself is refused

    def _launching(self) -> Launching:
        return Launching(self._launch, self._release, self.failures, self._under_way)

    def _saved(self, before: AgentState | None, agent: Aggregate, effects: list[Effect]) -> AgentState | None:
        """Save an agent's new state, and queue its effects; return None if another call was faster."""
        version = before.version if before else 0
        after = AgentState.of(agent, version + 1)
        if before is not None and before.says_the_same_as(after):
            return before
        with self._lock:  # effects are performed in the order in which transitions were saved
            try:
                self._store.save_agent_state(after, version)
            except VersionConflict:
                return None
            self._outbox.put(*effects)
        return after

    def _born(self, record: Status) -> str:
        step = status.spawned(record)
        opened = Envelope("", Opened(agent_budget.opening(step.record)), self._clock())
        born = react(agent_type, agent_type.start(f"{agent_budget.KIND}/{record.agent_id}"), opened)
        assert isinstance(born, Reaction)  # noqa: S101 - a new aggregate is opened with records of its own machines
        with self._launching() as launching:
            launching.prepare(tuple(RequestedEffect(STATUS, effect) for effect in step.effects))
            if self._saved(None, born.aggregate, list(step.effects)) is None:
                raise AlreadyRunning(record.agent_id, "there is an agent of this id")
            launching.succeed()
        self._outbox.flush()
        return record.agent_id

    def _successor(self, state: AgentState) -> str:
        record: Status = state.aggregate().record(STATUS)
        if not status.is_replaceable(record):
            raise AlreadyRunning(state.agent_id, "runs; stop it before another agent replaces it")
        return self._born(status.successor(record, text("the new id", self._new_id(), empty=False)))

    def _has_died(self, state: AgentState, liveness: Liveness) -> bool:
        try:
            if liveness(state):
                return False
        except Exception as error:  # noqa: BLE001 - user code: a probe that fails proves nothing
            self.failures.append(error)
            return False
        event = status.FatalError(status.ORPHANED)
        now = self._change(state.agent_id, lambda found: (STATUS, event) if is_same_run(found, state) else None)
        return now.status is State.FAILED

    def _perform(self, effect: Effect) -> None:
        match effect:
            case EmitTelemetry(agent_id, event, fields) if self._telemetry:
                self._telemetry(agent_id, event, dict(fields))
            case ReturnBudget(holder, amount_microusd) if self._returned:
                self._returned(holder, amount_microusd)
            case CallHook(status.RELEASE, arguments) if self._release:
                self._release(*who_is(arguments))
            case _:  # the save has performed SaveState, and a timer is its deadline in the saved lease
                pass
