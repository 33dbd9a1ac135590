"""The turn machine of document 004: ``AgentTurnStateMachine``, with events in the document's spelling."""

from collections.abc import Callable
from enum import StrEnum
from threading import RLock
from typing import Any, Final, NamedTuple

from lifefold.core.kernel import Event, Machine, Transition, replace
from lifefold.core.lifecycles import turn as turns
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.facades.arguments import one_of, text
from lifefold.interpreters.facades.driver import Driver, RefusedError, wall_ms
from lifefold.interpreters.facades.governance.errors import IllegalTransitionError
from lifefold.interpreters.facades.governance.tasks import machine_of

AgentTurnState = turns.State
"""The ten states of a turn; each is equal to its text."""


class AgentTurnEvent(StrEnum):
    """The nine events."""

    TASK_CLAIMED = "task_claimed"
    AGENT_SPAWNED = "agent_spawned"
    TOOL_STARTED = "tool_started"
    TOOL_COMPLETED = "tool_completed"
    COMPACT_NEEDED = "compact_needed"
    VERIFY_REQUESTED = "verify_requested"
    TASK_COMPLETED = "task_completed"
    TASK_FAILED = "task_failed"
    AGENT_REAPED = "agent_reaped"


def _kind_of(event: object) -> type[Event] | None:
    """Return the type of an event by the document's spelling; None for any other value."""
    return next((kind for kind in turns.EVENTS if kind.label() == event), None)


def _event(kind: type[Event], known: dict[str, Any]) -> Event:
    """Return an event with the known values of its fields."""
    return kind(**{name: known[name] for name in kind.__struct_fields__ if name in known})


class TurnChange(NamedTuple):
    """One line of a turn's history."""

    from_state: turns.State
    event: AgentTurnEvent
    to_state: turns.State


class AgentTurnStateMachine:
    """The turns of one agent, in sequence. ``machine`` is the document's table, or a profile of it."""

    def __init__(
        self,
        agent_id: str = "",
        task_id: str = "",
        *,
        machine: Machine[Any] = turns.machine,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        """Begin the first turn, in IDLE. Raises ``TypeError`` or ``ValueError`` for invalid arguments."""
        self.agent_id: Final = text("agent_id", agent_id)
        self.task_id: Final = text("task_id", task_id)
        self._machine: Final = machine_of(turns.Turn, machine)
        self._clock: Final = clock
        self._lock: Final = RLock()
        self._history: list[TurnChange] = []
        self._driver = self._turn(replace(self._machine.initial, agent=agent_id, task=task_id))

    def __repr__(self) -> str:
        """Return the agent, the number of the turn, and its state."""
        return f"<AgentTurnStateMachine {self.agent_id!r}: turn {self.turn}, {self.state}>"

    @property
    def state(self) -> turns.State:
        """The state of the present turn."""
        return AgentTurnState(self._driver.record.state)

    @property
    def turn(self) -> int:
        """The number of the present turn, from 1 on (E27)."""
        return int(self._driver.record.number)

    @property
    def is_terminal(self) -> bool:
        """Whether the present turn is over."""
        return self.state in self._machine.final

    @property
    def history(self) -> list[TurnChange]:
        """The transitions of the present turn, the oldest first."""
        return list(self._history)

    def can_transition(self, event: AgentTurnEvent | str) -> bool:
        """Tell whether the present state has a row for this event."""
        kind = _kind_of(event)
        return kind is not None and self._driver.would_take(_event(kind, {"turn": self.turn}))

    def transition(
        self,
        event: AgentTurnEvent | str,
        event_id: str = "",
        *,
        reason: str = "",
        abort_reason: AbortReason | None = None,
        turn: int | None = None,
    ) -> turns.State:
        """Send an event and return the new state. A repeated ``event_id`` changes nothing (E26).

        Raises ``IllegalTransitionError`` if the table has no row for it, and for reports of another ``turn`` (E27).
        Raises ``TypeError`` or ``ValueError`` for invalid arguments.
        """
        kind = _kind_of(text("event", event))
        if kind is None:
            raise self._illegal(str(event))
        with self._lock:
            known: dict[str, Any] = {"turn": self.turn if turn is None else turn, "id": text("event_id", event_id)}
            known |= {"task": self.task_id, "reason": text("reason", reason)}
            if abort_reason is not None:
                known["abort_reason"] = one_of("abort_reason", AbortReason, abort_reason)
            try:
                self._driver.take(_event(kind, known))
            except RefusedError as refused:
                raise self._illegal(str(event), str(refused)) from refused
            return self.state

    def reset(self) -> int:
        """Begin the next turn and return its number. Raises ``IllegalTransitionError`` before this one is reaped."""
        with self._lock:
            following = turns.following(self._driver.record)
            if following is None:
                raise self._illegal("IDLE")
            self._history = []
            self._driver = self._turn(following)
            return self.turn

    def _turn(self, record: turns.Turn) -> Driver[turns.Turn]:
        return Driver(self._machine, record, observer=self._note, clock=self._clock)

    def _note(self, transition: Transition) -> None:
        if transition.before is not None and transition.entered is not None:
            event = AgentTurnEvent(transition.event.label())
            change = TurnChange(AgentTurnState(transition.before.state), event, AgentTurnState(transition.after.state))
            self._history.append(change)

    def _illegal(self, wanted: str, detail: str = "") -> IllegalTransitionError:
        return IllegalTransitionError("agent turn", self.agent_id, str(self.state), wanted, detail)
