"""The explanation of a task, as one value."""

import msgspec

from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.turn_status import TurnStatus
from lifefold.interpreters.explain.why.chain import Link, chain
from lifefold.interpreters.explain.why.fleet_view import FleetView
from lifefold.interpreters.explain.why.now import seen, sentence
from lifefold.interpreters.explain.why.options import Option, onward, options
from lifefold.interpreters.explain.why.story import Chapter, Story, chapters


class Cause(msgspec.Struct, frozen=True):
    """A task, a sentence about it, and the tasks that hinder it."""

    task: str
    state: str
    said: str
    because_of: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True):
    """Why a task is in its state. ``sentence`` shortens ``reason``; times are Unix time in milliseconds.

    ``causes`` begins with the task itself. ``onward`` names what would move the task on, and ``options`` has the
    commands that an operator can give. ``turn`` is the present or last turn of the owner; None without an owner.
    """

    task: str
    state: str
    since_ms: int
    owner: str
    sentence: str
    reason: str
    causes: tuple[Cause, ...]
    story: tuple[Chapter, ...]
    onward: str
    options: tuple[Option, ...]
    turn: TurnStatus | None = None


def explain(view: FleetView, story: Story) -> Explanation:
    """Explain the task of a view, with its story."""
    now = msgspec.structs.replace(view, sessions=story.sessions, attempts=story.attempts)
    return Explanation(
        task=now.name,
        state=now.task.state,
        since_ms=now.entity.entered_ms,
        owner=now.task.owner,
        sentence=sentence(now),
        reason=in_plain_words(now.task.reason or now.task.failure),
        causes=tuple(_cause(now, link) for link in chain(now)),
        story=chapters(story.lines),
        onward=onward(now),
        options=options(now),
        turn=now.turn(now.task.owner),
    )


def _cause(view: FleetView, link: Link) -> Cause:
    return Cause(link.task, link.state, f"{link.task} {seen(view, link.task)}", link.because_of)
