"""What has happened, told to people: a line for each transition, with its cause.

A cause is the event's name and what it says. But an agent that stops because no work is left was told to by its board,
and a session that is interrupted because its runner leaves got no message: there the cause is the wish itself.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.kernel import Aggregate, Event, LifecycleEvent, Reaction, describe, journal, replace
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.cli.wording import clock_time, cut_in_the_middle, spent
from lifefold.interpreters.processes.command import plain

SHOWN: Final = ("session", "task", "invocation")
"""The machines whose transitions are told while a fleet runs; ``lifefold log`` has all of them."""

LEAVING: Final = "asked to leave"

_NAME_CHARACTERS: Final = 20
"""How much of a name there is in a short line."""

PEOPLE: Final = "operator:"
"""What the actors begin with who are people; their login names follow."""

SESSION: Final = "session:"
"""What the actors begin with who are sessions that give a command; their agents' names follow."""


class Happening(msgspec.Struct, frozen=True):
    """A transition, as its journal has it, and its cause in words; ``brief`` is what matters most of the cause."""

    event: LifecycleEvent
    cause: str
    brief: str
    is_move: bool

    def line(self) -> str:
        """Return all of it as a line."""
        event = self.event
        moved = f"{event.from_status or '(new)'} -> {event.to_status}"
        name = f"{event.entity_type} {event.entity_id}"
        by = f" (by {event.actor})" if event.actor.startswith((PEOPLE, SESSION)) else ""
        return plain(f"{clock_time(event.timestamp)}  {name:<24} {moved:<34} {self.cause}{by}".encode())

    def short_line(self) -> str:
        """Return what matters most, first: when, who, in which state now, why."""
        event = self.event
        time_of_day = clock_time(event.timestamp).rpartition(".")[0]
        name = cut_in_the_middle(event.entity_id, _NAME_CHARACTERS)
        return plain(f"{time_of_day} {name} -> {event.to_status}: {self.brief}".encode())


def told(aggregate: str, reaction: Reaction) -> Iterator[Happening]:
    """Yield what one input came to."""
    for transition in reaction.transitions:
        event = journal(aggregate, transition)
        is_move = transition.before is not None and transition.entered is not None
        cause = _wish(transition.event, reaction.aggregate) or _cause(transition.event, event)
        yield Happening(event, cause, _brief(transition.event) or cause, is_move)


def moves(aggregate: str, reaction: Reaction) -> Iterator[Happening]:
    """Yield what is worth a line while a fleet runs: sessions and tasks that get into another state."""
    return (each for each in told(aggregate, reaction) if each.is_move and each.event.entity_type in SHOWN)


def _wish(event: Event, among: Aggregate) -> str:
    """Return what was asked of an agent, if that is why its session ends or its task is given back; else nothing."""
    if not isinstance(event, session.OperatorStop | session.UrgentMessage | assignment.Dropped):
        return ""
    wanted: desired_state.DesiredState = among.record("desired_state")
    if wanted.state is desired_state.State.PAUSE:
        return f"paused: {wanted.reason}" if wanted.reason else "paused"
    return LEAVING if wanted.state is desired_state.State.HOLD else wanted.reason


def _cause(event: Event, told: LifecycleEvent) -> str:
    match event:
        case assignment.Assigned(brief=brief):
            says = f"{brief.task}, claim {brief.epoch}"
        case fleet_task.Split(epoch=epoch, tasks=tasks):
            says = f"claim {epoch}, into {len(tasks)} {'part' if len(tasks) == 1 else 'parts'}"
        case session.SessionExited(usage=used) if used != session.Usage():
            says = f"{describe(replace(event, usage=session.Usage()))}, {spent(used)}"
        case mailbox.OperatorMessageArrived(text=text, urgent=urgent):
            says = f"{'urgent' if urgent else 'for the next prompt'}, {text}"
        case task.Completed(took_ms=0) | assignment.WorkFinished(took_ms=0):
            says = _without("took_ms 0", told.reason)
        case worker_slot.WorkWanted(silent=False) | worker_slot.WorkerGone(silent=False):
            says = _without("silent False", told.reason)
        case _:
            says = told.reason
    return f"{told.metadata['event']}: {says}" if says else str(told.metadata["event"])


def _without(last: str, says: str) -> str:
    """Return what an event says without its last field: nobody wants to know it, or it is as it should be."""
    return "" if says == last else says.removesuffix(f", {last}")


def _brief(event: Event) -> str:
    match event:
        case session.SessionExited(outcome=outcome):
            return session.describe(outcome)
        case task.Failed(reason=reason) | task.Rejected(reason=reason) | task.Released(reason=reason):
            return reason
        case _:
            return ""
