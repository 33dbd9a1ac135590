"""Properties of related tasks: parts and wholes, dependencies and dependents."""

from typing import Final

from lifefold.core.fleet.board import budget, fleet_task
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.dispatch.locality import on_board
from lifefold.core.fleet.dispatch.task_index import any_agent_may, is_lost, tasks_of, work_of
from lifefold.core.kernel import Aggregate, Property, Transition, always, always_step, localized
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Retried, Stage
from lifefold.core.policy.access import AccessLevel


def parts_are_like_their_whole(board: Aggregate) -> bool:
    """A part is given out and tried again as its whole would be (E7); it may be split, but half as much."""
    tasks = {each.id: each for each in tasks_of(board)}
    pairs = [(each, tasks[each.parent]) for each in tasks.values() if each.parent in tasks]
    return all(_is_like(part, whole) for part, whole in pairs)


def _is_like(part: fleet_task.FleetTask, whole: fleet_task.FleetTask) -> bool:
    same = all(
        getattr(part, name) == getattr(whole, name) for name in ("role", "priority", "ordinal", "retry", "subtasks_ms")
    )
    as_often = part.epoch > 0 or part.max_retries == whole.max_retries
    return same and as_often and part.most_subtasks == whole.most_subtasks // 2


def no_task_waits_in_vain(board: Aggregate) -> bool:
    """A task waits for parts exactly while one of them is not closed and may be."""
    tasks = {each.id: each for each in tasks_of(board)}
    waiting = [each for each in tasks.values() if each.waits_for_parts and each.state not in _LEFT]
    parts = [[tasks[name] for name in each.parts_of_it() if name in tasks] for each in waiting]
    return all(
        each.state is task.State.WAITING_FOR_SUBTASKS
        and not any(map(is_lost, there))
        and (len(there) < each.parts or any(part.state is not task.State.CLOSED for part in there))
        for each, there in zip(waiting, parts, strict=True)
    )


def goes_on_with_its_parts(board: Aggregate) -> bool:
    """A task whose parts are all closed goes on, also if that took too long (E7, E9)."""
    tasks = {each.id: each for each in tasks_of(board)}
    blocked = [each for each in tasks.values() if each.waits_for_parts and each.state is task.State.BLOCKED]
    parts = [[tasks.get(name) for name in each.parts_of_it()] for each in blocked]
    return not any(all(part is not None and part.state is task.State.CLOSED for part in each) for each in parts)


def parts_are_there(board: Aggregate) -> bool:
    """A task that was split has all its parts."""
    return all(f"task:{name}" in board.entities for each in tasks_of(board) for name in each.parts_of_it())


_LEFT: Final = frozenset({task.State.BLOCKED, task.State.CANCELLED})
"""In these states a task that has parts does not wait for them."""


def is_blocked_by_what_is_lost(board: Aggregate) -> bool:
    """A task is blocked exactly while another task is lost, or while no worker has what it requires (E19)."""
    tasks, work = {each.id: each for each in tasks_of(board)}, work_of(board)
    blocked = [each for each in tasks.values() if each.state is task.State.BLOCKED]
    in_vain = [each for each in blocked if each.blocked_by.startswith(("role:", "level:"))]
    all_budgets = [board.entities[each.blocked_by].record for each in blocked if each.blocked_by in board.entities]
    return (
        all(is_lost(tasks[each.blocked_by]) for each in blocked if each.blocked_by in tasks)
        and all(map(budget.is_spent_for_good, all_budgets))
        and all(
            each.blocked_by in {f"role:{each.role}", f"level:{each.level.word}"}
            and not each.waits_for_parts
            and not any_agent_may(work, each.role, each.level)
            for each in in_vain
        )
    )


def is_tried_again(board: Aggregate) -> bool:
    """What has failed and may be tried again waits for nothing but the end of its rest."""
    failed = [each for each in board.entities.values() if each.state is task.State.FAILED]
    return all(
        each.find(fleet_task.Rested.__name__) is not None
        for each in failed
        if task.retries_left(each.record, Retried())
    )


def roles_are_there(board: Aggregate) -> bool:
    """No task waits for a role or a trust level that no remaining worker has."""
    work = work_of(board)
    asking = {each.asked for each in work.offered.values() if each.asked != ("", AccessLevel.UNTRUSTED)}
    return all(any_agent_may(work, *asked) for asked in asking)


def decides_of_all(board: Aggregate) -> bool:
    """When a plan is decided, so are all its tasks (E43)."""
    plan = board.entities.get("plan")
    decided = plan is not None and plan.state is not plan_approval.State.PROPOSED
    return not decided or not any(each.state is task.State.PLANNED for each in tasks_of(board))


def keeps_finished_work(step: Transition) -> bool:
    """What was agreed to, or put together of parts, is not thrown away because its owner is gone."""
    by_rule = isinstance(step.event, task.Rejected) and step.actor.startswith("rule:")
    return not by_rule or step.before is None or step.before.record.stage is Stage.WORK


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    *localized(
        on_board,
        always("a part has the role, priority and retries of its whole", parts_are_like_their_whole),
        always("a task that waits for parts has one that may still be closed", no_task_waits_in_vain),
        always("a task whose parts are all closed goes on", goes_on_with_its_parts),
        always("a task is blocked exactly while something that it needs is lost", is_blocked_by_what_is_lost),
        always("a failed task with retries waits only for the end of its rest", is_tried_again),
    ),
    always("a task that was split has all its parts", parts_are_there),
    always("no task waits for a role or a trust level that no worker has", roles_are_there),
    always("a decided plan has no undecided task", decides_of_all),
    always_step("approved work survives its owner", keeps_finished_work),
)
