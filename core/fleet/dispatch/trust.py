"""What an agent's trust means for the tasks of a fleet that gates anything, and they for its trust (E34, E35).

- A task that is closed is a success of whoever has done it, not of whoever has merged it for him. A failure is neutral,
  and violations are found by people: what the board sees of an agent is races and failures, and neither is a fault.
- Whoever is demoted loses the task that it is at, if it takes more trust, or more than would let its work be merged
  unseen. What is done already is brought home as it was begun (E16).
- What takes more trust than anybody has is blocked (``dependencies``), and goes on when somebody has come to it.
"""

from collections.abc import Iterator

from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import CLAIMED, somebody_may, work_of
from lifefold.core.kernel import Aggregate, Dispatch, Transition, rule
from lifefold.core.lifecycles import task
from lifefold.core.policy.access import succeeded


@rule(on=fleet_task.machine, enters=task.State.CLOSED)
def earn(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Whoever has done what is closed now has a success, if it is still there."""
    author = earned(board, transition)
    if author:
        yield Dispatch(author, worker_slot.Succeeded())


def earned(board: Aggregate, transition: Transition) -> str:
    """Return the worker slot of whoever has a success by this; empty if nobody has."""
    name: str = transition.after.record.author
    ref = f"worker_slot:{name}"
    is_success = transition.entered is task.State.CLOSED and bool(name)
    return ref if is_success and board.entities[ref].state in worker_slot.PRESENT else ""


def frees(board: Aggregate, transition: Transition) -> bool:
    """Tell whether somebody comes to a level by this success that lets a task go on."""
    author = earned(board, transition)
    if not author or not work_of(board).distrusted:
        return False
    sat: worker_slot.WorkerSlot = board.record(author)
    after = None if sat.trust is None or sat.leaves else succeeded(sat.trust).level
    wanted = work_of(board).distrusted.values()
    return after is not None and any(level <= after and sat.may_take(role) for role, level in wanted)


@rule(on=worker_slot.machine, event=(worker_slot.Succeeded, worker_slot.Judged))
def trust_again(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What was blocked because nobody was trusted enough goes on when somebody is."""
    if transition.after.record.level <= transition.was.level:
        return
    work = work_of(board)
    for name, asked in sorted(work.distrusted.items()):
        if somebody_may(work, *asked):
            yield Dispatch(f"task:{name}", fleet_task.DependencyBack(board.record(f"task:{name}").lacks))


@rule(on=worker_slot.machine, event=worker_slot.Judged)
def withdraw(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Whoever is demoted loses the task that it is at, if it would not be given it so any more."""
    now: worker_slot.WorkerSlot = transition.after.record
    if now.level >= transition.was.level or not now.task:
        return
    record: FleetTask = board.record(f"task:{now.task}")
    is_its = transition.entity == f"worker_slot:{record.owner}" and record.state in IN_HAND
    if is_its and not is_allowed(record, now):
        yield Dispatch(
            f"task:{record.id}", task.Released(record.epoch, f"{record.owner} is only {now.level.word} any more")
        )


IN_HAND = CLAIMED | {task.State.ORPHANED}
"""While these hold, a task can be taken from its owner; what is done cannot (E16).

What a dead session has left is not known to be done.
"""


def is_allowed(record: FleetTask, owner: worker_slot.WorkerSlot) -> bool:
    """Tell whether a worker may be at a task as it is: at all, and unseen by a person if he is not asked."""
    return owner.level >= record.level and (record.asks or owner.level >= record.merges)
