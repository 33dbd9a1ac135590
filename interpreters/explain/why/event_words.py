"""The words for the events in the history of a task: tables by type of event, for the task and for its owner."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system.plan_enforcement import continue_with_new_terms
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, output, question
from lifefold.core.kernel import Created, Event, Transition, describe
from lifefold.core.lifecycles import approval, session, task
from lifefold.core.policy.abort import AbortScope
from lifefold.core.policy.ends import Trouble
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.plain_reasons import given_reason, in_plain_words
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.explain.why.phrases import because, count, enumerated, in_brackets

Words = Callable[[Any, Transition], str]


def as_it_is(event: Event, _transition: Transition) -> str:
    """Return the name of an event with its fields."""
    says = in_plain_words(describe(event))
    return f"{type(event).__name__}: {says}" if says else type(event).__name__


def untold(_event: Event, _transition: Transition) -> str:
    """Return no words: another event says the same, or it does not concern the task."""
    return ""


def _says(words: str) -> Words:
    """Return fixed words, followed by the reason of the event, if it has one."""
    return lambda event, transition: words + because(given_reason(getattr(event, "reason", ""), transition.actor))


def _begun(_event: Event, transition: Transition) -> str:
    record: fleet_task.FleetTask = transition.after.record
    state = "" if record.state is task.State.OPEN else f", {OF_TASKS[record.state]}"
    return f"put on the board{state}{f', a part of {record.parent}' if record.parent else ''}"


def _split(event: fleet_task.Split, _transition: Transition) -> str:
    return f"split into {count(len(event.tasks), 'part')}"


def _completed(_event: task.Completed, transition: Transition) -> str:
    record: fleet_task.FleetTask = transition.after.record
    return f"the work is done{', and is to be verified' if record.verify else ''}"


def _merged(event: task.Verified, _transition: Transition) -> str:
    if event.branch:
        return f"on branch {event.branch} as {event.commit[:10]}, and not merged"
    return f"merged as {event.commit[:10]}" if event.commit else "closed; there was nothing to merge"


def _handed(_event: Event, transition: Transition) -> str:
    record: fleet_task.FleetTask = transition.after.record
    return f"handed over to be {'merged' if record.stage is task.Stage.MERGE else 'verified'}, to"


def _entrusted(event: fleet_task.Entrusted, transition: Transition) -> str:
    """Return the trust level of the owner, if its work needs approval because of it."""
    record: fleet_task.FleetTask = transition.after.record
    approval_needed = f", with approval before the merge because it is only {event.level.word},"
    return f"given{approval_needed if event.level < record.merges else ''} to"


def _back(event: fleet_task.DependencyBack, transition: Transition) -> str:
    if transition.actor == _LOOKED_AT and event.by != fleet_task.PLAN:
        return "unblocked, to be decided anew by the changed plan"
    budget = event.by.removeprefix("budget:")
    if budget != event.by:
        whose = "the fleet" if budget == "fleet" else budget.replace("/", " ")
        return f"unblocked: the budget of {whose} suffices again"
    if event.by == fleet_task.PLAN:
        return "unblocked: it is in the plan again"
    if event.by.startswith(fleet_task.ROLE):
        return f"unblocked: an agent has the role {event.by.removeprefix(fleet_task.ROLE)}"
    return f"unblocked: {event.by} may be done after all"


_LOOKED_AT: Final = f"rule:{continue_with_new_terms.name}"
"""The actor that unblocks a changed task, whether or not its blocker is gone: other rules may block it at once."""


def _conversed(event: fleet_task.ConversationKept, transition: Transition) -> str:
    """Return that a conversation has begun, or is lost; new charges of the same one are no news."""
    before = transition.was.conversation
    if event.conversation is None:
        return f"lost conversation {before.id}" if before is not None else ""
    is_news = before is None or before.id != event.conversation.id
    return f"began conversation {event.conversation.id}" if is_news else ""


def _replanned(event: fleet_task.Replanned, _transition: Transition) -> str:
    """Return the changed keys of the fleet file, or that the task is back in the plan; nothing for a new number."""
    return event.what if event.what.startswith("it is ") else event.what and f"{event.what} changed in the fleet file"


def _failed(event: task.Failed, _transition: Transition) -> str:
    """Return the reason of a failure, with its canonical reasons, unless they add nothing (document 004)."""
    reasons = (event.transition_reason, event.abort_reason)
    known = dict.fromkeys(str(each) for each in reasons if each is not None and each not in _UNTELLING)
    return f"failed{in_brackets(', '.join(known))}{because(event.reason)}"


_UNTELLING: Final = frozenset({TransitionReason.RETRY, TransitionReason.ABORTED, AbortReason.UNKNOWN, AbortReason.OOM})
"""Canonical reasons that say no more than that an attempt has failed, or more than is known.

