"""The words of the story of a fleet: tables by event or by machine, for the board, its agents and its services.

Tasks are told in the words of ``why``; here is what else an operator calls an event.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from lifefold.core.fleet.board import account, budget, intake, worker_slot
from lifefold.core.fleet.dispatch import accounts, budgets, plan_approval
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.system import plan_change
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, output, question, stall_detector, supervisor
from lifefold.core.kernel import Created, EntityQuarantined, EntityReleased, Event, Reaction, Transition, replace
from lifefold.core.lifecycles import process, session
from lifefold.effects import LogFatal
from lifefold.interpreters.explain.plain_reasons import given_reason
from lifefold.interpreters.explain.why.event_words import OF_OWNER, Words, untold
from lifefold.interpreters.explain.why.phrases import duration
from lifefold.interpreters.explain.words import unwrapped

OPERATOR: Final = "operator:"
"""The prefix of the actor of an operator's command; the login name follows."""

SESSION: Final = "session:"
"""The prefix of the actor of a session's command; the name of its agent follows."""


class Mood(StrEnum):
    """What a line means to an operator: it failed, it waits for an operator, it is done, or none of these."""

    FAILED = "failed"
    WAITS = "waits"
    DONE = "done"
    PLAIN = ""


Said = tuple[str, str, Mood]
"""What a line is about, empty for the aggregate; its sentence, empty for none; its mood."""


def whole(words: Words, event: Event, step: Transition) -> str:
    """Return an event in words with its whole reason, which the words alone would shorten."""
    field = next((each for each in _TEXTS if isinstance(getattr(event, each, None), str)), "")
    text = given_reason(unwrapped(str(getattr(event, field))), step.actor) if field else ""
    if not text:
        return words(event, step)
    marked = words(replace(event, **{field: _PLACE}), step)
    if _PLACE in marked:
        return marked.replace(_PLACE, text)
    said = words(replace(event, **{field: ""}), step)
    return f"{said}: {text}" if said and words(event, step) != said else said


_PLACE: Final = "\ue000"
"""A character of no text: the words have it where the whole text belongs."""

_TEXTS: Final = ("reason", "text", "message", "question")
"""The fields of events that have a text of any length, at the end of the words."""


def of_kernel(step: Transition) -> Said | None:
    """Tell of a quarantine, of whichever entity."""
    match step.event:
        case EntityQuarantined(reason=reason):
            return "", f"its {step.machine} is quarantined{colon(reason)}", Mood.FAILED
        case EntityReleased():
            return "", f"its {step.machine} is released from quarantine", Mood.PLAIN
        case _:
            return None


def colon(reason: str) -> str:
    """Return a colon and the whole reason, to follow a statement; nothing without a reason."""
    text = unwrapped(reason)
    return f": {text}" if text else ""


def on_board(reaction: Reaction, step: Transition) -> Said | None:
    """Tell of an entity of the board that is no task."""
    told = _ON_BOARD.get(step.machine)
    return None if told is None else told(reaction, step)


def _name(step: Transition) -> str:
    return step.entity.partition(":")[2]


def _of_budget(_reaction: Reaction, step: Transition) -> Said | None:
    whose, _, name = step.entity.removeprefix("budget:").partition("/")
    about = "the fleet's budget" if whose == "fleet" else f"budget of {name}"
    if step.entered is budget.State.SPENT:
        said = f"{budgets.reason_of(step.after)}: lifefold {budgets.raising(step.after)}"
        return about, said, Mood.WAITS
    if isinstance(step.event, budget.Raise):
        return about, f"is raised{colon(step.event.reason)}", Mood.PLAIN
    return None


def _of_account(_reaction: Reaction, step: Transition) -> Said | None:
    about = f"account {_name(step)}"
    if step.before is None or step.entered is None:
        return None
    if step.entered is account.State.OPEN:
        return about, "is open again", Mood.PLAIN
    if step.entered is account.State.RESTING and step.was.state is account.State.OPEN:
        return about, f"rests: {accounts.reason_of(step.after.record)}", Mood.WAITS
    return None


def _of_plan(_reaction: Reaction, step: Transition) -> Said | None:
    match step.event:
        case Created():
            return "the plan", "waits for your approval", Mood.WAITS
        case plan_approval.PlanApproved(reason=reason):
            return "the plan", f"is approved{colon(reason)}", Mood.PLAIN
        case plan_approval.PlanDeclined(reason=reason):
            return "the plan", f"is declined{colon(reason)}", Mood.PLAIN
        case _:
            return None


def _of_intake(_reaction: Reaction, step: Transition) -> Said | None:
    is_last = isinstance(step.event, intake.LastTaskIn)
    return ("the fleet", "gets no more tasks", Mood.PLAIN) if is_last else None


def _of_change(_reaction: Reaction, step: Transition) -> Said | None:
    match step.event:
        case plan_change.ChangeEnforced():
            return f"plan change {_name(step)}", "is in force", Mood.PLAIN
        case plan_change.ChangeRefused(reasons=reasons):
            return f"plan change {_name(step)}", f"is refused{colon('; '.join(reasons))}", Mood.FAILED
        case _:
            return None


