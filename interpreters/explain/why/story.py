"""The history of a task: a fold over the transitions that concern it, as lines, oldest first.

The transitions of a task are those of its own entity, and those of its owner while the owner has the task. If two
machines report the same fact, the story has it once. Repeated lines, or repeated passages of several lines, become one
chapter with the number of repetitions.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch.task_messages import MAILBOX
from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.plan_enforcement import look_anew
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, output, question
from lifefold.core.kernel import Created, Event, Transition, describe, replace
from lifefold.core.lifecycles import approval, session, task
from lifefold.core.policy.abort import AbortScope
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.why.phrases import because, count, enumerated, in_brackets


class Line(msgspec.Struct, frozen=True):
    """An event in words, with its time and its actor (an agent, a rule, an operator). ``to`` is the agent concerned."""

    at_ms: int
    by: str
    said: str
    to: str = ""

    def words(self) -> str:
        """Return the event in words."""
        return f"{self.said} {self.to}".rstrip()


class Chapter(msgspec.Struct, frozen=True):
    """Lines that repeat ``times`` times in a row, from ``from_ms`` until ``to_ms``."""

    times: int
    from_ms: int
    to_ms: int
    lines: tuple[Line, ...]


class Story(msgspec.Struct, frozen=True):
    """The history of a task. ``owner`` is the worker that has it; ``sessions`` counts those of its current claim."""

    task: str
    lines: tuple[Line, ...] = ()
    owner: str = ""
    sessions: int = 0


def tell(story: Story, aggregate: str, transition: Transition) -> Story:
    """Take a transition of an aggregate into account."""
    if aggregate == board.NAME:
        if transition.entity == f"{MAILBOX}{story.task}":
            return _of_mailbox(story, transition)
        return _of_task(story, transition) if transition.entity == f"task:{story.task}" else story
    if isinstance(transition.event, assignment.Assigned):
        owner = aggregate if transition.event.brief.task == story.task else _unless(aggregate, story.owner)
        return replace(story, owner=owner)
    if aggregate != story.owner:
        return story
    if transition.machine == "assignment" and transition.entered is assignment.State.IDLE:
        return replace(story, owner="")
    return _of_owner(story, transition)


def _unless(aggregate: str, owner: str) -> str:
    return "" if aggregate == owner else owner


def resumed(story: Story, at_ms: int) -> Story:
    """Add that a runner continues. The log does not have how long none was there: commands write to it meanwhile."""
    if not story.lines:
        return story
    return _told(story, Line(at_ms, "runner", "goes on, after a time without a runner"))


def _of_task(story: Story, transition: Transition) -> Story:
    event = transition.event
    if isinstance(event, task.Claimed):
        story = replace(story, sessions=0)
    words = OF_TASK.get(type(event), _as_it_is)(event, transition)
    to = event.owner if isinstance(event, task.Claimed) else ""
    return _told(story, Line(transition.at_ms, who(transition.actor), words, to)) if words else story


def _of_mailbox(story: Story, transition: Transition) -> Story:
    event = transition.event
    if not isinstance(event, mailbox.OperatorMessageArrived):
        return story
    return _told(story, Line(transition.at_ms, who(transition.actor), f"sent a message for it{because(event.text)}"))


def _of_owner(story: Story, transition: Transition) -> Story:
    event, words = transition.event, OF_OWNER.get(type(transition.event), _untold)
    if isinstance(event, session.SessionStarted) and transition.machine == "session":
        story = replace(story, sessions=story.sessions + 1)
    said = words(event, transition)
    by = transition.actor if transition.machine in _TOLD_IT else story.owner
    return _told(story, Line(transition.at_ms, who(by), said)) if said else story


def _told(story: Story, line: Line) -> Story:
    return replace(story, lines=(*story.lines, line))


def who(actor: str) -> str:
    """Return an actor for display: the name of an agent, ``rule NAME``, or the actor itself."""
    kind, _, name = actor.replace("/", ":", 1).partition(":")
    return {"worker": name, "rule": f"rule {name}"}.get(kind, actor)


_TOLD_IT: Final = frozenset({mailbox.machine.name, desired_state.machine.name, question.REF})
"""Machines whose events come from others; the actor of all other events is the agent itself."""

Words = Callable[[Any, Transition], str]


def _as_it_is(event: Event, _transition: Transition) -> str:
    says = describe(event)
    return f"{type(event).__name__}: {says}" if says else type(event).__name__


def _untold(_event: Event, _transition: Transition) -> str:
    return ""


def _says(words: str) -> Words:
    """Return fixed words, followed by the reason of the event, if it has one."""
    return lambda event, _transition: words + because(getattr(event, "reason", ""))


def _begun(_event: Event, transition: Transition) -> str:
    record: fleet_task.FleetTask = transition.after.record
    return f"put on the board as {record.state}" + (f", a part of {record.parent}" if record.parent else "")


def _split(event: fleet_task.Split, _transition: Transition) -> str:
    return f"split into {count(len(event.tasks), 'part')}"


def _completed(_event: task.Completed, transition: Transition) -> str:
    record: fleet_task.FleetTask = transition.after.record
    return f"the work is done{', and is to be verified' if record.verify else ''}"


def _merged(event: task.Verified, _transition: Transition) -> str:
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


_LOOKED_AT: Final = f"rule:{look_anew.name}"
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
    task.Started: _untold,
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
    """Return an end of a session that the board does not get: a suspension or an interruption."""
    interrupted = transition.before is not None and transition.before.state is session.State.INTERRUPTING
    match event.outcome:
        case session.Suspended(asked=asked):
            return "its session was suspended" if asked else "its session has suspended itself"
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


def _answered(event: question.QuestionAnswered, _transition: Transition) -> str:
    """Return the answer of an operator, in words."""
    verdict, text = event.answer.verdict, event.answer.text
    return f"{_VERDICTS[verdict]} Q{event.number}{because(text)}"


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


def chapters(lines: tuple[Line, ...]) -> tuple[Chapter, ...]:
    """Return the lines with repetitions folded: from the front, the longest cover first, then the shortest passage."""
    told: list[Chapter] = []
    at = 0
    while at < len(lines):
        length, times = max(_repeats(lines, at), key=lambda each: (each[0] * each[1], -each[0]))
        told.append(_chapter(lines[at : at + length * times], length))
        at += length * times
    return tuple(told)


LONGEST: Final = 12
"""The longest repeated passage, in lines: more than one attempt at a task has."""


def _repeats(lines: tuple[Line, ...], at: int) -> list[tuple[int, int]]:
    """Return the passages that begin at ``at``: their lengths, and how often each repeats."""
    found = [(1, 1)]
    for length in range(1, LONGEST + 1):
        passage = [each.said for each in lines[at : at + length]]
        times, then = 1, at + length
        while [each.said for each in lines[then : then + length]] == passage and then < len(lines):
            times, then = times + 1, then + length
        found += [(length, times)] if times > 1 else []
    return found


def _chapter(lines: tuple[Line, ...], length: int) -> Chapter:
    merged = tuple(_merge(lines[at::length]) for at in range(length))
    return Chapter(len(lines) // length, lines[0].at_ms, lines[-1].at_ms, merged)


def _merge(lines: tuple[Line, ...]) -> Line:
    """Merge equal lines into one, with all actors."""
    by, to = (", ".join(dict.fromkeys(names)) for names in ([each.by for each in lines], [each.to for each in lines]))
    return replace(lines[0], by=by, to=to)
