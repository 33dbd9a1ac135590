"""The rules of a worker about its conversation: a claim begins it, each session resumes it, and it is charged once.

A worker has a conversation only if its agent program keeps any (``AgentPlan.talks``). The identifier of the next
session is chosen in the step that asks for the session, so it is in the log before the program runs.

- *The same claim*: the next session resumes the conversation after an interruption, a pause or a suspension.
- *The next claim*: the board keeps the conversation with its charges, and hands it to the same agent again.
- *A loss*: a session that could not resume its conversation has not failed its task. The next session of the claim
  begins another conversation. A second loss in one claim is a failure like any other.
"""

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import assignment
from lifefold.core.fleet.worker.conversation import (
    REF,
    Began,
    ClaimBegan,
    Conversation,
    IdChosen,
    SessionEnded,
    State,
    charge,
    identifier,
    machine,
)
from lifefold.core.kernel import (
    Aggregate,
    Dispatch,
    Projection,
    Property,
    SystemState,
    Transition,
    always,
    projected,
    rule,
    sometimes,
)
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.task import KeptConversation
from lifefold.core.policy.ends import Trouble
from lifefold.effects import Tell


def of(worker: Aggregate) -> Conversation | None:
    """Return the conversation of a worker; None if its agent program keeps none."""
    found = worker.entities.get(REF)
    return None if found is None else found.record


@rule(on=assignment.machine, event=assignment.Assigned, enters=assignment.State.PREPARING)
def take_up(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Begin a claim with the conversation that the board kept for it."""
    if of(worker) is not None:
        assigned = cast("assignment.Assigned", transition.event)
        yield Dispatch(REF, ClaimBegan(assigned.brief.task, assigned.brief.epoch, assigned.conversation))


@rule(on=assignment.machine, event=assignment.Prompted)
def choose(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Choose the identifier of a new conversation, if the program accepts one."""
    found = of(worker)
    if found is not None and found.chooses and not found.is_begun:
        brief: task.Brief = worker.record("assignment").brief
        yield Dispatch(REF, IdChosen(identifier(brief.token, brief.task, brief.epoch, worker.key, found.count + 1)))


def listen(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Take in what the end of a session tells of its conversation."""
    if of(worker) is not None:
        yield Dispatch(REF, _ended(cast("session.SessionExited", transition.event)))


@rule(on=machine, event=(Began, SessionEnded))
def keep(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Report a changed conversation to the board, for the next claim of this agent."""
    now: Conversation = transition.after.record
    if now.resumes and now.task and _kept(worker, transition.was) != (kept := _kept(worker, now)):
        yield Tell("board", f"task:{now.task}", fleet_task.ConversationKept(now.epoch, worker.key, kept))


def _kept(worker: Aggregate, of_it: Conversation) -> KeptConversation | None:
    return KeptConversation(worker.key, of_it.named, of_it.charged) if of_it.is_begun else None


def begins_anew(worker: Aggregate, transition: Transition) -> bool:
    """Tell whether the claim goes on with another conversation, because the session has found the present one lost."""
    found, before = of(worker), transition.before
    if found is None or found.has_lost or found.state is State.UNNAMED:
        return False
    ran = before is not None and before.state is session.State.RUNNING
    pauses = transition.entered is session.State.COOLING_DOWN
    return ran and pauses and isinstance(transition.event, session.SessionExited) and _ended(transition.event).is_lost


def charged(worker: Aggregate, exited: session.SessionExited) -> session.Usage:
    """Return what a session is charged: of a total only the part that its conversation was not charged yet."""
    return charge(of(worker) or Conversation(), _ended(exited))


def _ended(exited: session.SessionExited) -> SessionEnded:
    diagnosis = exited.diagnosis
    is_lost = diagnosis is not None and diagnosis.trouble is Trouble.LOST
    return SessionEnded(exited.conversation, exited.usage, exited.is_total, is_lost)


# Properties


def is_of_the_claim(worker: Aggregate) -> bool:
    """A worker with a session at its task has the conversation of this claim, and of no other."""
    found = of(worker)
    work: assignment.Assignment = worker.record("assignment")
    at_work = work.state in {assignment.State.PREPARING, assignment.State.WORKING}
    return found is None or not at_work or (found.task, found.epoch) == (work.brief.task, work.brief.epoch)


def is_known_before_it_begins(worker: Aggregate) -> bool:
    """A session of a program that accepts an identifier has one before its first word."""
    found = of(worker)
    begins = worker.record("session").state in {session.State.SPAWNING, session.State.RUNNING}
    works = worker.record("assignment").state is assignment.State.WORKING
    return found is None or not found.chooses or not (begins and works) or bool(found.id)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("a session has the conversation of its claim", is_of_the_claim),
    always("a chosen conversation is known before its session begins", is_known_before_it_begins),
)


class Ledger(msgspec.Struct, frozen=True):
    """A projection of a worker: its conversation with the task and the claim; of the board: the kept ones by task.

    Each is the task, its epoch, and what is kept. ``owned`` are the claims whose owner has not given them back.
    """

    conversations: tuple[tuple[str, int, KeptConversation | None], ...] = ()
    owned: frozenset[tuple[str, int]] = frozenset()
    is_board: bool = False


def ledger(of_it: Aggregate) -> Ledger:
    """Return the projection of a board or a worker about conversations."""
    if of_it.kind == "worker":
        found = of(of_it)
        resumed = found is not None and found.resumes and found.task
        return Ledger(((found.task, found.epoch, _kept(of_it, found)),) if found is not None and resumed else ())
    tasks = [each.record for ref, each in of_it.entities.items() if ref.startswith("task:")]
    owned = frozenset((each.id, each.epoch) for each in tasks if each.state in task.OWNED)
    return Ledger(tuple((each.id, each.epoch, each.conversation) for each in tasks), owned, is_board=True)


def board_keeps_what_was_charged(fleet: Projection) -> bool:
    """With no message in flight, the board has the conversation of each claim, with what it was charged.

    A conversation of an earlier claim may be replaced by another agent's. As long as it is kept, its charges agree.
    """
    seen = [each for each in fleet.aggregates.values() if isinstance(each, Ledger)]
    board = next((each for each in seen if each.is_board), Ledger())
    kept = {name: found for name, _, found in board.conversations}
    return bool(fleet.under_way) or all(
        _agrees(kept.get(name), found, is_owned=(name, epoch) in board.owned)
        for each in seen
        if not each.is_board
        for name, epoch, found in each.conversations
    )


def _agrees(kept: KeptConversation | None, found: KeptConversation | None, *, is_owned: bool) -> bool:
    if found is None:
        return True
    same = kept is not None and (kept.agent, kept.id) == (found.agent, found.id)
    return kept == found if is_owned or same else True


def is_kept(fleet: Projection) -> bool:
    """Tell whether the board has kept the conversation of a claim that stands."""
    seen = [each for each in fleet.aggregates.values() if isinstance(each, Ledger) and each.is_board]
    return any(
        found is not None and (name, epoch) in each.owned for each in seen for name, epoch, found in each.conversations
    )


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    ledger,
    always("with no message in flight, the board keeps what a conversation was charged", board_keeps_what_was_charged),
)

AT_LAST: Final[tuple[Property[SystemState], ...]] = projected(
    ledger, sometimes("the board keeps a conversation", is_kept)
)
"""Reachability in fleets whose agents have conversations."""
