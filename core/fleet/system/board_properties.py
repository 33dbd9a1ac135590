"""Properties of the whole board: who works at what, requirements, and the agreement of the task index."""

from collections import Counter
from typing import Final

from lifefold.core.fleet.board import adaptive_timeout, budget, fleet_task, worker_slot
from lifefold.core.fleet.dispatch import (
    aborts,
    accounts,
    budgets,
    claims,
    notifications,
    preemption,
    task_messages,
    trust,
)
from lifefold.core.fleet.dispatch.locality import on_board, whole_board
from lifefold.core.fleet.dispatch.task_index import (
    Place,
    Requirement,
    TaskIndex,
    abilities,
    is_at_work,
    is_distrusting,
    offer,
    tasks_of,
    whole_of,
    work_of,
)
from lifefold.core.fleet.system.task_properties import PROPERTIES as OF_TASKS
from lifefold.core.kernel import Aggregate, Entity, Property, Transition, always, always_step, localized, sometimes
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Stage


def owners_have_their_tasks(board: Aggregate) -> bool:
    """The owner of a task is present, and its slot shows this task and no other (E12, E21)."""
    owned = [each for each in tasks_of(board) if each.state in claims.KEPT and each.owner]
    worker_slots = [board.entities.get(f"worker_slot:{each.owner}") for each in owned]
    at_them = all(
        slot is not None and slot.state is worker_slot.State.WORKING and slot.record.task == each.id
        for each, slot in zip(owned, worker_slots, strict=True)
    )
    return at_them and len({each.owner for each in owned}) == len(owned)


def dependencies_are_closed(board: Aggregate) -> bool:
    """The dependencies of a task that is worked at are merged."""
    tasks = tasks_of(board)
    needed = {name for each in tasks if each.state in claims.KEPT for name in each.depends_on}
    return all(each.state is task.State.CLOSED for each in tasks if each.id in needed)


def overlap(one: fleet_task.FleetTask, other: fleet_task.FleetTask) -> bool:
    """Tell whether two tasks change the same file, or one of them something in a folder that the other changes."""
    return any(
        a == b or f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/") for a in one.files for b in other.files
    )


def rivals_take_turns(board: Aggregate) -> bool:
    """No two tasks that change the same files are worked at together (E21)."""
    busy = [each for each in tasks_of(board) if each.files and is_at_work(each)]
    return not any(overlap(one, other) for place, one in enumerate(busy) for other in busy[:place])


def roles_are_kept(board: Aggregate) -> bool:
    """The owner of a task has the role that the task requires."""
    asking = [each for each in tasks_of(board) if each.role and is_at_work(each)]
    worker_slots = [board.entities.get(f"worker_slot:{each.owner}") for each in asking]
    return all(slot is None or slot.record.may_take(each.role) for each, slot in zip(asking, worker_slots, strict=True))


def trust_is_kept(board: Aggregate) -> bool:
    """The owner has the trust that the task requires, and untrusted work is reviewed (E34)."""
    gated = [each for each in tasks_of(board) if (each.level or each.merges) and each.state in trust.WITHDRAWABLE]
    worker_slots = [board.entities.get(f"worker_slot:{each.owner}") for each in gated]
    return all(
        slot is None or trust.is_allowed(each, slot.record) for each, slot in zip(gated, worker_slots, strict=True)
    )


def successes_are_counted(board: Aggregate) -> bool:
    """A worker that is present has one success for each of its closed tasks, and no other (E34)."""
    closed = Counter(each.author for each in tasks_of(board) if each.author and each.state is task.State.CLOSED)
    there = [
        each
        for ref, each in board.entities.items()
        if ref.startswith("worker_slot:") and each.state in worker_slot.PRESENT
    ]
    return all(
        each.record.trust is None or each.record.trust.successes == closed[each.ref.removeprefix("worker_slot:")]
        for each in there
    )


def wholes_wait_for_their_parts(board: Aggregate) -> bool:
    """A task that was split is not done before all its parts are closed (E7)."""
    tasks = {each.id: each for each in tasks_of(board)}
    gathered = [each for each in tasks.values() if each.stage is Stage.VERIFY]
    parts = [tasks[name] for each in gathered for name in each.parts_of_it() if name in tasks]
    return all(each.state is task.State.CLOSED for each in parts)


def parts_go_with_their_whole(board: Aggregate) -> bool:
    """No worker works at a part of a cancelled task (E36)."""
    tasks = {each.id: each for each in tasks_of(board)}
    return not any(
        each.parent in tasks and tasks[each.parent].state is task.State.CANCELLED
        for each in tasks.values()
        if each.state in {task.State.OPEN, task.State.CLAIMED, task.State.IN_PROGRESS}
    )


def no_agent_waits_beside_work(board: Aggregate) -> bool:
    """While a worker waits, no task is ready that it may take."""
    return claims.next_pair(board) is None


def merges_after_approval(step: Transition) -> bool:
    """Work that needs approval is closed only after the approval (E2)."""
    if step.machine != fleet_task.machine.name or step.entered is not task.State.CLOSED or step.before is None:
        return True
    return not step.after.record.needs_approval or step.before.record.stage is Stage.MERGE


