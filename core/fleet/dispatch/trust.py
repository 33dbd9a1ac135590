"""Trust and tasks: how an agent's level limits its tasks, and how closed tasks raise its level (E34, E35).

- A closed task counts as a success of its author, also if another worker merged it. Failures are neutral. Operators
  report violations: the board sees races and failures, and neither is a fault of the agent.
- A demoted agent loses its task if the task requires more trust. It also loses it if the new level requires a review
  before the merge, and the task has none. Finished work is merged all the same (E16).
- A task that requires more trust than any agent has is blocked (``dependencies``). It goes on when an agent reaches the
  level.
"""

from collections.abc import Iterator

from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import CLAIMED, any_agent_may, work_of
from lifefold.core.kernel import Aggregate, Dispatch, Transition, rule
from lifefold.core.lifecycles import task
from lifefold.core.policy.access import succeeded


@rule(on=fleet_task.machine, enters=task.State.CLOSED)
def earn(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Count a closed task as a success of its author, if the author is not gone."""
    author = earned(board, transition)
    if author:
        yield Dispatch(author, worker_slot.Succeeded())


def earned(board: Aggregate, transition: Transition) -> str:
    """Return the worker slot of the agent that has a success by this transition; empty if none has."""
    name: str = transition.after.record.author
    ref = f"worker_slot:{name}"
    is_success = transition.entered is task.State.CLOSED and bool(name)
    return ref if is_success and board.entities[ref].state in worker_slot.PRESENT else ""


def frees(board: Aggregate, transition: Transition) -> bool:
    """Tell whether this success raises an agent to a level that lets a blocked task go on."""
    author = earned(board, transition)
    if not author or not work_of(board).distrusted:
        return False
    slot: worker_slot.WorkerSlot = board.record(author)
    after = None if slot.trust is None or slot.leaves else succeeded(slot.trust).level
    wanted = work_of(board).distrusted.values()
    return after is not None and any(level <= after and slot.may_take(role) for role, level in wanted)


@rule(on=worker_slot.machine, event=(worker_slot.Succeeded, worker_slot.Judged))
def trust_again(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Let tasks go on that were blocked for want of trust, when an agent has reached their level."""
    if transition.after.record.level <= transition.was.level:
        return
    work = work_of(board)
    for name, asked in sorted(work.distrusted.items()):
        if any_agent_may(work, *asked):
            yield Dispatch(f"task:{name}", fleet_task.DependencyBack(board.record(f"task:{name}").blocked_by))


@rule(on=worker_slot.machine, event=worker_slot.Judged)
def withdraw(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Take the task of a demoted agent, if the agent may not have it at its new level."""
    now: worker_slot.WorkerSlot = transition.after.record
    if now.level >= transition.was.level or not now.task:
        return
    record: FleetTask = board.record(f"task:{now.task}")
    is_its = transition.entity == f"worker_slot:{record.owner}" and record.state in WITHDRAWABLE
    if is_its and not is_allowed(record, now):
        yield Dispatch(
            f"task:{record.id}", task.Released(record.epoch, f"{record.owner} is only {now.level.word} any more")
        )


WITHDRAWABLE = CLAIMED | {task.State.ORPHANED}
"""In these states a task can be taken from its owner; done work cannot (E16).

The work of a dead session is not known to be done.
"""


def is_allowed(record: FleetTask, owner: worker_slot.WorkerSlot) -> bool:
    """Tell whether a worker may have a task as it is: by its level, and by the review of its work."""
    return owner.level >= record.level and (record.needs_approval or owner.level >= record.merges)
