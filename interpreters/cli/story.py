"""Transitions for operators: a line for each, with its cause.

The cause is the name of the event and its fields. Some events follow from the desired state of the
worker: the board stops agents without work, and a leaving runner interrupts sessions. Their cause is its reason.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, output, question
from lifefold.core.kernel import ENGINE, Event, LifecycleEvent, Reaction, RulesChanged, describe, journal
from lifefold.core.lifecycles import session, session_limits, task
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.cli.wording import clock_time, moment, spent
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.chronicle_words import OPERATOR, SESSION
from lifefold.interpreters.explain.plain_reasons import given_reason, in_plain_words
from lifefold.interpreters.explain.why.phrases import because
from lifefold.interpreters.processes.command import plain

SHOWN: Final = ("session", "task", "invocation")
"""The machines whose transitions are shown while a fleet runs; ``lifefold log`` has all."""

LEAVING: Final = "asked to leave"


class Happening(msgspec.Struct, frozen=True):
    """A transition of the journal with its cause in words."""

    event: LifecycleEvent
    cause: str
    is_move: bool

    def line(self) -> str:
        """Return the transition as a full line."""
        event = self.event
        moved = f"{event.from_status or '(new)'} -> {event.to_status}"
        name = f"{event.entity_type} {event.entity_id}"
        by = f" (by {event.actor})" if event.actor.startswith((OPERATOR, SESSION)) else ""
        return plain(f"{clock_time(event.timestamp)}  {name:<24} {moved:<34} {self.cause}{by}".encode())


def happenings(aggregate: str, reaction: Reaction) -> Iterator[Happening]:
    """Yield the transitions of one input."""
    for transition in reaction.transitions:
        event = journal(aggregate, transition)
        is_move = transition.before is not None and transition.entered is not None
        cause = _reason(transition.event, reaction) or _cause(transition.event, event)
        yield Happening(event, in_plain_words(cause), is_move)


def rules_changed(event: RulesChanged, at_ms: int) -> Happening:
    """Return a change of the rules as a line between transitions."""
    about = {"event": "RulesChanged", "aggregate": ENGINE}
    known = LifecycleEvent(at_ms / 1_000, "rules", ENGINE, event.before, event.now, "engine", metadata=about)
    return Happening(known, "RulesChanged", is_move=False)


def moves(aggregate: str, reaction: Reaction) -> Iterator[Happening]:
    """Yield the transitions shown while a fleet runs: changes of state of sessions and tasks."""
    return (each for each in happenings(aggregate, reaction) if each.is_move and each.event.entity_type in SHOWN)


def _reason(event: Event, reaction: Reaction) -> str:
    """Return why a session ends or a task is given back: a recall, or the reason of the desired state; else empty."""
    if not isinstance(event, session.OperatorStop | session.UrgentMessage | assignment.Dropped):
        return ""
    recalls = (each.event for each in reaction.transitions if isinstance(each.event, assignment.Recalled))
    recalled = next(recalls, None) if isinstance(event, session.UrgentMessage) else None
    if recalled is not None:
        return _recall(recalled)
    wanted: desired_state.DesiredState = reaction.aggregate.record("desired_state")
    work: assignment.Assignment = reaction.aggregate.record("assignment")
    if isinstance(event, session.UrgentMessage) and work.state is assignment.State.IDLE:
        return f"{work.brief.task} was taken back while the session began"
    if wanted.state is desired_state.State.PAUSE:
        return f"paused: {wanted.reason}" if wanted.reason else "paused"
    return LEAVING if wanted.state is desired_state.State.HOLD else wanted.reason


def _recall(recalled: assignment.Recalled) -> str:
    """Return who has taken the task of a session back: an operator by cancelling it, or the board."""
    if recalled.abort_reason is not AbortReason.USER_INTERRUPT:
        return f"{recalled.task} was taken back{because(recalled.reason)}"
    if recalled.reason.startswith(_BY):
        return f"{recalled.task} was {recalled.reason}"
    return f"{recalled.task} was cancelled by an operator{because(recalled.reason)}"


_BY: Final = "cancelled by "
"""The beginning of the reason that earlier versions wrote for an operator who gave none."""


def _cause(event: Event, entry: LifecycleEvent) -> str:
    match event:
        case assignment.Assigned(brief=brief):
            says = f"{brief.task}, claim {brief.epoch}"
        case fleet_task.Split(epoch=epoch, tasks=tasks):
            says = f"claim {epoch}, into {len(tasks)} {'part' if len(tasks) == 1 else 'parts'}"
        case fleet_task.Replanned(what=what):
            says = what
        case (
            session.SessionExited() | session_limits.LimitReached() | output.WorkSeen() | fleet_task.ConversationKept()
        ):
            says = _of_program(event)
        case mailbox.OperatorMessageArrived(text=text, urgent=urgent):
            says = f"{'urgent' if urgent else 'for the next prompt'}, {text}"
        case question.QuestionsOpened() | question.QuestionAsked() | question.QuestionAnswered():
            says = questions.described(event)
        case task.Completed(took_ms=0) | assignment.WorkFinished(took_ms=0):
            says = _without("took_ms 0", entry.reason)
        case worker_slot.WorkWanted(silent=False) | worker_slot.WorkerGone(silent=False):
            says = _without("silent False", entry.reason)
        case _:
            says = given_reason(entry.reason, entry.actor)
    return f"{entry.metadata['event']}: {says}" if says else str(entry.metadata["event"])


def _of_program(
    event: session.SessionExited | session_limits.LimitReached | output.WorkSeen | fleet_task.ConversationKept,
) -> str:
    """Return what an agent program has reported."""
    match event:
        case session.SessionExited():
            return _exited(event)
        case session_limits.LimitReached(until_ms=until_ms, scope=scope, message=message):
            return _limited(session.Limited(until_ms, scope, message))
        case output.WorkSeen(works=works):
            return ", ".join(map(_work, works)) or "nothing is under way"
        case fleet_task.ConversationKept(agent=agent, conversation=kept):
            return f"{agent}, conversation {kept.id}" if kept is not None else f"{agent}, none"


def _exited(event: session.SessionExited) -> str:
    """Return the end of a session, with its conversation and its cost, or the total of the conversation."""
    bare = session.SessionExited(event.outcome)
    outcome = event.outcome
    ended = _limited(outcome) if isinstance(outcome, session.Limited) else _bare(describe(bare))
    total = " in the whole conversation" if event.is_total else ""
    parts = (
        ended,
        f"conversation {event.conversation}" if event.conversation else "",
        f"{spent(event.usage)}{total}" if event.usage != session.Usage() else "",
    )
    return ", ".join(filter(None, parts))


def _bare(says: str) -> str:
    """Return an end without the fields that have their usual values."""
    return _without("is_total False", says)


def _limited(outcome: session.Limited) -> str:
    """Return a limit of an account: its name, its end, and the agent's sentence."""
    scope = f" {outcome.scope}" if outcome.scope else ""
    until = "" if outcome.until_ms is None else f" until {moment(outcome.until_ms)}"
    return f"the limit{scope} of its account is reached{until}{because(outcome.message)}"


def _work(of: output.Doing) -> str:
    return "compacts its context" if of.work is output.Work.COMPACTION else f"runs {of.name or 'a tool'}"


def _without(last: str, says: str) -> str:
    """Return the fields of an event without the last one, which has its usual value."""
    return "" if says == last else says.removesuffix(f", {last}")
