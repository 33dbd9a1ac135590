"""The difference of two plans of one fleet, as a value, and the application of such a value.

``changed(old, difference(old, new))`` is ``new``. A plan has no difference to itself. The reverse of a difference is
the difference of the two plans the other way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, assert_never

import msgspec

from lifefold.core.fleet.system.plan import AgentPlan, Plan, ServicePlan, TaskPlan

T = TypeVar("T", TaskPlan, AgentPlan, ServicePlan)


class TaskChange(msgspec.Struct, frozen=True, tag=True):
    """A task that was added (``was`` is None), removed (``now`` is None) or changed.

    ``place`` is the task's position in the new plan, from 0; -1 for a task that was removed.
    """

    was: TaskPlan | None
    now: TaskPlan | None
    place: int = -1

    @property
    def name(self) -> str:
        """The task's id."""
        return _named(self.was, self.now, lambda each: each.id)


class TaskMoved(msgspec.Struct, frozen=True, tag=True):
    """A task that is as it was, but at another ``place`` in the plan: something before it has changed."""

    name: str
    place: int


class AgentChange(msgspec.Struct, frozen=True, tag=True):
    """An agent that was added, removed or changed."""

    was: AgentPlan | None
    now: AgentPlan | None

    @property
    def name(self) -> str:
        """The agent's name."""
        return _named(self.was, self.now, lambda each: each.name)


class ServiceChange(msgspec.Struct, frozen=True, tag=True):
    """A service that was added, removed or changed."""

    was: ServicePlan | None
    now: ServicePlan | None

    @property
    def name(self) -> str:
        """The service's name."""
        return _named(self.was, self.now, lambda each: each.name)


class FleetChange(msgspec.Struct, frozen=True, tag=True):
    """The rules of the whole fleet have changed: two plans without agents, tasks and services."""

    was: Plan
    now: Plan

    @property
    def name(self) -> str:
        """The fleet's name, as it was."""
        return self.was.name


Change: TypeAlias = TaskChange | TaskMoved | AgentChange | ServiceChange | FleetChange


_NONE_ADDED: Final[Mapping[str, TaskPlan]] = {}


def difference(old: Plan, new: Plan, added: Mapping[str, TaskPlan] = _NONE_ADDED) -> tuple[Change, ...]:
    """Return the differences in a fixed order: the fleet's rules, agents, services, tasks. Empty if there are none.

    ``watch`` is no part of it: an option of the command line sets it. ``added`` are tasks of the new plan that the old
    one does not have, and that are on the board all the same. Each is a change, also if its terms are the same.
    """
    rules = FleetChange(rules_of(old), rules_of(new))
    fleet = () if rules.was == rules.now else (rules,)
    agents = (AgentChange(*pair) for pair in _pairs(old.agents, new.agents, lambda each: each.name))
    services = (ServiceChange(*pair) for pair in _pairs(old.services, new.services, lambda each: each.name))
    return (*fleet, *agents, *services, *_of_tasks(old, new, added))


def changed(plan: Plan, changes: Sequence[Change]) -> Plan:
    """Return the plan with these changes applied. Agents and services that were added come last."""
    tasks = {each.id: (place, each) for place, each in enumerate(plan.tasks)}
    agents, services = {each.name: each for each in plan.agents}, {each.name: each for each in plan.services}
    rules = plan
    for each in changes:
        match each:
            case TaskChange():
                tasks.pop(each.name, None)
                if each.now is not None:
                    tasks[each.name] = (each.place, each.now)
            case TaskMoved(name, place):
                tasks[name] = (place, tasks[name][1])
            case AgentChange():
                _put(agents, each.name, each.now)
            case ServiceChange():
                _put(services, each.name, each.now)
            case FleetChange():
                rules = each.now
            case _ as unknown:
                assert_never(unknown)
    return msgspec.structs.replace(
        rules,
        watch=plan.watch,
        tasks=tuple(each for _, each in sorted(tasks.values(), key=lambda placed: placed[0])),
        agents=tuple(agents.values()),
        services=tuple(services.values()),
    )


def rules_of(plan: Plan) -> Plan:
    """Return what a plan says of the fleet as a whole."""
    return msgspec.structs.replace(plan, agents=(), tasks=(), services=(), watch=False)


def _of_tasks(old: Plan, new: Plan, added: Mapping[str, TaskPlan]) -> Iterator[TaskChange | TaskMoved]:
    """Yield the differences of the tasks, with those that only moved."""
    was = {each.id: (place, each) for place, each in enumerate(old.tasks)}
    there = {each.id for each in new.tasks}
    for each in old.tasks:
        if each.id not in there:
            yield TaskChange(each, None)
    for place, now in enumerate(new.tasks):
        before, task = was.get(now.id, (-1, added.get(now.id)))
        if task != now or before < 0:
            yield TaskChange(task, now, place)
        elif before != place:
            yield TaskMoved(now.id, place)


def _pairs(old: Sequence[T], new: Sequence[T], name: Callable[[T], str]) -> Iterator[tuple[T | None, T | None]]:
    """Yield the old and the new value of everything that differs."""
    was: dict[str, T] = {name(each): each for each in old}
    now: dict[str, T] = {name(each): each for each in new}
    for key in {**was, **now}:
        if was.get(key) != now.get(key):
            yield was.get(key), now.get(key)


def _put(named: dict[str, T], name: str, now: T | None) -> None:
    if now is None:
        named.pop(name, None)
    else:
        named[name] = now


def _named(was: T | None, now: T | None, name: Callable[[T], str]) -> str:
    found = now if now is not None else was
    return "" if found is None else name(found)
