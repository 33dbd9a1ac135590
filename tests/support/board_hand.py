"""A board driven by hand: tasks and worker slots to begin with, and what workers and people say to it."""

from typing import Any

from aggregate_hand import Hand
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Event, Record
from lifefold.core.lifecycles import task

Seats = tuple[str, ...] | dict[str, tuple[str, ...]]
"""The workers of a board, and the roles that they have if they have any."""


def opened(*tasks: fleet_task.FleetTask, worker_slots: Seats = ("ann", "bob"), **more: Record) -> Hand:
    """Return a board with these tasks and worker slots, all away."""
    roles = worker_slots if isinstance(worker_slots, dict) else dict.fromkeys(worker_slots, ())
    records: dict[str, Record] = {f"task:{each.id}": each for each in tasks}
    return Hand(
        "board",
        records | {f"worker_slot:{name}": worker_slot.WorkerSlot(roles=have) for name, have in roles.items()} | more,
    )


def make(name: str, *needs: str, max_retries: int = 0, **fields: Any) -> fleet_task.FleetTask:
    """Return an open task."""
    begun: dict[str, Any] = {"state": task.State.OPEN, "prompt": f"do {name}", "limit": max_retries}
    return fleet_task.FleetTask(id=name, depends_on=needs, max_retries=max_retries, **(begun | fields))


def ask(of: Hand, *names: str) -> Hand:
    """Let workers ask for work, one after another; without a name, ann."""
    for name in names or ("ann",):
        of.hear(f"worker/{name}", f"worker_slot:{name}", worker_slot.WorkWanted())
    return of


def say(of: Hand, name: str, *events: type[task.OwnerReport], **fields: Any) -> Hand:
    """Let the owner of a task report, under its claim."""
    for event in events:
        record = of.record(f"task:{name}")
        of.hear(f"worker/{record.owner}", f"task:{name}", event(record.epoch, **fields))
    return of


def finish(of: Hand, name: str) -> Hand:
    """Let the owner of a task say that the work is done."""
    return say(of, name, task.Completed)


def close(of: Hand, name: str) -> Hand:
    """Let the owner of a task bring it home."""
    if of.state(f"task:{name}") != "DONE":
        finish(of, name)
    return say(of, name, task.Verified, commit="c0ffee")


def fail(of: Hand, name: str, reason: str = "broken") -> Hand:
    """Let the owner of a task fail."""
    return say(of, name, task.Failed, reason=reason)


def park(of: Hand, name: str) -> Hand:
    """Let the owner of a task put what is verified where a person's word is waited for."""
    return say(of, name, task.Completed, fleet_task.Parked)


def split(of: Hand, name: str, parts: int = 2, **fields: Any) -> Hand:
    """Split a task, as its owner's command does: in a person's name, under the number of the claim."""
    epoch = of.record(f"task:{name}").epoch
    wanted = tuple(fleet_task.Subtask(f"part {number}", **fields) for number in range(1, parts + 1))
    return of.give(f"task:{name}", fleet_task.Split(epoch, wanted))


def go(of: Hand, name: str, reason: str = "") -> Hand:
    """Let a worker go for good."""
    return of.hear(f"worker/{name}", f"worker_slot:{name}", worker_slot.WorkerGone(reason))


def rest(of: Hand, name: str) -> Hand:
    """Let the time pass that a failed task rests."""
    return of.elapse(f"task:{name}", "Rested")


def states(of: Hand, *names: str) -> list[str]:
    """Return the states of tasks."""
    return [of.state(f"task:{name}") for name in names]


def assigned(of: Hand) -> list[tuple[str, str]]:
    """Return what the last reaction gave to whom."""
    return [
        (to, event.brief.task) for to, entity, event in of.told()
        if entity == "assignment" and isinstance(event, assignment.Assigned)
    ]  # fmt: skip


def brief(of: Hand) -> task.Brief:
    """Return the brief of the only task that the last reaction has assigned."""
    (found,) = [event.brief for _, _, event in of.told() if isinstance(event, assignment.Assigned)]
    return found


def recalled(of: Hand) -> list[tuple[str, Event]]:
    """Return who was told by the last reaction that the claim is over."""
    return [(to, event) for to, _, event in of.told() if isinstance(event, assignment.Recalled)]


def happened(of: Hand, name: str) -> list[str]:
    """Return what has happened to a task in the last reaction, by the names of the events."""
    return [type(step.event).__name__ for step in of.reaction.transitions if step.entity == f"task:{name}"]
