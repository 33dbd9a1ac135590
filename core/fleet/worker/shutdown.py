"""The end of a worker: it has drained or stopped for good, and reports to the board that it is gone.

A drain waits for work that the worker itself has begun, until it is merged or given back. A requested task, and a task
whose worktree is still being made, have not begun and are given back. Work that waits for an operator, for parts or for
another worker holds no drain up.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, restarts, supervisor, usage, usage_meter
from lifefold.core.kernel import (
    Aggregate,
    Dispatch,
    Phase,
    Projection,
    Property,
    SystemState,
    Transition,
    always,
    projected,
)
from lifefold.core.lifecycles import session
from lifefold.effects import Tell


def drained(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Stop a draining worker when it holds no work that it has begun."""
    drains = worker.record("desired_state").state is desired_state.State.DRAIN
    if drains and not has_begun(worker):
        yield Dispatch("desired_state", desired_state.Drained())


def has_begun(worker: Aggregate) -> bool:
    """Tell whether the worker holds work that it has begun."""
    return worker.record("assignment").state not in NOT_BEGUN


NOT_BEGUN: Final = frozenset(assignment.State) - {assignment.State.WORKING, *assignment.ON_ITS_WAY}
"""In these states of its assignment a worker has begun nothing."""


def close_mailbox(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Close the mailbox of an agent that has stopped for good, so that senders get a refusal (D14)."""
    if is_gone(worker):
        yield Dispatch("mailbox", mailbox.MailboxClosed())


def step_back(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch | Tell]:
    """Return the reservation of a worker that rests without a task: others may use it."""
    if usage_meter.REF in worker.entities and _rests(worker):
        yield Tell("board", f"worker_slot:{worker.key}", worker_slot.WorkLeft(*usage.spent(worker)))
        yield Dispatch(usage_meter.REF, usage_meter.UsageReported())


def _rests(worker: Aggregate) -> bool:
    idle = worker.record("assignment").state is assignment.State.IDLE and not usage.is_counting(worker)
    return idle and worker.record("desired_state").state in desired_state.RESTS and not is_gone(worker)


def leave(worker: Aggregate, _transition: Transition) -> Iterator[Tell]:
    """Report to the board that the worker is gone, when it has stopped for good and holds no task."""
    idle = worker.record("assignment").state is assignment.State.IDLE
    if is_gone(worker) and idle:
        reason = worker.record("desired_state").reason or _quarantined(worker) or "its session has stopped"
        yield Tell("board", f"worker_slot:{worker.key}", worker_slot.WorkerGone(reason, *usage.spent(worker)))


def _quarantined(worker: Aggregate) -> str:
    found = worker.entities.get(supervisor.REF)
    why = "" if found is None else found.record.why_quarantined
    return f"quarantined: {why}" if why else ""


def is_gone(worker: Aggregate) -> bool:
    """Tell whether the agent has stopped, for good."""
    stopped = worker.record("session").state is session.State.STOPPED
    return stopped and not restarts.comes_back(worker)


def settled(worker: Aggregate) -> bool:
    """The agent has stopped and nothing of it is left: no process, no verification, no merge."""
    return is_gone(worker) and not any(entity.running for entity in worker.entities.values())


def quiet(worker: Aggregate) -> bool:
    """Tell whether no session of the agent lives or will live while it holds, and no work is being merged.

    A worktree may still be in the making, for a session or a task: the next runner makes it again.
    """
    at_work = worker.record("session").state in {*session.SESSION_LIVES, session.State.SESSION_COMPLETE}
    on_its_way = worker.record("assignment").state in assignment.ON_ITS_WAY
    return not at_work and not on_its_way and not is_ending(worker)


def is_ending(worker: Aggregate) -> bool:
    """Tell whether something of the worker is being ended."""
    return any(part.phase is Phase.ENDING for entity in worker.entities.values() for part in entity.running)


def stopped_accepts_no_messages(worker: Aggregate) -> bool:
    """The mailbox is closed exactly when the agent has stopped for good, so that senders get a refusal (D14)."""
    return is_gone(worker) is (worker.record("mailbox").state is mailbox.State.CLOSED)


def quarantined_has_nothing(worker: Aggregate) -> bool:
    """A quarantined agent holds no task."""
    return not _quarantined(worker) or (is_gone(worker) and assignment.rests(worker.record("assignment")))


def drains_what_it_has(worker: Aggregate) -> bool:
    """A draining worker holds work that it has begun."""
    return worker.record("desired_state").state is not desired_state.State.DRAIN or has_begun(worker)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("messages are accepted exactly while an agent may read them", stopped_accepts_no_messages),
    always("a draining agent finishes its work and begins nothing", drains_what_it_has),
    always("a quarantined agent holds no task", quarantined_has_nothing),
)


class Shares(msgspec.Struct, frozen=True):
    """The projection of a board: the holders of reservations; of a worker: whether it rests without a task."""

    holders: frozenset[str] = frozenset()
    rests: bool = False


def shares(of: Aggregate) -> Shares:
    """Return the projection of a board or a worker about reservations."""
    if of.kind != "board":
        return Shares(rests=usage_meter.REF in of.entities and _rests(of))
    all_budgets = (each.record for ref, each in of.entities.items() if ref.startswith("budget:"))
    return Shares(frozenset(name for each in all_budgets for name in each.holders))


def every_share_has_a_claim(fleet: Projection) -> bool:
    """With no message in flight, a worker that rests without a task holds no reservation."""
    seen = fleet.aggregates.items()
    held = {holder for _, each in seen if isinstance(each, Shares) for holder in each.holders}
    rest = {name.partition("/")[2] for name, each in seen if isinstance(each, Shares) and each.rests}
    return bool(fleet.under_way) or not held & rest


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    shares, always("with no message in flight, no resting worker keeps a reservation", every_share_has_a_claim)
)
