"""A fleet before it runs: who works, on what, within which limits; and the events that bring it to life."""

from collections.abc import Iterator, Mapping

import msgspec

from lifefold.core import session, task
from lifefold.core.fleet import assignment, board, intent, mailbox, seat, worker
from lifefold.core.kernel import Envelope, Opened, Record


class AgentPlan(msgspec.Struct, frozen=True):
    """One agent: its name and the limits of its sessions."""

    name: str
    limits: session.Limits = session.Limits()
    verify_timeout_ms: int = 600_000


class TaskPlan(msgspec.Struct, frozen=True):
    """One task. ``verify`` holds the commands that must agree before it counts as done."""

    id: str
    prompt: str
    verify: tuple[tuple[str, ...], ...] = ()
    depends_on: tuple[str, ...] = ()
    priority: int = 2
    max_retries: int = 3


class Plan(msgspec.Struct, frozen=True):
    """A fleet's agents and tasks, in order."""

    name: str
    agents: tuple[AgentPlan, ...]
    tasks: tuple[TaskPlan, ...]


def opening(plan: Plan, at_ms: int) -> Iterator[tuple[str, Envelope]]:
    """Yield the inputs that create the fleet, each with its aggregate: the board first, then the workers."""
    tasks = {f"task:{each.id}": _task(each, ordinal) for ordinal, each in enumerate(plan.tasks)}
    seats = {f"seat:{agent.name}": seat.Seat() for agent in plan.agents}
    yield _opened(board.NAME, tasks | seats, at_ms)
    for agent in plan.agents:
        records = {
            "intent": intent.Intent(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(verify_timeout_ms=agent.verify_timeout_ms),
            "session": session.Session(name=agent.name, limits=agent.limits),
        }
        yield _opened(f"{worker.KIND}/{agent.name}", records, at_ms)


def _task(plan: TaskPlan, ordinal: int) -> Record:
    return task.Task(
        state=task.State.OPEN,
        id=plan.id,
        prompt=plan.prompt,
        verify=plan.verify,
        depends_on=plan.depends_on,
        priority=plan.priority,
        ordinal=ordinal,
        max_retries=plan.max_retries,
    )


def _opened(aggregate: str, records: Mapping[str, Record], at_ms: int) -> tuple[str, Envelope]:
    return aggregate, Envelope("", Opened(dict(records)), at_ms, "plan", key="opened")
