"""The order of agents and tasks where not all fit: final failures first, then decisions that the fleet waits for."""

from collections.abc import Iterable
from typing import Final

from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli.wording import NO_WORK
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus

_TASKS: Final = (
    State.FAILED,
    State.BLOCKED,
    State.PENDING_APPROVAL,
    State.PLANNED,
    State.ORPHANED,
    State.IN_PROGRESS,
    State.CLAIMED,
    State.DONE,
    State.WAITING_FOR_SUBTASKS,
    State.OPEN,
    State.CANCELLED,
    State.CLOSED,
)
"""From states that need an operator to final states. A failure that is retried ranks with ORPHANED."""


def tasks_first(tasks: Iterable[TaskStatus]) -> list[TaskStatus]:
    """Return the tasks by their need of an operator; equal ones keep the order of the plan."""
    return sorted(tasks, key=_of_task)


def _of_task(task: TaskStatus) -> int:
    is_retried = task.state == State.FAILED and not task.settled
    return _TASKS.index(State.ORPHANED if is_retried else State(task.state))


def agents_first(agents: Iterable[AgentStatus]) -> list[AgentStatus]:
    """Return the agents by their need of an operator; equal ones keep their order."""
    return sorted(agents, key=_of_agent)


def _of_agent(agent: AgentStatus) -> int:
    if agent.supervisor == "Quarantined" or agent.state == "failed" or _has_failed(agent):
        return 0
    if agent.silent_since_ms:
        return 1
    if agent.desired_state == "Pause":
        return 2
    return 4 if agent.state in {"Stopped", "stopped"} else 3


def _has_failed(agent: AgentStatus) -> bool:
    """Tell whether an agent has stopped for good by its errors, and not by an operator or for lack of work."""
    return (
        agent.state == "Stopped" and agent.desired_state != "Stop" and not agent.supervisor and agent.reason != NO_WORK
    )