def _of_slot(reaction: Reaction, step: Transition) -> Said | None:
    is_gone = step.entered is worker_slot.State.GONE and work_of(reaction.aggregate).unsettled
    reason = given_reason(step.after.record.reason)
    return (_name(step), f"has stopped{colon(reason)}", Mood.PLAIN) if is_gone else None


def _of_mailbox(_reaction: Reaction, step: Transition) -> Said | None:
    told = _message(step.event)
    return None if told is None else (_name(step), told[1], told[2])


def _message(event: Event) -> Said | None:
    if not isinstance(event, mailbox.OperatorMessageArrived):
        return None
    return "", f"got {'an urgent' if event.urgent else 'a'} message{colon(event.text)}", Mood.PLAIN


_ON_BOARD: Final[Mapping[str, Callable[[Reaction, Transition], Said | None]]] = {
    budget.machine.name: _of_budget,
    account.machine.name: _of_account,
    plan_approval.machine.name: _of_plan,
    intake.machine.name: _of_intake,
    plan_change.machine.name: _of_change,
    worker_slot.machine.name: _of_slot,
    mailbox.machine.name: _of_mailbox,
}


def of_worker(reaction: Reaction, step: Transition) -> Said | None:
    """Tell of an agent: its questions, limits and messages, its progress, and what operators asked of it."""
    for each in step.effects:
        if isinstance(each, LogFatal):
            return "", f"has stopped because of errors{colon(each.message)}", Mood.FAILED
    match step.event:
        case mailbox.OperatorMessageArrived():
            return _message(step.event)
        case assignment.Verified():
            words = OF_OWNER[assignment.Verified](step.event, step)
            return reaction.aggregate.record("assignment").brief.task, words, Mood.PLAIN
        case stall_detector.Silent(silent_ms=silent_ms):
            return _silent(step, duration(silent_ms))
        case supervisor.Granted() | supervisor.Refused():
            return _restarted(step.event)
        case _:
            return of_command(step.event, step)


def _silent(step: Transition, silent: str) -> Said | None:
    match step.entered:
        case stall_detector.State.WARNED:
            return "", f"shows no progress for {silent}", Mood.WAITS
        case stall_detector.State.NUDGED:
            return "", f"shows no progress for {silent}, and is nudged", Mood.WAITS
        case stall_detector.State.STALLED:
            return "", f"shows no progress for {silent}; its session is ended", Mood.FAILED
        case _:
            return None


def _restarted(event: supervisor.Granted | supervisor.Refused) -> Said:
    if isinstance(event, supervisor.Granted):
        return "", "is to be restarted", Mood.PLAIN
    return "", f"is not restarted{colon(event.reason)}", Mood.FAILED


def of_command(event: Event, step: Transition) -> Said | None:
    """Tell what operators asked of an agent or a service, or what ``why`` has words for."""
    kind = type(event)
    if kind in _COMMANDS:
        is_told = step.actor.startswith((OPERATOR, SESSION))
        reason = given_reason(getattr(event, "reason", ""), step.actor)
        return "", f"{_COMMANDS[kind]}{colon(reason)}" if is_told else "", Mood.PLAIN
    if kind in _OF_AGENT:
        return "", whole(OF_OWNER.get(kind, untold), event, step), _OF_AGENT[kind]
    return None


_COMMANDS: Final[Mapping[type[Event], str]] = {
    desired_state.PauseWanted: "is paused",
    desired_state.ResumeWanted: "goes on",
    desired_state.StopWanted: "is stopped for good",
    desired_state.DrainWanted: "finishes what it has, and stops then",
    desired_state.KillWanted: "is killed",
}
"""Commands to an agent; the same events from rules are bookkeeping."""

_OF_AGENT: Final[Mapping[type[Event], Mood]] = {
    session.SessionExited: Mood.PLAIN,
    output.PermissionWanted: Mood.WAITS,
    output.PermissionDenied: Mood.FAILED,
    output.LimitSeen: Mood.WAITS,
    assignment.Inspected: Mood.PLAIN,
    question.QuestionAsked: Mood.WAITS,
    question.QuestionAnswered: Mood.PLAIN,
    question.AnswerOverdue: Mood.FAILED,
    question.QuestionsClosed: Mood.PLAIN,
}
"""Events of an agent that are told in the words of ``why``."""


def of_service(step: Transition) -> Said | None:
    """Tell of a service: its runs that failed, its crashes, and what reached it."""
    match step.event:
        case process.RunFailed(reason=reason):
            return "", f"a run failed{colon(reason)}", Mood.FAILED
        case process.Crashed(reason=reason) | process.StartFailed(reason=reason):
            return "", f"failed{colon(reason)}", Mood.FAILED
        case inbox.Fired(source=source):
            return "", f"was triggered by {source}", Mood.PLAIN
        case inbox.MessageArrived(text=text):
            return "", f"got a message{colon(text)}", Mood.PLAIN
        case _:
            return of_command(step.event, step)
