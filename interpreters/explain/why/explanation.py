"""All that is said of a task, as one value."""

import msgspec

from lifefold.interpreters.explain.why.chain import Link, chain
from lifefold.interpreters.explain.why.now import seen, sentence
from lifefold.interpreters.explain.why.scene import FleetView
from lifefold.interpreters.explain.why.story import Chapter, Story, chapters
from lifefold.interpreters.explain.why.ways import Way, onward, ways


class Cause(msgspec.Struct, frozen=True):
    """A task, what is said of it, and those because of which it does not go on."""

    task: str
    state: str
    said: str
    because_of: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True):
    """Why a task is where it is. ``reason`` is the whole of what ``sentence`` has in a line; times are Unix time.

    ``causes`` begins with the task itself; ``onward`` says what moves it on, ``ways`` are what people can say.
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
    ways: tuple[Way, ...]


def explain(scene: FleetView, story: Story) -> Explanation:
    """Explain a task at a moment, by its story."""
    now = msgspec.structs.replace(scene, sessions=story.sessions)
    return Explanation(
        task=now.name,
        state=now.job.state,
        since_ms=now.entity.entered_ms,
        owner=now.job.owner,
        sentence=sentence(now),
        reason=now.job.reason or now.job.failure,
        causes=tuple(_cause(now, link) for link in chain(now)),
        story=chapters(story.lines),
        onward=onward(now),
        ways=ways(now),
    )


def _cause(scene: FleetView, link: Link) -> Cause:
    return Cause(link.task, link.state, f"{link.task} {seen(scene, link.task)}", link.because_of)
