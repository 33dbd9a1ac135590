"""The task index: a view of the board, folded over its transitions, with ready tasks and waiting workers.

A task is *offered* when it is open and has no parts to wait for, or when it is done and has no owner. An offered task
is *ready* when nothing hinders it: its dependencies are closed, and no *rival* is at work. A rival is a task that
changes the same files. Nothing hinders a task that is done. A fold updates the neighbours of a task and never scans all
tasks.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from pyrsistent import PMap, PSet, PVector, pmap, pset, pvector

from lifefold.core.fleet.board import budget, preemption_request, worker_slot
from lifefold.core.fleet.board.fleet_task import LEVEL, FleetTask
from lifefold.core.kernel import Aggregate, Transition, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Stage, State
from lifefold.core.policy.access import AccessLevel

Place = tuple[int, int, str]
"""The order of ready tasks: priority, place in the plan, id."""

Requirement = tuple[str, AccessLevel]
"""What a task requires of a worker: a role, which may be empty, and a trust level."""

FIRST = 0
"""The priority of work that is done and only has to be verified or merged."""


class Offer(msgspec.Struct, frozen=True):
    """An offered task: its place, its requirement, and whether dependencies and rivals can hinder it."""

    place: Place
    asked: Requirement
    can_be_hindered: bool


class TaskIndex(msgspec.Struct, frozen=True):
    """What the rules look up about tasks and workers.

    - ``ready`` has the ready tasks by requirement, ``waiting`` the waiting worker slots in order.
    - ``offered`` has all offered tasks, since a fold sees transitions and no entities.
    - ``hindered`` counts for each task its open dependencies and its rivals in ``at_work``. ``dependents`` and
      ``rivals`` are those relations.
    - ``owners`` has the tasks that change a path, ``below`` the tasks that change something in it.
    - ``present`` counts the workers that are not gone. ``able`` counts those of them that stay, by role and level.
    - ``distrusted`` has the tasks that are blocked for want of trust, with their requirements.
    - ``parts`` has all parts of a task at every depth. ``dry`` has the tasks whose budget has no share left; they and
      their parts are not ready.
    - ``changing``: a plan change is coming into force. Meanwhile no task is given out and no worker is sent home.

    The rest is empty without preemption. ``at`` has the claimed tasks by priority, in the order of their claims.
    ``preempted`` has by preempted worker the task that it was preempted for.
    """

    ready: PMap[Requirement, tuple[Place, ...]] = pmap()
    waiting: tuple[str, ...] = ()
    offered: PMap[str, Offer] = pmap()
    hindered: PMap[str, int] = pmap()
    dependents: PMap[str, PVector[str]] = pmap()
    rivals: PMap[str, PVector[str]] = pmap()
    owners: PMap[str, PVector[str]] = pmap()
    below: PMap[str, PVector[str]] = pmap()
    at_work: PSet[str] = pset()
    closed: PSet[str] = pset()
    unsettled: int = 0
    present: int = 0
    able: PMap[Requirement, int] = pmap()
    distrusted: PMap[str, Requirement] = pmap()
    parts: PMap[str, PVector[str]] = pmap()
    dry: PSet[str] = pset()
    changing: bool = False
    is_preempting: bool = False
    at: PMap[int, tuple[str, ...]] = pmap()
    preempted: PMap[str, str] = pmap()


_NO_NAMES: PVector[str] = pvector()


def fold(work: TaskIndex, transition: Transition) -> TaskIndex:
    """Take a transition of a task or a worker slot into account."""
    if transition.machine == "worker_slot":
        return _fold_worker_slot(work, transition)
    if transition.machine == budget.machine.name:
        return _fold_budget(work, transition)
    if transition.machine == preemption_request.machine.name:
        return _fold_preemption_request(work, transition)
    if transition.machine == "change":  # the module of plan changes is built on plans, which are built on this one
        return replace(work, changing=transition.after.state == "Accepted")
    return _fold_task(work, transition) if transition.machine == "task" else work


def _fold_worker_slot(work: TaskIndex, transition: Transition) -> TaskIndex:
    ref, entered = transition.entity, transition.entered
    leaves = transition.after.record.leaves
    waiting = work.waiting if entered is None and not leaves else _without(work.waiting, ref)
    if entered is worker_slot.State.WAITING and not leaves:
        waiting = (*waiting, ref)
    arrived = 1 if transition.before is None else 0
    gone = 1 if entered is worker_slot.State.GONE else 0
    before = () if transition.before is None else abilities(transition.before.record)
    now, able = abilities(transition.after.record), work.able
    for each, by in (*((each, -1) for each in before), *((each, 1) for each in now)) if before != now else ():
        able = able.set(each, able.get(each, 0) + by)
    return replace(work, waiting=waiting, present=work.present + arrived - gone, able=able)


def abilities(of: worker_slot.WorkerSlot) -> tuple[Requirement, ...]:
    """Return the role-and-level pairs of a worker, with the empty role; none for one that leaves or is gone."""
    roles = () if of.leaves or of.state is worker_slot.State.GONE else dict.fromkeys(("", *of.roles))
    return tuple((role, of.level) for role in roles)


def any_agent_may(work: TaskIndex, role: str, level: AccessLevel) -> bool:
    """Tell whether a worker that stays has this role, or any if it is empty, and this trust level."""
    return any(work.able.get((role, each)) for each in AccessLevel if each >= level)


def _fold_budget(work: TaskIndex, transition: Transition) -> TaskIndex:
    name = transition.entity.partition("task/")[2]
    is_dry = transition.after.state not in budget.ADMITS
    if not name or is_dry is (name in work.dry):
        return work
    dry = work.dry.add(name) if is_dry else work.dry.remove(name)
    family = [each for each in (name, *work.parts.get(name, _NO_NAMES)) if each in work.hindered]
    return _hinder(replace(work, dry=dry), family, 1 if is_dry else -1)


def _fold_preemption_request(work: TaskIndex, transition: Transition) -> TaskIndex:
    worker, now = transition.entity.removeprefix("preemption_request:"), transition.after
    asked = work.preempted.discard(worker)
    if now.state is preemption_request.State.ASKED:
        asked = asked.set(worker, now.record.task)
    return replace(work, is_preempting=True, preempted=asked)


def whole_of(name: str) -> str:
    """Return the id of the task that this one is a part of, or a part of a part; its own if it is none."""
    return name.partition("+")[0]


def _fold_task(work: TaskIndex, transition: Transition) -> TaskIndex:
    now: FleetTask = transition.after.record
    before: FleetTask | None = None if transition.before is None else transition.before.record
    if before is None:
        work = _introduce(work, now)
    elif (before.depends_on, before.files) != (now.depends_on, now.files):
        work = _reintroduce(work, before, now)
    was_settled, is_settled = before is None or task.settled(before), task.settled(now)
    if was_settled is not is_settled:
        work = replace(work, unsettled=work.unsettled + was_settled - is_settled)
    if now.owner and (before is None or before.owner != now.owner):
        work = replace(work, waiting=_without(work.waiting, f"worker_slot:{now.owner}"))
    work = _distrust(_offer(work, now.id, offer(now)), now)
    if is_at_work(now) is not (now.id in work.at_work):
        work = _at_work(work, now.id, is_at_work(now))
    if work.is_preempting:
        work = _go_to(work, now)
    return _close(work, now.id) if transition.entered is task.State.CLOSED else work


def offer(record: FleetTask) -> Offer | None:
    """Return how a task is offered; None if it is not."""
    if record.state is task.State.OPEN and not record.waits_for_parts:
        return Offer((record.priority, record.ordinal, record.id), (record.role, record.level), can_be_hindered=True)
    if record.state is task.State.DONE and not record.owner:
        return Offer((FIRST, record.ordinal, record.id), ("", AccessLevel.UNTRUSTED), can_be_hindered=False)
    return None


def is_distrusting(record: FleetTask) -> bool:
    """Tell whether a task is blocked for want of trust."""
    return record.state is task.State.BLOCKED and record.blocked_by.startswith(LEVEL)


def _distrust(work: TaskIndex, record: FleetTask) -> TaskIndex:
    """Update whether a task is blocked for want of trust."""
    name, distrusted = record.id, work.distrusted
    if is_distrusting(record) is (name in distrusted):
        return work
    asked = (record.role, record.level)
    return replace(work, distrusted=distrusted.remove(name) if name in distrusted else distrusted.set(name, asked))


def is_at_work(record: FleetTask) -> bool:
    """Tell whether a worker has the whole task in hand: its files change or are about to be merged."""
    return record.state in _WITH_CHANGING_FILES and bool(record.owner) and record.stage is Stage.WORK


_WITH_CHANGING_FILES = frozenset({task.State.CLAIMED, task.State.IN_PROGRESS, task.State.ORPHANED, task.State.DONE})


CLAIMED: Final = frozenset({State.CLAIMED, State.IN_PROGRESS})
"""In these states a worker has claimed a task to work at it."""


def _go_to(work: TaskIndex, record: FleetTask) -> TaskIndex:
    """Update whether a task is claimed."""
    there, is_there = work.at.get(record.priority, ()), record.state in CLAIMED
    if (record.id in there) is is_there:
        return work
    left = (*there, record.id) if is_there else tuple(each for each in there if each != record.id)
    return replace(work, at=work.at.set(record.priority, left) if left else work.at.remove(record.priority))


def _introduce(work: TaskIndex, record: FleetTask) -> TaskIndex:
    """Add a new task with its dependencies, files and parts."""
    needed, dependents = dict.fromkeys(record.depends_on), work.dependents
    for each in needed:
        dependents = dependents.set(each, dependents.get(each, _NO_NAMES).append(record.id))
    work = _own(replace(work, dependents=dependents), record)
    unmet = sum(1 for each in needed if each not in work.closed)
    busy = sum(1 for each in work.rivals.get(record.id, _NO_NAMES) if each in work.at_work)
    whole = whole_of(record.id)
    parts = work.parts
    if whole != record.id:
        parts = parts.set(whole, parts.get(whole, _NO_NAMES).append(record.id))
    return replace(work, parts=parts, hindered=work.hindered.set(record.id, unmet + busy + (whole in work.dry)))


def _reintroduce(work: TaskIndex, before: FleetTask, now: FleetTask) -> TaskIndex:
    """Take in that a plan change lets a task wait for others, or change other files."""
    was_at_work = before.id in work.at_work
    work = _at_work(work, before.id, False) if was_at_work else work  # noqa: FBT003 - as it is declared
    less = _hindering(work, before)
    work = _own(_disown(_depend(work, before, now), before), now)
    more = _hindering(work, now)
    work = _hinder(work, (now.id,), more - less) if more != less else work
    return _at_work(work, now.id, True) if was_at_work else work  # noqa: FBT003


def _hindering(work: TaskIndex, record: FleetTask) -> int:
    """Count the open dependencies of a task and its rivals at work."""
    unmet = sum(1 for each in dict.fromkeys(record.depends_on) if each not in work.closed)
    return unmet + sum(1 for each in work.rivals.get(record.id, _NO_NAMES) if each in work.at_work)


def _depend(work: TaskIndex, before: FleetTask, now: FleetTask) -> TaskIndex:
    dependents = work.dependents
    for each in dict.fromkeys(before.depends_on):
        dependents = dependents.set(each, dependents[each].remove(now.id))
    for each in dict.fromkeys(now.depends_on):
        dependents = dependents.set(each, dependents.get(each, _NO_NAMES).append(now.id))
    return replace(work, dependents=dependents)


def _disown(work: TaskIndex, record: FleetTask) -> TaskIndex:
    """Remove the files of a task."""
    rivals, owners, below = work.rivals, work.owners, work.below
    for other in rivals.get(record.id, _NO_NAMES):
        rivals = _without_one(rivals, other, record.id)
    rivals = rivals.discard(record.id)
    for path in record.files:
        owners = _without_one(owners, path, record.id)
        for folder in folders(path):
            below = _without_one(below, folder, record.id)
    return replace(work, rivals=rivals, owners=owners, below=below)


def _without_one(of: PMap[str, PVector[str]], key: str, name: str) -> PMap[str, PVector[str]]:
    left = of[key].remove(name)
    return of.set(key, left) if left else of.remove(key)


def _own(work: TaskIndex, record: FleetTask) -> TaskIndex:
    """Add the files of a task, and find its rivals."""
    rivals, owners, below = work.rivals, work.owners, work.below
    found = dict.fromkeys(other for path in record.files for other in _overlapping(work, path) if other != record.id)
    for other in found:
        rivals = rivals.set(other, rivals.get(other, _NO_NAMES).append(record.id))
    if found:
        rivals = rivals.set(record.id, pvector(found))
    for path in record.files:
        owners = owners.set(path, owners.get(path, _NO_NAMES).append(record.id))
        for folder in folders(path):
            below = below.set(folder, below.get(folder, _NO_NAMES).append(record.id))
    return replace(work, rivals=rivals, owners=owners, below=below)


def _overlapping(work: TaskIndex, path: str) -> Iterator[str]:
    """Yield the tasks that change this path, a folder of it, or something in it."""
    for each in (path, *folders(path)):
        yield from work.owners.get(each, _NO_NAMES)
    yield from work.below.get(path, _NO_NAMES)


def folders(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _offer(work: TaskIndex, name: str, now: Offer | None) -> TaskIndex:
    """Update how a task is offered."""
    before = work.offered.get(name)
    if now == before:
        return work
    free = not work.hindered[name]
    if before is not None:
        ready = _withdrawn(work.ready, before) if free or not before.can_be_hindered else work.ready
        work = replace(work, offered=work.offered.remove(name), ready=ready)
    if now is not None:
        ready = _put(work.ready, now) if free or not now.can_be_hindered else work.ready
        work = replace(work, offered=work.offered.set(name, now), ready=ready)
    return work


def _put(ready: PMap[Requirement, tuple[Place, ...]], of: Offer) -> PMap[Requirement, tuple[Place, ...]]:
    places = ready.get(of.asked, ())
    at = bisect_left(places, of.place)
    return ready.set(of.asked, places[:at] + (of.place,) + places[at:])  # noqa: RUF005 - unpacking copies three times as much


def _withdrawn(ready: PMap[Requirement, tuple[Place, ...]], of: Offer) -> PMap[Requirement, tuple[Place, ...]]:
    places = ready[of.asked]
    at = bisect_left(places, of.place)
    left = places[:at] + places[at + 1 :]
    return ready.set(of.asked, left) if left else ready.remove(of.asked)


def _at_work(work: TaskIndex, name: str, now: bool) -> TaskIndex:  # noqa: FBT001 - the one thing that has changed
    """Update whether a task is at work, which hinders its rivals."""
    at_work = work.at_work.add(name) if now else work.at_work.remove(name)
    return _hinder(replace(work, at_work=at_work), work.rivals.get(name, _NO_NAMES), 1 if now else -1)


def _close(work: TaskIndex, name: str) -> TaskIndex:
    """Note that a task is closed, which hinders its dependents by one less."""
    return _hinder(replace(work, closed=work.closed.add(name)), work.dependents.get(name, _NO_NAMES), -1)


def _hinder(work: TaskIndex, names: Sequence[str], by: int) -> TaskIndex:
    """Change by this much how many things hinder each of these tasks."""
    if not names:
        return work
    hindered, ready = work.hindered, work.ready
    for each in names:
        before = hindered[each]
        hindered = hindered.set(each, before + by)
        offered = work.offered.get(each)
        if offered is not None and offered.can_be_hindered and not (before and before + by):
            ready = _withdrawn(ready, offered) if by > 0 else _put(ready, offered)
    return replace(work, hindered=hindered, ready=ready)


def _without(waiting: tuple[str, ...], ref: str) -> tuple[str, ...]:
    return tuple(each for each in waiting if each != ref) if ref in waiting else waiting


def work_of(board: Aggregate) -> TaskIndex:
    """Return the board's view of its work."""
    work: TaskIndex = board.views["work"]
    return work


def tasks_of(board: Aggregate) -> list[FleetTask]:
    """Return all tasks."""
    return [entity.record for ref, entity in board.entities.items() if ref.startswith("task:")]


def is_lost(record: task.Task) -> bool:
    """Tell whether a task is lost: it will not be done unless an operator asks for it."""
    return task.settled(record) and record.state is not task.State.CLOSED
