"""The operator messages of tasks that are over: no prompt will have them, so they are counted and shown."""

from collections.abc import Iterator, Mapping

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_messages import MAILBOX, OVER, messages_of
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.explain.why.phrases import count


def unread(aggregates: Mapping[str, Aggregate]) -> dict[str, int]:
    """Return the number of undelivered messages of each task that is over; without tasks that have none."""
    of = aggregates.get(board.NAME)
    names = [ref.removeprefix(MAILBOX) for ref in sorted(of.entities) if ref.startswith(MAILBOX)] if of else []
    return {
        name: number
        for name in names
        if of is not None and (number := len(messages_of(of, name))) and _is_over(of, name)
    }


def sentences(aggregates: Mapping[str, Aggregate], task: str = "") -> Iterator[str]:
    """Yield a sentence for each task that is over with undelivered messages; with ``task`` for this one only."""
    for name, number in unread(aggregates).items():
        if task in {"", name}:
            state = aggregates[board.NAME].record(f"task:{name}").state
            which = "it" if number == 1 else "them"
            yield f"{name}: {count(number, 'message')} undelivered: it {is_in(state)}, and no prompt will have {which}"


def _is_over(of: Aggregate, name: str) -> bool:
    ref = f"task:{name}"
    if ref not in of.entities:
        return False
    record: FleetTask = of.record(ref)
    return record.state in OVER
