"""The tasks and agent sessions that the governance kernel of document 004 moves, as objects of a program.

Each has its state in a driver of its own. ``table`` is where a status is looked up that somebody asks for; the driver's
machine may know more: a task can be approved, which no status asked for leads to (E2).
"""

from collections.abc import Callable
from enum import StrEnum
from threading import RLock
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Event, Machine, Record, State, Transition, replace
from lifefold.core.lifecycles import agent, approval, task
from lifefold.core.lifecycles.claims import Claims
from lifefold.effects import Effect
from lifefold.interpreters.facades.arguments import instance, one_of, text
from lifefold.interpreters.facades.driver import Driver, asked_by, wall_ms
from lifefold.interpreters.facades.governance.aborts import AbortChain
from lifefold.interpreters.facades.moves import moves


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
        self.id: Final = text("id", id, empty=False)
        self.table: Final = table
        self.lock: Final = RLock()
        self.taken: Final[list[Transition]] = []
        self.asked: Final[list[Effect]] = []
        performers = dict.fromkeys(asked_by(machine), self.asked.append)
        self.driver: Final = Driver(machine, record, performers, observer=self.note, clock=clock)

    def __repr__(self) -> str:
        """Say what it is, who, and in which state."""
        return f"<{type(self).__name__} {self.id!r}: {self.spelled(self.record.state)}>"

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
    a status or a value that is none ``ValueError``. A task that goes on in another process is made of the fields of its
    ``record``, and of its ``claims``.
    """

    entity_type = "task"

    def __init__(
        self,
        id: str,  # noqa: A002 - the document's name
        status: TaskStatus | str = TaskStatus.OPEN,
        *,
        machine: Machine[Any] = task.machine,
        clock: Callable[[], int] = wall_ms,
        claims: Claims = Claims(),  # noqa: B008 - an immutable value
        **fields: Any,
    ) -> None:
        """Make a task that is in this state."""
        if "state" in fields:
            raise TypeError("the state of a task is given as its status")
        given = {**fields, "id": text("id", id), "state": task.State[one_of("status", TaskStatus, status).name]}
        record = _checked(replace(machine_of(task.Task, machine).initial, **given))
        self.claims = instance(Claims, claims).knowing(record)
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
        self.claims = self.claims.after(transition.event, transition.after.record)

    def claim_of(self, actor: str) -> int:
        """Return the number of the claim that this actor's words are about, who gives no token (E12)."""
        return self.claims.meant_by(actor, self.record)

    def spelled(self, state: State) -> str:
        """Return a state as this interface spells it."""
        return TaskStatus[state.name].value


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
        aborts: AbortChain | None = None,
        machine: Machine[Any] = agent.machine,
        clock: Callable[[], int] = wall_ms,
        limits: agent.Limits | None = None,
    ) -> None:
        """Make a session that is in this state; ``limits`` are the machine's if there are none.

        Raises ``ValueError`` for a status that is none.
        """
        table = machine_of(agent.Agent, machine)
        like = table.initial if limits is None else replace(table.initial, limits=instance(agent.Limits, limits))
        named = {"parent": text("parent_id", parent_id), "task": text("task_id", task_id)}
        born = agent.spawned(text("id", id), clock(), **named, like=like)
        chain = aborts if aborts is None else instance(AbortChain, aborts)
        super().__init__(id, table, table, replace(born, state=one_of("status", AgentStatus, status)), clock)
        if chain is not None and parent_id:
            chain.register_child(parent_id, id)

    @property
    def status(self) -> agent.State:
        """The state that the session is in."""
        return AgentStatus(self.record.state)


def machine_of(kind: type[Record], machine: Machine[Any]) -> Machine[Any]:
    """Return a machine, or raise ``TypeError`` if it is none for records of this kind."""
    instance(Machine, machine)
    if not issubclass(machine.record, kind):
        raise TypeError(f"the machine {machine.name!r} is for a {machine.record.__name__}, not for a {kind.__name__}")
    return machine


def _checked(record: Record) -> Any:
    """Return a record whose fields are of their types, or raise ``ValueError`` naming the first that is not."""
    return msgspec.convert(msgspec.structs.asdict(record), type(record))