def view_agrees(board: Aggregate) -> bool:
    """The task index agrees with the tasks and worker slots."""
    work, tasks = work_of(board), tasks_of(board)
    worker_slots = [entity for ref, entity in board.entities.items() if ref.startswith("worker_slot:")]
    return (
        _tasks_agree(work, tasks)
        and sorted(work.waiting) == sorted(each.ref for each in worker_slots if _waits(each))
        and not work.changing
        and work.unsettled == sum(not task.settled(each) for each in tasks)
        and work.present == sum(each.state is not worker_slot.State.GONE for each in worker_slots)
        and set(work.dry) == _dry(board)
        and {name: sorted(found) for name, found in work.parts.items()} == _parts(tasks)
        and {asked: count for asked, count in work.able.items() if count} == _able(worker_slots)
        and dict(work.distrusted) == {each.id: (each.role, each.level) for each in tasks if is_distrusting(each)}
        and preemption.view_agrees(board)
    )


def _waits(slot: Entity[worker_slot.WorkerSlot]) -> bool:
    return slot.state is worker_slot.State.WAITING and not slot.record.leaves


def _dry(board: Aggregate) -> set[str]:
    """Return the tasks whose budget has no share left."""
    all_budgets = ((ref.partition("budget:task/")[2], entity) for ref, entity in board.entities.items())
    return {name for name, entity in all_budgets if name and entity.state not in budget.ADMITS}


def _parts(tasks: list[fleet_task.FleetTask]) -> dict[str, list[str]]:
    """Return by task all its parts and theirs, in order."""
    found: dict[str, list[str]] = {}
    for name in sorted(each.id for each in tasks):
        if (whole := whole_of(name)) != name:
            found.setdefault(whole, []).append(name)
    return found


def _able(worker_slots: list[Entity[worker_slot.WorkerSlot]]) -> dict[Requirement, int]:
    """Return how many present workers have each role, or none, at each level."""
    return Counter(asked for each in worker_slots for asked in abilities(each.record))


def _tasks_agree(work: TaskIndex, tasks: list[fleet_task.FleetTask]) -> bool:
    """Tell whether the tasks that are offered, closed and ready, and their dependencies, agree with the index."""
    closed = {each.id for each in tasks if each.state is task.State.CLOSED}
    at_work = {each.id for each in tasks if is_at_work(each)}
    offers = {each.id: found for each in tasks if (found := offer(each)) is not None}
    filed = [each for each in tasks if each.files]
    rivals = {
        each.id: {other.id for other in filed if other is not each and overlap(each, other)}
        if each.files
        else set[str]()
        for each in tasks
    }
    hindered = {
        each.id: len(set(each.depends_on) - closed) + len(rivals[each.id] & at_work) + (whole_of(each.id) in work.dry)
        for each in tasks
    }
    free = sorted(each.place for name, each in offers.items() if not (each.can_be_hindered and hindered[name]))
    ready: dict[Requirement, tuple[Place, ...]] = {}
    for place in free:
        asked = offers[place[2]].asked
        ready[asked] = (*ready.get(asked, ()), place)
    awaited = sorted((name, each.id) for each in tasks for name in dict.fromkeys(each.depends_on))
    return (
        (set(work.closed), set(work.at_work), dict(work.offered), dict(work.hindered), dict(work.ready))
        == (closed, at_work, offers, hindered, ready)
        and {name: set(found) for name, found in work.rivals.items()} == {n: r for n, r in rivals.items() if r}
        and sorted((name, each) for name, waiting in work.dependents.items() for each in waiting) == awaited
    )


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    *localized(
        on_board,
        always("no task has two owners, and every owner is at its task", owners_have_their_tasks),
        always("no task is worked at before its dependencies are merged", dependencies_are_closed),
        always("tasks that change the same files take turns", rivals_take_turns),
        always("a task's owner has the role that the task requires", roles_are_kept),
        always("a task's owner has the trust that the task requires", trust_is_kept),
        always("a split task is verified when all its parts are closed", wholes_wait_for_their_parts),
        always("the parts of a cancelled task are not worked at", parts_go_with_their_whole),
    ),
    always_step("work that needs approval is merged only after it", merges_after_approval),
    always_step(
        "a task does not fail because its owner is gone",
        lambda step: not step.actor.startswith("rule:"),
        on=task.Failed,
    ),
    *OF_TASKS,
    *budgets.PROPERTIES,
    *accounts.PROPERTIES,
    *preemption.PROPERTIES,
    *aborts.PROPERTIES,
    *adaptive_timeout.PROPERTIES,
    *task_messages.PROPERTIES,
    *notifications.PROPERTIES,
    *localized(whole_board, always("no worker waits beside a ready task that it may take", no_agent_waits_beside_work)),
    always("a closed task counts as a success of its author", successes_are_counted),
    always("the task index agrees with tasks and worker slots", view_agrees),
    sometimes("every task is closed", lambda b: all(each.state is task.State.CLOSED for each in tasks_of(b))),
    sometimes("every worker is gone", lambda b: work_of(b).present == 0),
)
