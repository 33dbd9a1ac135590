"""The tasks that a task waits for, directly and indirectly, down to the root causes."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from lifefold.core.fleet.dispatch.task_index import is_lost
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.explain.why.fleet_view import FleetView


class Link(msgspec.Struct, frozen=True):
    """A task, its state, and the tasks that hinder it; a root has none."""

    task: str
    state: str
    because_of: tuple[str, ...] = ()


MISSING: Final = "unknown"
"""Stands for a state: the board has no task of this name."""


def chain(view: FleetView) -> tuple[Link, ...]:
    """Return the task and all tasks that it waits for, each once, nearest first; a circle ends where it closes."""
    links: dict[str, Link] = {}
    waiting = [view.name]
    for name in waiting:
        if name not in links:
            because_of = waits_for(view.about(name)) if name in view.tasks else ()
            links[name] = Link(name, state_of(view, name), because_of)
            waiting += because_of
    return tuple(links.values())


def state_of(view: FleetView, name: str) -> str:
    """Return the state of any task."""
    return str(view.tasks[name].state) if name in view.tasks else MISSING


def roots(links: tuple[Link, ...]) -> tuple[str, ...]:
    """Return the root causes: tasks that wait for no other task. A circle has none."""
    return tuple(each.task for each in links if not each.because_of)


def waits_for(view: FleetView) -> tuple[str, ...]:
    """Return the tasks that hinder this one now."""
    return _WAITS.get(view.task.state, _nothing)(view)


def unmet(view: FleetView) -> tuple[str, ...]:
    """Return the dependencies that are not closed, in the order of the task."""
    return tuple(each for each in dict.fromkeys(view.task.depends_on) if state_of(view, each) != State.CLOSED)


def rivals(view: FleetView) -> tuple[str, ...]:
    """Return the tasks in progress that change the same files."""
    return tuple(each for each in view.work.rivals.get(view.name, ()) if each in view.work.at_work)


def parts(view: FleetView) -> tuple[str, ...]:
    """Return the subtasks of a task that are not closed."""
    return tuple(each for each in view.task.parts_of_it() if state_of(view, each) != State.CLOSED)


def _before_it(view: FleetView) -> tuple[str, ...]:
    return unmet(view) or rivals(view)


def lost(view: FleetView) -> tuple[str, ...]:
    """Return the needed tasks that will not be done: first the blocker, then the others."""
    record, tasks = view.task, view.tasks
    needed = record.parts_of_it() if record.waits_for_parts else record.depends_on
    others = [each for each in needed if each in tasks and is_lost(tasks[each])]
    return tuple(dict.fromkeys((record.lacked_task, *others))) if record.lacked_task else ()


def _nothing(_view: FleetView) -> tuple[str, ...]:
    return ()


_WAITS: Final[Mapping[State, Callable[[FleetView], tuple[str, ...]]]] = {
    State.OPEN: _before_it,
    State.BLOCKED: lost,
    State.WAITING_FOR_SUBTASKS: parts,
}
"""The tasks that a task may wait for, by its state."""
