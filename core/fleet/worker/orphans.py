"""Orphans: tasks whose session died while it worked at them. The rules of the worker, and their properties.

A session that has died (it crashed, was killed, took too long, or hung) has reported nothing about its work. Each task
says what that means for it (``OnDeath``):

- FAIL: it has failed, and is retried like after any failure. It is no orphan.
- REQUEUE: it is an orphan and given back at once. That ends when its agents have stopped by their errors.
- VERIFY: it is an orphan and stays with its worker, which inspects the work of the session. Inspection begins when no
  process of the session is left. Without a difference to the start of the claim there is nothing to verify (E40); the
  same holds for a task without commands. Work that differs and passes is done like any other work. Otherwise the task
  has failed, by the death and by the inspection.

A session did not die if it was told to stop, was interrupted, was recalled from its task, or has suspended itself.
"""

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from lifefold.core.fleet.worker import assignment, stall_detector
from lifefold.core.kernel import (
    Aggregate,
    Dispatch,
    Event,
    Projection,
    Property,
    SystemState,
    Transition,
    always,
    leads_to,
    projected,
    rule,
    weakly,
)
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.effects import InspectWork, RunSession, Tell, VerifyWork


def ending(worker: Aggregate, transition: Transition, reason: str) -> assignment.SessionDied | assignment.WorkFailed:
    """Return the event for the assignment of any failed session, whether the task becomes an orphan by it or not."""
    brief: task.Brief = worker.record("assignment").brief
    found = stall_detector.nudged_diagnosis(worker, session_profiles.diagnosed(transition.event))
    match brief.orphaned:
        case task.OnDeath.VERIFY if brief.verify and has_died(transition):
            return assignment.SessionDied(reason, found)
        case task.OnDeath.REQUEUE if has_died(transition):
            return assignment.SessionDied(reason, found)
        case _:
            return assignment.WorkFailed(reason, found)


def has_died(transition: Transition) -> bool:
    """Tell whether a running session has died: it ended by itself, without an order, and reported no result."""
    ran = transition.before is not None and transition.before.state is session.State.RUNNING
    match transition.event:
        case session.SessionExited(outcome=session.Error() | session.Timeout()):
            return ran
        case session_profiles.Stalled():
            return ran
        case _:
            return False


def begin_inspection(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Let the inspection of an orphan begin when no process of its session is left."""
    if worker.record("assignment").state is assignment.State.ORPHANED and not _is_alive(worker):
        yield Dispatch("assignment", assignment.SessionGone())


def _is_alive(worker: Aggregate) -> bool:
    return any(part.slot == RunSession.__name__ for part in worker.entities["session"].running)


_ADOPTED: Final = frozenset({assignment.State.PARKING, assignment.State.MERGING})
"""An orphan that enters one of these states is none any more."""


@rule(on=assignment.machine, event=assignment.SessionDied)
def report_death(_worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Report to the board that a task is an orphan, and give it back if nothing is inspected."""
    died, brief = cast("assignment.SessionDied", transition.event), transition.after.record.brief
    yield Tell("board", f"task:{brief.task}", task.Orphaned(brief.epoch, died.reason, died.diagnosis))
    if transition.entered is assignment.State.IDLE:
        yield Tell("board", f"task:{brief.task}", task.Released(brief.epoch, died.reason))


@rule(on=assignment.machine, enters=_ADOPTED)
def report_rescue(_worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Report to the board that the work of an orphan is good."""
    was: assignment.Assignment = transition.was
    if assignment.is_orphan(was):
        yield Tell("board", f"task:{was.brief.task}", task.Salvaged(was.brief.epoch))


@rule(on=assignment.machine, event=(assignment.Inspected, assignment.Rejected), enters=assignment.State.IDLE)
def report_loss(_worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Report to the board that the work of an orphan is not enough."""
    was: assignment.Assignment = transition.was
    if assignment.is_orphan(was):
        reason = f"{was.death}; {_found(transition.event)}"
        yield Tell("board", f"task:{was.brief.task}", task.Failed(was.brief.epoch, reason, was.diagnosis))


def _found(event: Event) -> str:
    """Return what was found wrong with the work of an orphan."""
    if isinstance(event, assignment.Rejected):
        return f"what it has left is not enough: {event.reason}"
    return "it has left nothing that could be verified"


def is_inspected_without_processes(worker: Aggregate) -> bool:
    """The work of a dead session is neither inspected nor verified while a process of the session is left."""
    work: assignment.Assignment = worker.record("assignment")
    looks = assignment.is_orphan(work) and work.state is not assignment.State.ORPHANED
    return not looks or not _is_alive(worker)


OF_WORKERS: Final[tuple[Property[Aggregate], ...]] = (
    always("the work of a dead session is inspected after its process has ended", is_inspected_without_processes),
)


class Orphans(msgspec.Struct, frozen=True):
    """The claims of a board's tasks that are orphans, as task and epoch; or the one in a worker's hands."""

    claims: tuple[tuple[str, int], ...] = ()
    is_board: bool = False


def orphans(of: Aggregate) -> Orphans:
    """Return the projection of a board or a worker: its orphans."""
    if of.kind == "worker":
        work: assignment.Assignment = of.record("assignment")
        return Orphans(((work.brief.task, work.brief.epoch),) if assignment.is_orphan(work) else ())
    tasks = (each.record for ref, each in of.entities.items() if ref.startswith("task:"))
    return Orphans(tuple((each.id, each.epoch) for each in tasks if each.state is task.State.ORPHANED), is_board=True)


def _orphans(fleet: Projection, *, of_board: bool) -> set[tuple[str, int]]:
    seen = [each for each in fleet.aggregates.values() if isinstance(each, Orphans) and each.is_board is of_board]
    return {claim for each in seen for claim in each.claims}


def are_looked_after(fleet: Projection) -> bool:
    """With no message in flight, the orphans of the board are exactly those of its workers."""
    return bool(fleet.under_way) or _orphans(fleet, of_board=True) == _orphans(fleet, of_board=False)


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    orphans, always("with no message in flight, every orphan is with its worker", are_looked_after)
)

AT_LAST: Final[tuple[Property[SystemState], ...]] = projected(
    orphans,
    leads_to(
        "no task stays an orphan, if inspections and verifications end",
        lambda fleet: bool(_orphans(fleet, of_board=True)),
        lambda fleet: not _orphans(fleet, of_board=True),
        given=weakly(InspectWork, VerifyWork),
    ),
)
"""Liveness of fleets that can have orphans."""
