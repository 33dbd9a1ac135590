"""The choice of transitions for ``lifefold log``: by task, by agent, and by time.

A transition concerns a task if it is of the task, of its budget or of its worker slot. While the task is assigned,
those of its worker concern it too. It concerns an agent if it is of its worker, of its entities on the board, or of its
tasks.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import Aggregate, Reaction, Transition
from lifefold.interpreters.cli.names import UnknownName, missing
from lifefold.interpreters.cli.positions import SINCE_FORM, moment_ms
from lifefold.interpreters.cli.wording import by_number
from lifefold.interpreters.explain import status, task_status


class Chosen(msgspec.Struct, frozen=True):
    """The chosen tasks and agents, all if none is named; and the earliest time, in Unix milliseconds."""

    tasks: Collection[str] = ()
    agents: Collection[str] = ()
    since_ms: int = 0

    def accepts(self, aggregate: str, reaction: Reaction, step: Transition) -> bool:
        """Tell whether a transition of an aggregate is chosen."""
        if step.at_ms < self.since_ms:
            return False
        tasks, agents = concerned(aggregate, reaction, step)
        return _is_among(tasks, self.tasks) and _is_among(agents, self.agents)

    def accepts_whole(self, at_ms: int) -> bool:
        """Tell whether what is about the whole log is chosen: it concerns no task and no agent."""
        return at_ms >= self.since_ms and not self.tasks and not self.agents

    def missing(self, aggregates: Mapping[str, Aggregate]) -> Iterator[UnknownName]:
        """Yield a message for each unknown name, with similar names."""
        found = task_status.tasks(aggregates) if aggregates else ()
        yield from missing("task", self.tasks, [each.id for each in found])
        agents = (each.key for each in aggregates.values() if each.kind in {worker.KIND, service.KIND})
        yield from missing("agent", self.agents, sorted(agents, key=by_number))


def _is_among(found: Collection[str], wanted: Collection[str]) -> bool:
    return not wanted or any(each in wanted for each in found)


def since(text: str, now_ms: int) -> int:
    """Return the time of ``--since``, in Unix milliseconds. Raises ``BadInput``."""
    return moment_ms("--since", text, now_ms, SINCE_FORM)


def concerned(aggregate: str, reaction: Reaction, step: Transition) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tasks and the agents that a transition concerns."""
    if aggregate == board.NAME:
        return frozenset(_tasks_on_board(step)), frozenset(_agents_on_board(step))
    return frozenset(_assigned(reaction)), frozenset({reaction.aggregate.key})


def _tasks_on_board(step: Transition) -> Iterator[str]:
    machine, _, key = step.entity.partition(":")
    match machine:
        case "task" | "mailbox":
            yield key
        case "worker_slot":
            yield from (each.task for each in _records(step))
        case "preemption_request":
            yield from (name for each in _records(step) for name in (each.task, each.of))
        case "budget" if key.startswith("task/"):
            yield key.removeprefix("task/")
        case _:
            pass


def _agents_on_board(step: Transition) -> Iterator[str]:
    machine, _, key = step.entity.partition(":")
    match machine:
        case "task":
            yield from (each.owner for each in _records(step))
        case "budget" if key.startswith("agent/"):
            yield key.removeprefix("agent/")
        case "restart_permit":
            yield key.rpartition(".")[0]
        case "worker_slot" | "preemption_request" | "service_slot":
            yield key
        case _:
            pass


def _assigned(reaction: Reaction) -> Iterator[str]:
    """Yield the tasks that are assigned to a worker during a reaction; a service has none.

    The end of a session and the return of its failed task are one reaction.
    """
    if reaction.aggregate.kind == worker.KIND:
        steps = (each for each in reaction.transitions if each.entity == "assignment")
        assigned = (record for each in steps for record in _records(each))
        yield from map(status.assigned_task, (reaction.aggregate.record("assignment"), *assigned))


def _records(step: Transition) -> Iterator[Any]:
    """Yield the record of an entity before a transition, if there was one, and after it."""
    yield from (each.record for each in (step.before, step.after) if each is not None)
