"""The tasks and agent sessions of the governance kernel of document 004, as objects of a program.

Each has its own driver. The kernel looks up a requested status in ``table``. The driver's machine may have more rows: a
task can be approved, and no requested status leads there (E2).
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
from lifefold.interpreters.facades.driver import Driver, effects_of, wall_ms
from lifefold.interpreters.facades.governance.aborts import AbortChain
from lifefold.interpreters.facades.moves import moves


class TaskStatus(StrEnum):
    """The twelve states of a task, in the document's spelling."""

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
    """The common part of tasks and agent sessions: an identity, a table, a driver, and pending notifications."""

    entity_type = "subject"

    def __init__(
        self,
        id: str,  # noqa: A002 - the document's name
        table: Machine[Any],
        machine: Machine[Any],
        record: Record,
        clock: Callable[[], int],
    ) -> None:
        """Begin the entity's life with this record."""
        self.id: Final = text("id", id, empty=False)
        self.table: Final = table
        self.lock: Final = RLock()
        self.taken: Final[list[Transition]] = []
        self.requested: Final[list[Effect]] = []
        performers = dict.fromkeys(effects_of(machine), self.requested.append)
        self.driver: Final = Driver(machine, record, performers, observer=self.note, clock=clock)

    def __repr__(self) -> str:
        """Return the type, the id, and the state."""
        return f"<{type(self).__name__} {self.id!r}: {self.spelled(self.record.state)}>"

    @property
    def record(self) -> Any:
        """The present record."""
        return self.driver.record

    def note(self, transition: Transition) -> None:
        """Keep a transition until listeners are called."""
        self.taken.append(transition)

    def claim_of(self, actor: str) -> int:
        """Return the number of the claim that this actor's report belongs to; 0 for none."""
        del actor
        return 0

    def spelled(self, state: State) -> str:
        """Return a state in the document's spelling."""
        return str(state)

    def state_of(self, status: str) -> State | None:
        """Return the state of a status; None if there is none."""
        return next((state for state in self.table.states if self.spelled(state) == status), None)

    def event_towards(self, status: str, details: dict[str, Any]) -> Event | None:
        """Return the event of the row that leads from the present state to this status, or None if there is no row.

        A row with an event of a caller comes before one with an event of a timer. ``details`` has possible values of
        the event's fields, by name.
        """
        target = self.state_of(status)
        rows = moves(self.table, self.record.state, target) if target is not None else ()
        if not rows:
            return None
        kind = min(rows, key=lambda row: row.event in self.table.yielded).event
        return kind(**{name: details[name] for name in kind.__struct_fields__ if name in details})


class Task(Subject):
    """A unit of work. ``machine`` has its table: the document's, or a profile of it.

    Further arguments are fields of the machine's record, such as ``max_retries``. An unknown name raises ``TypeError``,
    an invalid status or value ``ValueError``. To continue a task in another process, make it from the fields of its
    ``record`` and from its ``claims``.
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
        """Make a task in this state."""
        if "state" in fields:
            raise TypeError("the state of a task is given as its status")
        given = {**fields, "id": text("id", id), "state": task.State[one_of("status", TaskStatus, status).name]}
        record = _checked(replace(machine_of(task.Task, machine).initial, **given))
        self.claims = instance(Claims, claims).knowing(record)
        super().__init__(id, machine, approval.with_approval(machine, machine.name), record, clock)

    @property
    def status(self) -> TaskStatus:
        """The task's state."""
        return TaskStatus[self.record.state.name]

    @property
    def token(self) -> int:
        """The number of the present claim; its owner passes it with reports (E12)."""
        return int(self.record.epoch)

    def note(self, transition: Transition) -> None:
        """Keep a transition until listeners are called, and the owner of a claim."""
        super().note(transition)
        self.claims = self.claims.after(transition.event, transition.after.record)

    def claim_of(self, actor: str) -> int:
        """Return the number of the claim that this actor's report without a token belongs to (E12)."""
        return self.claims.meant_by(actor, self.record)

    def spelled(self, state: State) -> str:
        """Return a state in the document's spelling."""
        return TaskStatus[state.name].value


class AgentSession(Subject):
    """An agent's session. Its parent, if it has one, is in the abort chain from the beginning (E38)."""

    entity_type = "agent"

    def __init__(  # noqa: PLR0913 - the data of a spawned session, by keyword
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
        """Make a session in this state; ``limits`` default to those of the machine.

        Raises ``ValueError`` for an invalid status.
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
        """The session's state."""
        return AgentStatus(self.record.state)


def machine_of(kind: type[Record], machine: Machine[Any]) -> Machine[Any]:
    """Return the machine, or raise ``TypeError`` if it is not for records of this type."""
    instance(Machine, machine)
    if not issubclass(machine.record, kind):
        raise TypeError(f"the machine {machine.name!r} is for a {machine.record.__name__}, not for a {kind.__name__}")
    return machine


def _checked(record: Record) -> Any:
    """Return a record with checked field types, or raise ``ValueError`` with the first wrong field."""
    return msgspec.convert(msgspec.structs.asdict(record), type(record))
