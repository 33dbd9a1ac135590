"""Operator messages for a task: each is in the prompts of its claims until a session with it completes (D14).

The first message of an operator for a task creates the *mailbox of the task*, an entity of the board. So a fleet
without such messages has none. A claim takes all messages of its task, and they are part of the prompt of the task. A
message for a task at work is passed on to its owner, whose session an urgent one interrupts. It stays in the mailbox
all the same: if the claim fails, the next one has it. The mailbox is closed when the task is over.
"""

from collections.abc import Iterable, Iterator
from typing import Final, cast

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.worker import mailbox
from lifefold.core.kernel import (
    Aggregate,
    Created,
    Dispatch,
    PersistentMap,
    Property,
    Transition,
    always,
    localized,
    replace,
    rule,
)
from lifefold.core.lifecycles import task
from lifefold.effects import Tell

MAILBOX: Final = "mailbox:"
"""The prefix of the mailboxes of tasks."""

_TASK: Final = "task:"

OVER: Final = frozenset({task.State.CLOSED, task.State.CANCELLED})
"""In these states a task has no later claim."""

AT_WORK: Final = frozenset({task.State.CLAIMED, task.State.IN_PROGRESS})
"""In these states the owner of a task has a session at it, or will have one."""


def messages_of(board: Aggregate, name: str) -> tuple[str, ...]:
    """Return the undelivered messages for a task."""
    found = board.entities.get(f"{MAILBOX}{name}")
    return () if found is None else found.record.messages


# The rules


@rule(on=fleet_task.machine, enters=task.State.CLAIMED)
def take_messages(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Record that the prompt of a claim has all messages for its task."""
    name: str = transition.after.record.id
    if messages_of(board, name):
        yield Dispatch(f"{MAILBOX}{name}", mailbox.MessagesTaken())


@rule(on=mailbox.machine, event=mailbox.OperatorMessageArrived)
def pass_on_message(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """Pass a message for a task at work on to its owner. The text names the task: the owner may have left it."""
    record = _task_of(board, transition.entity)
    if record is not None and record.state in AT_WORK:
        arrived = cast("mailbox.OperatorMessageArrived", transition.event)
        text = f"About {record.id}: {arrived.text}"
        yield Tell(f"worker/{record.owner}", "mailbox", mailbox.OperatorMessageArrived(text, urgent=arrived.urgent))
        yield Dispatch(transition.entity, mailbox.MessagesTaken())


@rule(on=fleet_task.machine, enters=task.State.DONE)
def deliver_messages(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Remove the messages that a completed session had."""
    ref = f"{MAILBOX}{transition.after.record.id}"
    if ref in board.entities and board.record(ref).taken:
        yield Dispatch(ref, mailbox.MessagesDelivered())


@rule(on=fleet_task.machine, enters=(task.State.CLOSED, task.State.CANCELLED))
def close_task_mailbox(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Close the mailbox of a task that is over, so that senders get a refusal."""
    ref = f"{MAILBOX}{transition.after.record.id}"
    if ref in board.entities:
        yield Dispatch(ref, mailbox.MailboxClosed())


@rule(on=mailbox.machine, event=Created)
def close_late_mailbox(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Close a mailbox that was created for a task that is over, or that does not exist."""
    record = _task_of(board, transition.entity)
    if record is None or record.state in OVER:
        yield Dispatch(transition.entity, mailbox.MailboxClosed())


def _task_of(board: Aggregate, ref: str) -> FleetTask | None:
    found = board.entities.get(f"{_TASK}{ref.removeprefix(MAILBOX)}")
    return None if found is None else found.record


# The properties


def near_mailboxes(of: Aggregate, _name: str, transitions: Iterable[Transition]) -> Aggregate:
    """Return the part of the board with the changed tasks and mailboxes, each with the other one."""
    names = {each.entity.partition(":")[2] for each in transitions if each.machine in _NEAR}
    refs = [f"{kind}{name}" for name in sorted(names) for kind in (_TASK, MAILBOX)]
    return replace(of, entities=PersistentMap({ref: of.entities[ref] for ref in refs if ref in of.entities}))


_NEAR: Final = frozenset({fleet_task.machine.name, mailbox.machine.name})


def _mailboxes(board: Aggregate) -> Iterator[tuple[FleetTask | None, mailbox.Mailbox]]:
    for ref, each in board.entities.items():
        if ref.startswith(MAILBOX):
            yield _task_of(board, ref), each.record


def has_all_messages(board: Aggregate) -> bool:
    """The owner of a task at work was given every message for the task."""
    return all(
        box.taken == len(box.messages) for of, box in _mailboxes(board) if of is not None and of.state in AT_WORK
    )


def delivers_when_done(board: Aggregate) -> bool:
    """A completed session had the messages that were taken."""
    return not any(box.taken for of, box in _mailboxes(board) if of is not None and of.state is task.State.DONE)


def is_closed_with_its_task(board: Aggregate) -> bool:
    """The mailbox of a task is closed exactly if the task is over, so that senders get a refusal."""
    return all((of is None or of.state in OVER) is (box.state is mailbox.State.CLOSED) for of, box in _mailboxes(board))


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = localized(
    near_mailboxes,
    always("the owner of a task at work has every message for it", has_all_messages),
    always("finished work has had the messages of its prompt", delivers_when_done),
    always("the mailbox of a task is closed when the task is over", is_closed_with_its_task),
)
