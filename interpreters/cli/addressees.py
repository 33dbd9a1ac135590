"""Names of commands that accept an agent or a task: ``NAME``, ``agent:NAME`` or ``task:NAME``.

A name alone means the only thing with this name. If an agent and a task share it, the command must say which one.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.wording import by_number

_AGENT: Final = "agent:"
_TASK: Final = "task:"


class Addressee(msgspec.Struct, frozen=True):
    """What a name means: an agent (or a service), or else a task."""

    name: str
    is_task: bool = False


def addressee(there: Mapping[str, Aggregate], typed: str) -> Addressee:
    """Return what ``typed`` means. Raises ``BadInput`` for an unknown name, and for one with two meanings."""
    agents, tasks = agent_names(there), _task_names(there)
    if typed.startswith(_AGENT):
        name = typed.removeprefix(_AGENT)
        must_be_there("agent", [name], agents)
        return Addressee(name)
    if typed.startswith(_TASK):
        name = typed.removeprefix(_TASK)
        must_be_there("task", [name], tasks)
        return Addressee(name, is_task=True)
    if typed in agents and typed in tasks:
        raise BadInput(
            f"{typed} is the name of an agent and of a task; accepted: {_AGENT}{typed} for the agent,"
            f" {_TASK}{typed} for the task"
        )
    if typed not in tasks and typed not in agents:
        must_be_there("agent or task", [typed], [*dict.fromkeys((*agents, *tasks))])
    return Addressee(typed, is_task=typed in tasks)


def agent_names(there: Mapping[str, Aggregate]) -> list[str]:
    """Return the names of all agents and services."""
    kinds = {worker.KIND, service.KIND}
    return sorted((each.key for each in there.values() if each.kind in kinds), key=by_number)


def _task_names(there: Mapping[str, Aggregate]) -> list[str]:
    entities = there[board.NAME].entities if board.NAME in there else ()
    return [ref.removeprefix(_TASK) for ref in entities if ref.startswith(_TASK)]


def owner_of(there: Mapping[str, Aggregate], task: str) -> str:
    """Return the agent that has a task now; empty if no agent has it."""
    return str(there[board.NAME].record(f"{_TASK}{task}").owner or "")