The document's ``oom`` stands for every SIGKILL (E39). The reason of the failure has the signal, or the exit status.
"""


def _orphaned(event: task.Orphaned, _transition: Transition) -> str:
    return f"its session has died{because(event.reason)}" if event.reason else "its owner has died"


def _tool(event: fleet_task.ToolAborted, _transition: Transition) -> str:
    return f"its tool {event.tool} was aborted, and its session goes on{because(event.reason)}"


def _abort(event: fleet_task.AbortWanted, _transition: Transition) -> str:
    siblings = event.scope is AbortScope.SIBLING
    what = "aborted its siblings, with all that is below them" if siblings else "aborted it, with all that is below it"
    return what + because(event.reason)


def _aborted(event: fleet_task.Aborted, transition: Transition) -> str:
    then = "" if transition.entered is task.State.CANCELLED else ", as soon as it would be opened again"
    return f"aborted{then}{because(event.reason)}"


OF_TASK: Final[Mapping[type[Event], Words]] = {
    Created: _begun,
    task.Approved: _says("its plan was approved"),
    task.Declined: _says("its plan was declined"),
    task.Claimed: _says("given to"),
    fleet_task.Entrusted: _entrusted,
    task.Started: untold,
    task.Released: _says("given back"),
    task.Completed: _completed,
    task.Failed: _failed,
    fleet_task.NothingDone: _says("reported as done, but nothing has changed"),
    task.Rejected: _says("failed: not accepted"),
    task.Verified: _merged,
    task.Retried: _says("opened again, to be tried once more"),
    fleet_task.Rested: _says("opened again after a rest, to be tried once more"),
    task.Blocked: _says("blocked"),
    task.Unblocked: _says("unblocked"),
    task.Cancelled: _says("cancelled"),
    task.Orphaned: _orphaned,
    task.Salvaged: _says("the work of the dead session counts: it differs, and was verified"),
    task.Decomposed: _says("split into parts"),
    task.SubtasksCompleted: _says("all its parts are closed"),
    task.SubtasksOverdue: _says("its parts take too long"),
    fleet_task.Split: _split,
    fleet_task.Parked: _says("parked for approval"),
    fleet_task.Handed: _handed,
    fleet_task.Returned: _says("given back as it was"),
    fleet_task.DependencyLost: _says("blocked"),
    fleet_task.DependencyBack: _back,
    fleet_task.RetryGranted: _says("one more try granted"),
    fleet_task.ToolAborted: _tool,
    fleet_task.AbortWanted: _abort,
    fleet_task.Aborted: _aborted,
    fleet_task.Replanned: _replanned,
    fleet_task.ConversationKept: _conversed,
    fleet_task.Removed: _says("taken out of the plan"),
    approval.ApprovalGranted: _says("approved"),
    approval.ApprovalRefused: _says("refused"),
    approval.ApprovalExpired: _says("not approved in time"),
}
"""The words for each event of a task. Any other event is told by its name and its fields."""


def _exited(event: session.SessionExited, transition: Transition) -> str:
    """Return an end of a session that the board does not get: a suspension, an interruption, a lost conversation."""
    interrupted = transition.before is not None and transition.before.state is session.State.INTERRUPTING
    match event.outcome:
        case session.Suspended(asked=asked):
            return "its session was suspended" if asked else "its session has suspended itself"
        case session.Error() if event.diagnosis is not None and event.diagnosis.trouble is Trouble.LOST:
            return "its session found its conversation lost"
        case _:
            return "its session was interrupted" if interrupted else ""


def _message(event: mailbox.OperatorMessageArrived, _transition: Transition) -> str:
    return f"wrote to its agent{', urgently' if event.urgent else ''}{because(event.text)}"


def _asked(event: question.QuestionAsked, transition: Transition) -> str:
    """Return a new question with its number, and its standing answer; nothing for one that is asked again."""
    now: question.Questions = transition.after.record
    if transition.before is None or now.asked == transition.before.record.asked:
        return ""
    found = now.numbered(now.asked)
    standing = f"; {found.answer.text}" if found is not None and found.answer is not None else ""
    return f"asked (Q{now.asked}): {questions.words(event)}{standing}"


def _answered(event: question.QuestionAnswered, transition: Transition) -> str:
    """Return the answer of an operator, in words."""
    text = given_reason(event.answer.text, transition.actor)
    return f"{_VERDICTS[event.answer.verdict]} Q{event.number}{because(text)}"


_VERDICTS: Final = {
    question.Verdict.ANSWERED: "answered",
    question.Verdict.ALLOWED: "approved",
    question.Verdict.REFUSED: "rejected",
    question.Verdict.EXPIRED: "rejected",
}


def _overdue(_event: question.AnswerOverdue, transition: Transition) -> str:
    was: question.Questions | None = transition.before.record if transition.before else None
    number = was.waiting[0].number if was is not None and was.waiting else 0
    return f"Q{number} was rejected: {question.expired(was.terms.timeout_ms).text}" if was is not None else ""


def _dropped(_event: question.QuestionsClosed, transition: Transition) -> str:
    was: question.Questions | None = transition.before.record if transition.before else None
    left = [f"Q{each.number}" for each in was.waiting] if was is not None else []
    return f"{enumerated(left)} dropped: the session is over" if left else ""


def _inspected(event: assignment.Inspected, transition: Transition) -> str:
    """Return that a dead session has left work; without any, the failure of the task tells so.

    A session that has succeeded is expected to leave work, so that is not told.
    """
    is_of_dead = transition.before is not None and transition.before.record.is_orphan
    return "found work of the dead session, and verifies it" if event.differs and is_of_dead else ""


def _verified(_event: assignment.Verified, transition: Transition) -> str:
    work: assignment.Assignment = transition.after.record
    unproven = "the work is accepted without verification, because the task has no verify"
    return "its verification succeeded" if work.brief.verify else unproven


def _denied(event: output.PermissionDenied, _transition: Transition) -> str:
    return f"was refused the tool {event.tool}{because(event.reason)}"


def _wanted(event: output.PermissionWanted, _transition: Transition) -> str:
    return f"asked for leave to use {event.tool}{because(event.question)}"


def _limited(event: output.LimitSeen, _transition: Transition) -> str:
    return f"met a limit of its account{in_brackets(event.scope)}{because(event.message)}"


OF_OWNER: Final[Mapping[type[Event], Words]] = {
    session.SessionStarted: _says("began a session"),
    session.SessionExited: _exited,
    output.PermissionWanted: _wanted,
    output.PermissionDenied: _denied,
    output.LimitSeen: _limited,
    assignment.Inspected: _inspected,
    assignment.Verified: _verified,
    mailbox.OperatorMessageArrived: _message,
    question.QuestionAsked: _asked,
    question.QuestionAnswered: _answered,
    question.AnswerOverdue: _overdue,
    question.QuestionsClosed: _dropped,
    desired_state.PauseWanted: _says("paused its agent"),
    desired_state.ResumeWanted: _says("let its agent go on"),
    desired_state.HoldWanted: _says("held its agent"),
    desired_state.RunWanted: _says("let its agent go on"),
    desired_state.StopWanted: _says("stopped its agent for good"),
    desired_state.DrainWanted: _says("had its agent finish what it has, and stop"),
    desired_state.KillWanted: _says("killed its agent"),
}
"""The words for each event of the owner. The task's own events tell all others, or they do not concern it."""
