"""The tasks and agent sessions that the governance kernel of document 004 moves, as objects of a program.

Each has its state in a driver of its own. ``table`` is where a status is looked up that somebody asks for; the driver's
machine may know more: a task can be approved, which no status asked for leads to (E2).
"""

from collections.abc import Callable
from enum import StrEnum
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from lifefold.core import agent, approval, task
from lifefold.core.kernel import Event, Machine, Record, State, Transition, replace
from lifefold.effects import Effect
from lifefold.interpreters.handles.arguments import text
from lifefold.interpreters.handles.driver import Driver, wall_ms
from lifefold.interpreters.handles.moves import moves

if TYPE_CHECKING:
    from lifefold.interpreters.handles.governance.aborts import AbortChain


class TaskStatus(StrEnum):
    """The twelve states of a task, as this interface spells them."""

    PLANNED = "planned"
    OPEN = "open"
    CLAIMED = "claimed"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    CLOSED = "closed"
    FAILED = "failed"
    BLOCKED = "blocked"
    WAITING_FOR_SUBTASKS = "waiting_for_subtasks"
    CANCELLED = "cancelled"
    ORPHANED = "orphaned"
    PENDING_APPROVAL = "pending_approval"


AgentStatus = agent.State
"""The four states of an agent; each is equal to its text."""


class Subject:
    """What a task and an agent session have in common: an identity, a table, a driver, and what it has to tell."""

    entity_type = "subject"

    def __init__(
        self,
        id: str,  # noqa: A002 - the document's name
        table: Machine[Any],
        machine: Machine[Any],
        record: Record,
        clock: Callable[[], int],
    ) -> None:
        """Begin a life with this record."""
        self.id: Final = text("id", id)
        self.table: Final = table
        self.lock: Final = RLock()
        self.taken: Final[list[Transition]] = []
        self.asked: Final[list[Effect]] = []
        performers = {effect: self.asked.append for row in machine.rows for effect in row.effects}
        self.driver: Final = Driver(machine, record, performers, observer=self.note, clock=clock)

    @property
    def record(self) -> Any:
        """The record as it is now."""
        return self.driver.record

    def note(self, transition: Transition) -> None:
        """Keep a transition until it is told."""
        self.taken.append(transition)

    def claim_of(self, actor: str) -> int:
        """Return the number of the claim that this actor's words are about; 0 for none."""
        del actor
        return 0

    def spelled(self, state: State) -> str:
        """Return a state as this interface spells it."""
        return str(state)

    def state_of(self, status: str) -> State | None:
        """Return the state that a status means; None if there is none."""
        return next((state for state in self.table.states if self.spelled(state) == status), None)

    def event_towards(self, status: str, said: dict[str, Any]) -> Event | None:
        """Return the event of the row that leads from the present state to this status, or None if there is no row.

        Of several rows, one that somebody asks for comes before one that a timer brings. ``said`` has what the event
        may want to know, by the names of its fields.
        """
        target = self.state_of(status)
        rows = moves(self.table, self.record.state, target) if target is not None else ()
        if not rows:
            return None
        kind = min(rows, key=lambda row: row.event in self.table.yielded).event
        return kind(**{name: said[name] for name in kind.__struct_fields__ if name in said})


class Task(Subject):
    """A unit of work. ``machine`` is the table that it follows: the document's, or a profile of it.

    Further arguments are fields of the machine's record, as ``max_retries``; a name that is none raises ``TypeError``,
    a status that is none ``ValueError``.
    """

    entity_type = "task"

    def __init__(
        self,
        id: str,  # noqa: A002 - the document's name
        status: TaskStatus | str = TaskStatus.OPEN,
        *,
        machine: Machine[Any] = task.machine,
        clock: Callable[[], int] = wall_ms,
        **fields: Any,
    ) -> None:
        """Make a task that is in this state."""
        state = task.State[TaskStatus(status).name]
        record = replace(machine.initial, **{"id": id, "state": state, **fields})
        self._claims: Final[dict[str, int]] = {record.owner: record.epoch} if record.owner else {}
        super().__init__(id, machine, approval.with_approval(machine, machine.name), record, clock)

    @property
    def status(self) -> TaskStatus:
        """The state that the task is in."""
        return TaskStatus[self.record.state.name]

    @property
    def token(self) -> int:
        """The number of the present claim, which its owner can prove itself with (E12)."""
        return int(self.record.epoch)

    def note(self, transition: Transition) -> None:
        """Keep a transition until it is told, and whose claim it was if it was one."""
        super().note(transition)
        if isinstance(transition.event, task.Claimed):
            self._claims[transition.after.record.owner] = transition.after.record.epoch

    def claim_of(self, actor: str) -> int:
        """Return the number of this actor's own claim, be it over; of whoever never claimed, that of the present one.

        Nobody's words can be taken for those of the next owner, therefore (E12). Where nobody has claimed it is 0.
        """
        present = 0 if self.record.state in _UNCLAIMED else self.token
        return self._claims.get(actor, present)

    def spelled(self, state: State) -> str:
        """Return a state as this interface spells it."""
        return TaskStatus[state.name].value


_UNCLAIMED: Final = {task.State.PLANNED, task.State.OPEN, task.State.BLOCKED, task.State.WAITING_FOR_SUBTASKS}
"""In these a task has no owner who could report."""


class AgentSession(Subject):
    """A worker. Its parent, if it has one, is known to the abort chain from the beginning (E38)."""

    entity_type = "agent"

    def __init__(  # noqa: PLR0913 - what is known of a session when it is spawned, each by its name
        self,
        id: str,  # noqa: A002 - the document's name
        status: str = AgentStatus.STARTING,
        *,
        parent_id: str = "",
        task_id: str = "",
        aborts: "AbortChain | None" = None,
        machine: Machine[Any] = agent.machine,
        clock: Callable[[], int] = wall_ms,
        limits: agent.Limits = agent.Limits(),  # noqa: B008 - an immutable value
    ) -> None:
        """Make a session that is in this state. Raises ``ValueError`` for a status that is none."""
        born = agent.spawned(id, clock(), parent=parent_id, task=task_id, limits=limits)
        super().__init__(id, machine, machine, replace(born, state=AgentStatus(status)), clock)
        if aborts is not None and parent_id:
            aborts.register_child(parent_id, id)

    @property
    def status(self) -> agent.State:
        """The state that the session is in."""
        return AgentStatus(self.record.state)
