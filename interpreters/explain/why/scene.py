"""A fleet at one moment, looked at for the sake of one task."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import TaskIndex, tasks_of, work_of
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import assignment, desired_state, supervisor
from lifefold.core.kernel import Aggregate, Entity, replace
from lifefold.core.lifecycles.session import Session


class FleetView(msgspec.Struct, frozen=True):
    """The aggregates, the task's name, the time. ``tasks`` has all of them, in the order in which they are given out.

    ``sessions`` counts those that the task's present claim has had.
    """

    aggregates: Mapping[str, Aggregate]
    name: str
    now_ms: int
    tasks: Mapping[str, FleetTask]
    worker_slots: Mapping[str, worker_slot.WorkerSlot]
    sessions: int = 0

    @property
    def entity(self) -> Entity[FleetTask]:
        """The task."""
        return self.aggregates[board.NAME].entities[f"task:{self.name}"]

    @property
    def job(self) -> FleetTask:
        """Its record."""
        return self.tasks[self.name]

    @property
    def work(self) -> TaskIndex:
        """What the board looks up."""
        return work_of(self.aggregates[board.NAME])

    @property
    def deadline_ms(self) -> int:
        """When time brings something to the task; 0 if it brings nothing."""
        return min((part.deadline_ms for part in self.entity.running if part.deadline_ms), default=0)

    @property
    def is_over(self) -> bool:
        """Whether everybody has gone home, or is about to."""
        return board.finished(self.aggregates[board.NAME])

    def about(self, name: str) -> "FleetView":
        """Return the same moment, looked at for the sake of another task."""
        return replace(self, name=name, sessions=0)

    def assignment(self, agent: str) -> assignment.Assignment:
        """Return what an agent does with the task in its hands."""
        record: assignment.Assignment = self._of(agent, "assignment", assignment.Assignment())
        return record

    def session(self, agent: str) -> Session:
        """Return an agent's session."""
        record: Session = self._of(agent, "session", Session())
        return record

    def desired_state(self, agent: str) -> desired_state.DesiredState:
        """Return what was asked of an agent."""
        record: desired_state.DesiredState = self._of(agent, "desired_state", desired_state.DesiredState())
        return record

    def supervisor(self, agent: str) -> supervisor.Supervisor:
        """Return whether an agent that stops by its errors comes back."""
        record: supervisor.Supervisor = self._of(agent, supervisor.REF, supervisor.Supervisor())
        return record

    def _of(self, agent: str, ref: str, none: Any) -> Any:
        """Return a record of an agent's worker; of one that the log has not begun with yet, one without news."""
        name = f"{worker.KIND}/{agent}"
        known = name in self.aggregates and ref in self.aggregates[name].entities
        return self.aggregates[name].record(ref) if known else none


def look(aggregates: Mapping[str, Aggregate], name: str, now_ms: int) -> FleetView:
    """Return the scene of a task, which the board must have."""
    of = aggregates[board.NAME]
    tasks = sorted(tasks_of(of), key=lambda each: (each.priority, each.ordinal, each.id))
    worker_slots = {
        ref.removeprefix("worker_slot:"): of.record(ref)
        for ref in sorted(of.entities)
        if ref.startswith("worker_slot:")
    }
    return FleetView(aggregates, name, now_ms, {each.id: each for each in tasks}, worker_slots)
