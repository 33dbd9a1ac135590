"""What of a log somebody wants to see: what concerns tasks, or agents, since a time.

A task is concerned by what happens to itself, to its budget and to the worker slot of whoever gets it, and by all that
its owner goes through while it has the task in hand. An agent is concerned by all that happens to itself, by what the
board keeps of it, and by what happens to the tasks that it owns.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import Aggregate, Reaction, Transition
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import missing
from lifefold.interpreters.cli.wording import by_number
from lifefold.interpreters.explain import status
from lifefold.interpreters.fleet_file.units import parse_duration_ms

SINCE_FORM: Final = "a duration, as 10m or 1h30m, or a time, as 2026-11-20T09:30 (local, unless it says its zone)"
"""What ``--since`` accepts."""


class Chosen(msgspec.Struct, frozen=True):
    """Which tasks and which agents, any of those named and all if none is; and since when (Unix time)."""

    tasks: Collection[str] = ()
    agents: Collection[str] = ()
    since_ms: int = 0

    def accepts(self, aggregate: str, reaction: Reaction, step: Transition) -> bool:
        """Tell whether a step of an aggregate is wanted."""
        if step.at_ms < self.since_ms:
            return False
        tasks, agents = concerned(aggregate, reaction, step)
        return _is_among(tasks, self.tasks) and _is_among(agents, self.agents)

    def missing(self, aggregates: Mapping[str, Aggregate]) -> Iterator[str]:
        """Say of each name that a fleet does not have which ones are like it."""
        found = status.tasks(aggregates) if aggregates else ()
        yield from missing("task", self.tasks, [each.id for each in found])
        agents = (each.key for each in aggregates.values() if each.kind in {worker.KIND, service.KIND})
        yield from missing("agent", self.agents, sorted(agents, key=by_number))


def _is_among(found: Collection[str], wanted: Collection[str]) -> bool:
    return not wanted or any(each in wanted for each in found)


def since(text: str, now_ms: int) -> int:
    """Return what ``--since`` means, in Unix time. Raises ``BadInput``."""
    try:
        return now_ms - parse_duration_ms(text)
    except ValueError:
        pass
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1_000)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"--since: found {text!r}; accepted: {SINCE_FORM}") from error


def concerned(aggregate: str, reaction: Reaction, step: Transition) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tasks and the agents that a step of an aggregate's reaction concerns."""
    if aggregate == board.NAME:
        return frozenset(_tasks_on_board(step)), frozenset(_agents_on_board(step))
    return frozenset(_in_hand(reaction)), frozenset({reaction.aggregate.key})


def _tasks_on_board(step: Transition) -> Iterator[str]:
    machine, _, key = step.entity.partition(":")
    match machine:
        case "task":
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


def _in_hand(reaction: Reaction) -> Iterator[str]:
    """Yield what a worker has in hand in the course of a reaction; a service has nothing.

    A session's end and the giving away of the task that it fails are one reaction.
    """
    if reaction.aggregate.kind == worker.KIND:
        steps = (each for each in reaction.transitions if each.entity == "assignment")
        assigned = (record for each in steps for record in _records(each))
        yield from map(status.task_in_hand, (reaction.aggregate.record("assignment"), *assigned))


def _records(step: Transition) -> Iterator[Any]:
    """Yield what an entity was before a step, if it was there, and what it is since."""
    yield from (each.record for each in (step.before, step.after) if each is not None)
