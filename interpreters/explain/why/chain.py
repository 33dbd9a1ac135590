"""Which other tasks a task waits for, and those in turn, down to where the cause lies: a graph, walked once."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from lifefold.core.fleet.dispatch.task_index import is_lost
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.explain.why.scene import FleetView


class Link(msgspec.Struct, frozen=True):
    """A task, its state, and those because of which it does not go on; at a root there are none."""

    task: str
    state: str
    because_of: tuple[str, ...] = ()


MISSING: Final = "unknown"
"""Said in place of a state: the board has no task of this name."""


def chain(scene: FleetView) -> tuple[Link, ...]:
    """Return the task and everything that it waits for, each once, nearest first; circles end where they close."""
    links: dict[str, Link] = {}
    waiting = [scene.name]
    for name in waiting:
        if name not in links:
            because_of = waits_for(scene.about(name)) if name in scene.tasks else ()
            links[name] = Link(name, state_of(scene, name), because_of)
            waiting += because_of
    return tuple(links.values())


def state_of(scene: FleetView, name: str) -> str:
    """Return the state of any task."""
    return str(scene.tasks[name].state) if name in scene.tasks else MISSING


def roots(links: tuple[Link, ...]) -> tuple[str, ...]:
    """Return where the causes lie: tasks that wait for no other one. In a circle there are none."""
    return tuple(each.task for each in links if not each.because_of)


def waits_for(scene: FleetView) -> tuple[str, ...]:
    """Return the tasks because of which this one does not go on now."""
    return _WAITS.get(scene.job.state, _nothing)(scene)


def unmet(scene: FleetView) -> tuple[str, ...]:
    """Return what a task depends on that is not closed, in its order."""
    return tuple(each for each in dict.fromkeys(scene.job.depends_on) if state_of(scene, each) != State.CLOSED)


def rivals(scene: FleetView) -> tuple[str, ...]:
    """Return the tasks at work that change the same files."""
    return tuple(each for each in scene.work.rivals.get(scene.name, ()) if each in scene.work.at_work)


def parts(scene: FleetView) -> tuple[str, ...]:
    """Return the subtasks of a task that are not closed."""
    return tuple(each for each in scene.job.parts_of_it() if state_of(scene, each) != State.CLOSED)


def _before_it(scene: FleetView) -> tuple[str, ...]:
    return unmet(scene) or rivals(scene)


def lost(scene: FleetView) -> tuple[str, ...]:
    """Return what a blocked task needs that will not be done: first what has blocked it, then what would do so next."""
    job, tasks = scene.job, scene.tasks
    needed = job.parts_of_it() if job.waits else job.depends_on
    others = [each for each in needed if each in tasks and is_lost(tasks[each])]
    return tuple(dict.fromkeys((job.lacked_task, *others))) if job.lacked_task else ()


def _nothing(_scene: FleetView) -> tuple[str, ...]:
    return ()


_WAITS: Final[Mapping[State, Callable[[FleetView], tuple[str, ...]]]] = {
    State.OPEN: _before_it,
    State.BLOCKED: lost,
    State.WAITING_FOR_SUBTASKS: parts,
}
"""For which other tasks a task of a state may wait."""
