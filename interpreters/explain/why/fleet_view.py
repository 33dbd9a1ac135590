"""The view of a fleet at one moment, for one task."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import TaskIndex, tasks_of, work_of
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import assignment, conversation, desired_state, supervisor
from lifefold.core.kernel import Aggregate, Entity, replace
from lifefold.core.lifecycles.session import Session
from lifefold.interpreters.explain import status
from lifefold.interpreters.explain.conversing import conversing
from lifefold.interpreters.explain.questions import Asked, of_agent
from lifefold.interpreters.explain.turn_status import TurnStatus, turn_status


class FleetView(msgspec.Struct, frozen=True):
    """The aggregates, the name of the task, the time. ``tasks`` has all tasks in the order of dispatch.

    ``sessions`` counts the sessions of the task's current attempt, ``attempts`` the attempts at it.
    """

    aggregates: Mapping[str, Aggregate]
    name: str
    now_ms: int
    tasks: Mapping[str, FleetTask]
    worker_slots: Mapping[str, worker_slot.WorkerSlot]
    sessions: int = 0
    attempts: int = 0

    @property
    def entity(self) -> Entity[FleetTask]:
        """The entity of the task."""
        return self.aggregates[board.NAME].entities[f"task:{self.name}"]

    @property
    def task(self) -> FleetTask:
        """The record of the task."""
        return self.tasks[self.name]

    @property
    def work(self) -> TaskIndex:
        """The index of the board."""
        return work_of(self.aggregates[board.NAME])

    @property
    def deadline_ms(self) -> int:
        """The next timer of the task, as Unix time in milliseconds; 0 without one."""
        return min((part.deadline_ms for part in self.entity.running if part.deadline_ms), default=0)

    @property
    def is_over(self) -> bool:
        """Whether all workers have stopped, or are about to."""
        return board.finished(self.aggregates[board.NAME])

    def about(self, name: str) -> "FleetView":
        """Return the view of another task at the same moment."""
        return replace(self, name=name, sessions=0, attempts=0)

    def assignment(self, agent: str) -> assignment.Assignment:
        """Return the assignment of an agent."""
        record: assignment.Assignment = self._of(agent, "assignment", assignment.Assignment())
        return record

    def session(self, agent: str) -> Session:
        """Return the session of an agent."""
        record: Session = self._of(agent, "session", Session())
        return record

    def time_limit_ms(self, agent: str) -> int | None:
        """Return the time limit of an agent's session, or of its next one; None or 0 without a limit."""
        of = self.aggregates.get(f"{worker.KIND}/{agent}")
        entity = None if of is None else of.entities.get("session")
        running = None if entity is None else status.running_session(entity)
        return self.next_time_limit_ms(agent) if running is None else running.timeout_ms

    def next_time_limit_ms(self, agent: str) -> int | None:
        """Return the time limit of an agent's next session, which the plan may have changed; None or 0 without one."""
        return self.assignment(agent).brief.timeout_ms or self.session(agent).limits.session_timeout_ms

    def desired_state(self, agent: str) -> desired_state.DesiredState:
        """Return the desired state of an agent."""
        record: desired_state.DesiredState = self._of(agent, "desired_state", desired_state.DesiredState())
        return record

    def supervisor(self, agent: str) -> supervisor.Supervisor:
        """Return the supervisor of an agent."""
        record: supervisor.Supervisor = self._of(agent, supervisor.REF, supervisor.Supervisor())
        return record

    def conversing(self, agent: str) -> str:
        """Return what an agent does about the conversation of this task; empty if it has none."""
        found: conversation.Conversation | None = self._of(agent, conversation.REF, None)
        is_its = found is not None and found.task == self.name
        return conversing(self.aggregates[f"{worker.KIND}/{agent}"]) if is_its else ""

    def turn(self, agent: str) -> TurnStatus | None:
        """Return the turn of an agent; None without one."""
        of = self.aggregates.get(f"{worker.KIND}/{agent}")
        return None if of is None else turn_status(of)

    def questions(self, agent: str) -> tuple[Asked, ...]:
        """Return the questions of an agent that wait for an operator, the oldest first."""
        of = self.aggregates.get(f"{worker.KIND}/{agent}")
        return () if of is None else tuple(of_agent(of))

    def _of(self, agent: str, ref: str, none: Any) -> Any:
        """Return a record of an agent's worker; ``none`` for a worker that the log does not have yet."""
        name = f"{worker.KIND}/{agent}"
        known = name in self.aggregates and ref in self.aggregates[name].entities
        return self.aggregates[name].record(ref) if known else none


def look(aggregates: Mapping[str, Aggregate], name: str, now_ms: int) -> FleetView:
    """Return the view of a task that the board has."""
    of = aggregates[board.NAME]
    tasks = sorted(tasks_of(of), key=lambda each: (each.priority, each.ordinal, each.id))
    worker_slots = {
        ref.removeprefix("worker_slot:"): of.record(ref)
        for ref in sorted(of.entities)
        if ref.startswith("worker_slot:")
    }
    return FleetView(aggregates, name, now_ms, {each.id: each for each in tasks}, worker_slots)
