"""The order of agents and tasks where not all fit: final failures first, then decisions that the fleet waits for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli.wording import NO_WORK
from lifefold.interpreters.explain.chronicle_words import Mood
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
    follows = task.state == State.BLOCKED and bool(task.held_up)  # by another task, which comes first
    if task.asks:
        return _TASKS.index(State.PENDING_APPROVAL)
    return _TASKS.index(State.ORPHANED if task.is_retried or follows else State(task.state))


def in_words(tasks: Iterable[TaskStatus]) -> str:
    """Return how many tasks are in which state: ``2 failed, 3 running, 23 not begun``; closed ones come last."""
    return ", ".join(f"{count} {state}" for _, state, count in counts(tasks))


def counts(tasks: Iterable[TaskStatus]) -> Iterator[tuple[Mood, str, int]]:
    """Yield the states of tasks with what they mean, in words, and their numbers, by their need of an operator."""
    found = Counter((mood(each), each.in_words) for each in tasks_first(tasks))
    return ((its_mood, state, count) for (its_mood, state), count in found.items())


def begins(tasks: Sequence[TaskStatus], room: int | None) -> tuple[list[TaskStatus], list[TaskStatus]]:
    """Return the tasks to show in so many lines, those that need an operator first, and the rest; None is no limit."""
    if room is None:
        return list(tasks), []
    first = tasks_first(tasks)
    shown = len(first) if len(first) <= room else max(1, room - 1)
    return first[:shown], first[shown:]


def mood(task: TaskStatus) -> Mood:
    """Return what the state of a task means to an operator."""
    if task.state in {State.FAILED, State.BLOCKED, State.ORPHANED}:
        return Mood.PLAIN if task.is_retried else Mood.FAILED
    if task.asks or task.state in {State.PENDING_APPROVAL, State.PLANNED}:
        return Mood.WAITS
    return Mood.DONE if task.state == State.CLOSED else Mood.PLAIN


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
