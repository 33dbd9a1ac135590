"""Operator messages for tasks on the command line: their events, and the words about whom they reach."""

from collections.abc import Iterator, Mapping
from typing import Final

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_messages import AT_WORK, MAILBOX, OVER
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import mailbox, steering
from lifefold.core.kernel import Aggregate, Created, replace
from lifefold.core.lifecycles import task
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain import status
from lifefold.interpreters.explain.task_words import is_in


def for_task(
    there: Mapping[str, Aggregate], name: str, event: mailbox.OperatorMessageArrived
) -> Iterator[Said | Refused]:
    """Yield the events of a message for a task; the first message creates the mailbox of the task."""
    of, ref = there[board.NAME], f"{MAILBOX}{name}"
    record: FleetTask = of.record(f"task:{name}")
    if record.state in OVER:
        yield Refused(name, f"{REFUSED}it {is_in(record.state)}, and no prompt will have the message")
        return
    if ref in of.entities:
        if not mailbox.has_capacity(of.record(ref), event):
            yield Refused(name, f"{REFUSED}{mailbox.FULL}")
            return
    else:
        yield Said(f"mailbox of {name}", board.NAME, ref, Created(mailbox.Mailbox()), prepares=True)
    owner = there.get(f"{worker.KIND}/{record.owner}")
    steers = owner is not None and steering.reaches(owner, urgent=event.urgent)
    yield Said(name, board.NAME, ref, event, f"accepted; {_reaches(record, steers=steers)}")


def _reaches(record: FleetTask, *, steers: bool) -> str:
    """Return which prompt has a message for a task."""
    if record.state in AT_WORK and steers:
        return f"{record.owner} has the task, and its running session gets the message"
    if record.state in AT_WORK:
        return f"{record.owner} has the task, and its next prompt has the message"
    if record.state in _WORKED:
        return f"its work is over for now (it {is_in(record.state)}), and only a later try has the message"
    return f"no agent works at it (it {is_in(record.state)}), and the prompt of its next claim has the message"


_WORKED: Final = frozenset(
    {task.State.DONE, task.State.PENDING_APPROVAL, task.State.ORPHANED, task.State.WAITING_FOR_SUBTASKS}
)
"""In these states a task has been worked at, and its next step is no session."""


def naming_task(there: Mapping[str, Aggregate], said: Said | Refused, *, urgent: bool) -> Said | Refused:
    """Return a message for an agent that names the task and the session which it will reach, if there are any."""
    of = there.get(said.to) if isinstance(said, Said) else None
    if not isinstance(said, Said) or of is None or of.kind != worker.KIND:
        return said
    name = status.assigned_task(of.record("assignment"))
    done = "accepted; its running session gets it" if steering.reaches(of, urgent=urgent) else said.done
    return replace(said, done=f"{done}, at the task {name}" if name else done)
