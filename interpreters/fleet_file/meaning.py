"""The meaning of a fleet file: one JSON text without comments and order of keys; and the difference of two.

A log has the meaning of the file it began with. For a changed file the difference is shown, key by key, in the words of
the file.

Variables of processes are not part of a meaning. They may be secrets, and a new key needs no plan change. Of a notifier
a meaning has what is told and how often it is tried, and not the command, the address or the time limit.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, Final

from lifefold.core.fleet import Caps, TaskPlan
from lifefold.core.fleet.system.plan_places import parts_of, place_of
from lifefold.interpreters.fleet_file.agents import ADAPTIVE_MS, AgentKeys, RestartKeys
from lifefold.interpreters.fleet_file.budget import said_caps
from lifefold.interpreters.fleet_file.keys import Key, said, said_but_defaults
from lifefold.interpreters.fleet_file.model import Agent, InterpreterEntry, Service
from lifefold.interpreters.fleet_file.notify import Notifier, said_notifiers
from lifefold.interpreters.fleet_file.programs import said_program
from lifefold.interpreters.fleet_file.services import said_life
from lifefold.interpreters.fleet_file.tasks import TaskKeys, on_retry_of
from lifefold.interpreters.fleet_file.values import LONGEST_SHOWN, as_table, shortened

_DIGEST = "digest "


def meaning(  # noqa: PLR0913, PLR0917 - the parts of a file, each with its name
    fleet: Mapping[str, object],
    agents: Sequence[Agent],
    tasks: Sequence[TaskPlan],
    interpreters: Sequence[InterpreterEntry] = (),
    services: Sequence[Service] = (),
    notify: Sequence[Notifier] = (),
) -> str:
    """Return the canonical JSON text of a fleet; ``fleet`` has the values of the table of that name."""
    document: dict[str, object] = {
        "fleet": fleet,
        "agents": {agent.name: _agent(agent) for agent in agents},
        "tasks": {task.id: _task(task) for task in tasks},
        # The first agent gets work first, and a JSON object has no order.
        "order": {"agents": [agent.name for agent in agents], "tasks": [task.id for task in tasks]},
    }
    if interpreters:
        document["interpreters"] = {each.name: _interpreter(n, each) for n, each in enumerate(interpreters, 1)}
    if services:
        document["services"] = {each.name: _service(each) for each in services}
    if notify:
        document["notify"] = dict(said_notifiers(notify))
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def in_force(text: str, added: Iterable[TaskPlan], caps: Mapping[str, Caps]) -> str:
    """Return the meaning that is in force where commands have changed a fleet since its file had the meaning ``text``.

    ``added`` are tasks that a command has added. ``caps`` are caps that a command has raised, by their place, which is
    ``fleet``, ``agents.NAME`` or ``tasks.NAME``.
    """
    document = json.loads(text)
    document["tasks"] |= {each.id: _task(each) for each in added}
    for place, each in caps.items():
        kind, name, _ = parts_of(place)
        table = document[kind][name] if name else document[kind]
        table["budget"] |= said_caps(each)["budget"]
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def describe_difference(old: str, new: str) -> tuple[str, ...]:
    """Return the differences of two meanings, one line each: ``agents.coder-1.grace: was 5s, is 10s``.

    Both texts are ``Fleet.meaning``. The answer is empty if, and only if, they are equal.
    """
    before, after = json.loads(old), json.loads(new)
    order = before.pop("order"), after.pop("order")
    lines = list(_differences((), before, after))
    # Added and removed names are reported already, so only the order of the others counts.
    for kind in ("agents", "tasks"):
        names, others = ([name for name in side[kind] if all(name in other[kind] for other in order)] for side in order)
        if names != others:
            lines.append(f"{kind}: the order was {_written(names)}, is {_written(others)}")
    return tuple(lines)


def _interpreter(place: int, entry: InterpreterEntry) -> dict[str, object]:
    # An option may be any TOML value, and may be a secret.
    options = {key: json.dumps(value, sort_keys=True, default=str) for key, value in entry.options.items()}
    return {"place": place, "options": {key: _digest(value) for key, value in options.items()}}


def _digest(text: str) -> str:
    return _DIGEST + blake2b(text.encode(), digest_size=4).hexdigest()


def _agent(agent: Agent) -> dict[str, object]:
    limits = agent.limits
    if agent.program is not None:
        runs = said_program(agent.program)
    else:
        runs = said({AgentKeys.target: agent.target} if agent.target else {AgentKeys.command: agent.written_command})
    meanings = {
        AgentKeys.output_limit: agent.output_limit_bytes,
        AgentKeys.session_timeout: ADAPTIVE_MS if agent.adaptive else limits.session_timeout_ms,
        AgentKeys.grace: limits.grace_ms,
        AgentKeys.max_consecutive_errors: limits.max_consecutive_errors,
        AgentKeys.max_total_errors: limits.max_total_errors,
        AgentKeys.backoff_base: limits.backoff_base_ms,
        AgentKeys.backoff_cap: limits.backoff_cap_ms,
        AgentKeys.jitter: limits.jitter,
        AgentKeys.reset_errors_on: limits.reset_errors_on,
    }
    newer: dict[Key[Any], object] = {
        AgentKeys.roles: agent.roles,
        AgentKeys.trust: agent.trust,
        AgentKeys.account: agent.account,
    }
    if agent.stall is not None:
        newer |= {
            AgentKeys.stall_timeout: agent.stall.end_ms,
            AgentKeys.stall_warn: agent.stall.warn_ms,
            AgentKeys.stall_interrupt: agent.stall.nudge_ms,
        }
    restart = said_but_defaults(
        {
            RestartKeys.max_restarts: agent.restart.max_restarts,
            RestartKeys.window: agent.restart.window_ms,
            RestartKeys.backoff_base: agent.restart.pause.base_ms,
            RestartKeys.backoff_cap: agent.restart.pause.cap_ms,
        }
    )
    tables = said_caps(agent.caps) | ({"restart": restart} if restart else {})
    return runs | said(meanings) | said_but_defaults(newer) | tables


def _service(service: Service) -> dict[str, object]:
    meanings: dict[Key[Any], object] = {
        AgentKeys.command: service.written_command,
        AgentKeys.output_limit: service.output_limit_bytes,
        AgentKeys.session_timeout: service.runs.session_timeout_ms,
        AgentKeys.grace: service.runs.grace_ms,
    }
    return said(meanings | dict(said_life(service)))


def _task(task: TaskPlan) -> dict[str, object]:
    meanings = {
        TaskKeys.prompt: task.prompt,
        TaskKeys.verify: task.verify,
        TaskKeys.depends_on: sorted(task.depends_on),
        TaskKeys.priority: task.priority,
        TaskKeys.max_retries: task.max_retries,
    }
    newer = {
        TaskKeys.role: task.role,
        TaskKeys.trust: task.trust,
        TaskKeys.files: tuple(sorted(task.files)),
        TaskKeys.approval: "merge" if task.needs_approval else "none",
        TaskKeys.max_subtasks: task.most_subtasks,
        TaskKeys.subtasks_timeout: task.subtasks_ms,
        TaskKeys.orphaned: task.orphaned,
        TaskKeys.on_nothing: task.on_nothing,
        TaskKeys.on_retry: on_retry_of(task.anew),
    }
    return said(meanings) | said_but_defaults(newer) | said_caps(task.caps)


def _differences(path: tuple[str, ...], old: object, new: object) -> Iterator[str]:
    if old == new:
        return
    olds, news, place = as_table(old), as_table(new), place_of(*path)
    if olds is not None and news is not None:
        for inner in sorted(olds.keys() | news.keys()):
            if inner not in news or inner not in olds:
                yield from _came_or_went((*path, inner), olds.get(inner), news.get(inner), came=inner in news)
            else:
                yield from _differences((*path, inner), olds[inner], news[inner])
    elif isinstance(new, str) and new.startswith(_DIGEST) and "options" in path[:-1]:
        yield f"{place}: has changed"
    else:
        yield f"{place}: was {_around(old, new)}, is {_around(new, old)}"


def _came_or_went(path: tuple[str, ...], old: object, new: object, *, came: bool) -> Iterator[str]:
    """Yield an added or removed thing: for a key its value, for a table each key."""
    kind, *names = path
    value, place = as_table(new if came else old), place_of(*path)
    if value is None:
        yield f"{place}: was {_written(old)}, is {_written(new)}"
    elif not value or (kind != "fleet" and len(names) <= 1):
        yield f"{place}: {'was added' if came else 'was removed'}"
    else:
        yield from _differences(path, {} if came else old, new if came else {})


def _around(value: object, other: object) -> str:
    """Return a value that differs from another as text; of long values with a common beginning the different part."""
    mine, its = _whole(value), _whole(other)
    if max(len(mine), len(its)) <= LONGEST_SHOWN:
        return _written(value)
    common = next((i for i, (a, b) in enumerate(zip_longest(mine, its)) if a != b), 0)
    begin = max(0, common - _BEFORE_THE_DIFFERENCE)
    part = mine[begin : begin + LONGEST_SHOWN]
    shown = f"{'…' if begin else ''}{part}{'…' if begin + len(part) < len(mine) else ''}"
    return f'"{shown}"' if isinstance(value, str) else shown


_BEFORE_THE_DIFFERENCE: Final = 20
"""The characters shown before the first difference of two long values."""


def _whole(value: object) -> str:
    """Return a value on one line; a text without its quotes."""
    if value is None:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    return text[1:-1] if isinstance(value, str) else text


def _written(value: object) -> str:
    if isinstance(value, str):
        return value if value.isalnum() else shortened(value)
    return "absent" if value is None else shortened(json.dumps(value, ensure_ascii=False))[1:-1].replace('\\"', '"')
