"""The history of a task: a fold over the transitions that concern it, as lines, oldest first.

The transitions of a task are those of its own entity, and those of its owner while the owner has the task. If two
machines report the same fact, the story has it once. Repeated lines, or repeated passages of several lines, become one
chapter with the number of repetitions.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from pyrsistent import PVector, pvector

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch.task_messages import MAILBOX
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, question
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.explain.why.event_words import OF_OWNER, OF_TASK, as_it_is, untold
from lifefold.interpreters.explain.why.phrases import because


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


NO_LINES: Final[PVector[Line]] = pvector()
"""The lines of a story that has not begun. A long story shares them with its earlier versions."""


class Story(msgspec.Struct, frozen=True):
    """The history of a task. ``owner`` is the worker that has it; ``sessions`` counts those of its current claim.

    ``attempts`` counts the claims, without those that only verify or merge done work.
    """

    task: str
    lines: PVector[Line] = NO_LINES
    owner: str = ""
    sessions: int = 0
    attempts: int = 0


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
        is_attempt = not isinstance(event, fleet_task.Handed)
        story = replace(story, sessions=0, attempts=story.attempts + is_attempt)
    words = OF_TASK.get(type(event), as_it_is)(event, transition)
    to = event.owner if isinstance(event, task.Claimed) else ""
    return _told(story, Line(transition.at_ms, who(transition.actor), words, to)) if words else story


def _of_mailbox(story: Story, transition: Transition) -> Story:
    event = transition.event
    if not isinstance(event, mailbox.OperatorMessageArrived):
        return story
    return _told(story, Line(transition.at_ms, who(transition.actor), f"sent a message for it{because(event.text)}"))


def _of_owner(story: Story, transition: Transition) -> Story:
    event, words = transition.event, OF_OWNER.get(type(transition.event), untold)
    if isinstance(event, session.SessionStarted) and transition.machine == "session":
        story = replace(story, sessions=story.sessions + 1)
    said = words(event, transition)
    by = transition.actor if transition.machine in _TOLD_IT else story.owner
    return _told(story, Line(transition.at_ms, who(by), said)) if said else story


def _told(story: Story, line: Line) -> Story:
    return replace(story, lines=story.lines.append(line))


def who(actor: str) -> str:
    """Return an actor for display: the name of an agent, the fleet for a rule of it, or the actor itself."""
    kind, _, name = actor.replace("/", ":", 1).partition(":")
    return {"worker": name, "rule": "the fleet"}.get(kind, actor)


_TOLD_IT: Final = frozenset({mailbox.machine.name, desired_state.machine.name, question.REF})
"""Machines whose events come from others; the actor of all other events is the agent itself."""


def chapters(lines: Sequence[Line]) -> tuple[Chapter, ...]:
    """Return the lines with repetitions folded: from the front, the longest cover first, then the shortest passage."""
    made: list[Chapter] = []
    at, lines = 0, tuple(lines)
    while at < len(lines):
        length, times = max(_repeats(lines, at), key=lambda each: (each[0] * each[1], -each[0]))
        made.append(_chapter(lines[at : at + length * times], length))
        at += length * times
    return tuple(made)


LONGEST: Final = 12
"""The longest repeated passage, in lines: more than one attempt at a task has."""


def _repeats(lines: Sequence[Line], at: int) -> list[tuple[int, int]]:
    """Return the passages that begin at ``at``: their lengths, and how often each repeats."""
    found = [(1, 1)]
    for length in range(1, LONGEST + 1):
        passage = [each.said for each in lines[at : at + length]]
        times, then = 1, at + length
        while [each.said for each in lines[then : then + length]] == passage and then < len(lines):
            times, then = times + 1, then + length
        found += [(length, times)] if times > 1 else []
    return found


def _chapter(lines: Sequence[Line], length: int) -> Chapter:
    merged = tuple(_merge(lines[at::length]) for at in range(length))
    return Chapter(len(lines) // length, lines[0].at_ms, lines[-1].at_ms, merged)


def _merge(lines: Sequence[Line]) -> Line:
    """Merge equal lines into one, with all actors."""
    by, to = (", ".join(dict.fromkeys(names)) for names in ([each.by for each in lines], [each.to for each in lines]))
    return replace(lines[0], by=by, to=to)
