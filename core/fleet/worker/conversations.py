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
from lifefold.core.fleet.worker import assignment, output
from lifefold.core.fleet.worker.conversation import identifier, machine
from lifefold.core.fleet.worker.conversation_charges import charge
from lifefold.core.fleet.worker.conversation_model import (
    REF,
    Began,
    ClaimBegan,
    Conversation,
    IdChosen,
    SessionEnded,
    State,
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


@rule(on=assignment.machine, event=assignment.Assigned, enters=assignment.State.PREPARING, beside=REF)
def take_up(_worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Begin a claim with the conversation that the board kept for it."""
    assigned = cast("assignment.Assigned", transition.event)
    yield Dispatch(REF, ClaimBegan(assigned.brief.task, assigned.brief.epoch, assigned.conversation))


@rule(on=assignment.machine, event=assignment.Prompted, beside=REF)
def choose(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Choose the identifier of a new conversation, if the program accepts one."""
    found: Conversation = worker.record(REF)
    if found.chooses and not found.is_begun:
        brief: task.Brief = worker.record("assignment").brief
        yield Dispatch(REF, IdChosen(identifier(brief.token, brief.task, brief.epoch, worker.key, found.count + 1)))


def listen(_worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Take in what the end of a session tells of its conversation."""
    yield Dispatch(REF, _ended(cast("session.SessionExited", transition.event)))


@rule(on=machine, event=(Began, SessionEnded))
def keep(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Report a changed conversation to the board, for the next claim of this agent."""
    now: Conversation = transition.after.record
    if now.resumes and now.task and _kept(worker, transition.was) != (kept := _kept(worker, now)):
        yield Tell("board", f"task:{now.task}", fleet_task.ConversationKept(now.epoch, worker.key, kept))


def _kept(worker: Aggregate, of_it: Conversation) -> KeptConversation | None:
    return KeptConversation(worker.key, of_it.named, of_it.charged, of_it.unsaved) if of_it.is_begun else None


def replaces_lost_conversation(worker: Aggregate, transition: Transition) -> bool:
    """Tell whether the claim goes on with another conversation, because the session has found the present one lost."""
    before, event = transition.before, transition.event
    pauses = transition.entered is session.State.COOLING_DOWN
    if before is None or not pauses or not isinstance(event, session.SessionExited):
        return False
    found = of(worker)
    if found is None or found.has_lost or found.state is State.UNNAMED:
        return False
    return before.state is session.State.RUNNING and _ended(event).is_lost


def is_to_begin_anew(worker: Aggregate, transition: Transition) -> bool:
    """Tell whether the next session begins another conversation, because the claim has lost the one before.

    The transition may be the end of the session that has found it lost, or that has named another one.
    """
    found, event = of(worker), transition.event
    if found is None:
        return False
    if isinstance(event, session.SessionExited) and (_ended(event).is_lost or event.conversation):
        return _ended(event).is_lost
    return found.has_lost and not found.is_begun


def charged(worker: Aggregate, exited: session.SessionExited) -> session.Usage:
    """Return what a session is charged: of a total only the part that its conversation was not charged yet."""
    return charge(of(worker) or Conversation(), _ended(exited))


def _ended(exited: session.SessionExited) -> SessionEnded:
    diagnosis = exited.diagnosis
    is_lost = diagnosis is not None and diagnosis.trouble is Trouble.LOST
    told = exited.conversation, exited.usage, exited.is_total
    return SessionEnded(*told, is_lost, exited.before, exited.was_killed)


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


def has_the_name_of_its_session(worker: Aggregate) -> bool:
    """A worker keeps the name that its running session has given its conversation.

    The names in an output are for people, so a check has none; simulations have them.
    """
    found, seen = of(worker), worker.entities.get(output.REF)
    told = "" if seen is None or seen.state is not output.State.FOLLOWED else seen.record.conversation
    return found is None or not told or found.named == told


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("a session has the conversation of its claim", is_of_the_claim),
    always("a worker keeps the name that its session gives its conversation", has_the_name_of_its_session),
    always("a chosen conversation is known before its session begins", is_known_before_it_begins),
)


class Talk(msgspec.Struct, frozen=True):
    """A conversation about claim ``epoch`` of a task: of a worker, or as the board keeps it. ``kept`` may be missing.

    ``is_current``: the claim is the last one, its task is not over, and no failure has ended its conversation.
    """

    task: str
    epoch: int
    agent: str
    kept: KeptConversation | None
    is_current: bool = True


class Ledger(msgspec.Struct, frozen=True):
    """A projection of a worker or the board: its conversations."""

    talks: tuple[Talk, ...] = ()
    is_board: bool = False


def ledger(of_it: Aggregate) -> Ledger:
    """Return the projection of a board or a worker about conversations."""
    if of_it.kind == "worker":
        found = of(of_it)
        if found is None or not found.resumes or not found.task:
            return Ledger()
        return Ledger((Talk(found.task, found.epoch, of_it.key, _kept(of_it, found)),))
    tasks = (each.record for ref, each in of_it.entities.items() if ref.startswith("task:"))
    return Ledger(tuple(map(_of_task, tasks)), is_board=True)


def _of_task(record: fleet_task.FleetTask) -> Talk:
    agent = "" if record.conversation is None else record.conversation.agent
    is_over = record.state in {task.State.CLOSED, task.State.CANCELLED}
    has_failed = record.anew and record.state not in {*task.OWNED, task.State.DONE}
    return Talk(record.id, record.epoch, agent, record.conversation, is_current=not is_over and not has_failed)


def board_keeps_what_was_charged(fleet: Projection) -> bool:
    """With no message in flight, the board has the conversation of each claim, with what it was charged.

    A conversation of an earlier claim may be replaced by another agent's. As long as it is kept, its charges agree.
    """
    seen = [each for each in fleet.aggregates.values() if isinstance(each, Ledger)]
    board = {talk.task: talk for each in seen if each.is_board for talk in each.talks}
    of_workers = (talk for each in seen if not each.is_board for talk in each.talks)
    return bool(fleet.under_way) or all(_agrees(board[each.task], each) for each in of_workers)


def _agrees(board: Talk, found: Talk) -> bool:
    kept = board.kept if board.agent == found.agent else None
    if board.is_current and board.epoch == found.epoch:
        return kept == found.kept
    is_same = kept is not None and found.kept is not None and kept.id == found.kept.id
    return not is_same or kept == found.kept


def is_kept(fleet: Projection) -> bool:
    """Tell whether the board has kept the conversation of a claim that stands."""
    seen = (each for each in fleet.aggregates.values() if isinstance(each, Ledger) and each.is_board)
    return any(talk.kept is not None and talk.is_current for each in seen for talk in each.talks)


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    ledger,
    always("with no message in flight, the board keeps what a conversation was charged", board_keeps_what_was_charged),
)

AT_LAST: Final[tuple[Property[SystemState], ...]] = projected(
    ledger, sometimes("the board keeps a conversation", is_kept)
)
"""Reachability in fleets whose agents have conversations."""
