"""The story and the transitions of a log in memory, one line each: what the pages of log and timeline are made of.

A line has about 400 bytes. The lines are shared by all browsers, so memory depends on the log and not on its readers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Envelope, Reaction, RulesChanged, RunnerRecovered
from lifefold.effects import Tell
from lifefold.interpreters.cli.log_filter import concerned
from lifefold.interpreters.cli.story import SHOWN, happenings
from lifefold.interpreters.explain.chronicle import Chronicle, News

IDLE_MS: Final = 60_000
"""A time without any transition that is at least so long counts as idle."""


LANES: Final = frozenset({*SHOWN, assignment.machine.name})
"""The machines whose changes of state are found by name."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One transition. ``seq`` is the position of its entry in the log; ``at_ms`` is Unix time in milliseconds.

    ``caused_by`` is the position of the entry whose message was the input, and 0 if no aggregate has sent it. ``tasks``
    and ``agents`` are those that the transition concerns.
    """

    seq: int
    at_ms: int
    aggregate: str
    machine: str
    name: str
    before: str
    after: str
    event: str
    cause: str
    actor: str
    is_move: bool
    caused_by: int
    tasks: tuple[str, ...]
    agents: tuple[str, ...]


class Told(msgspec.Struct, frozen=True, gc=False):
    """One sentence of the story, as ``lifefold log`` prints it. ``seq`` is the position of its entry.

    ``about`` is a task, an agent or a part of the fleet; ``by`` is the operator or the session that has caused it, or
    empty. ``mood`` is ``failed``, ``waits``, ``done`` or empty. A line about no task and no agent is for all of them.
    """

    seq: int
    at_ms: int
    about: str
    said: str
    by: str
    mood: str
    tasks: tuple[str, ...]
    agents: tuple[str, ...]


class Choice(msgspec.Struct, frozen=True):
    """Which lines of a journal are wanted: all of these that are not empty must fit."""

    task: str = ""
    agent: str = ""
    machine: str = ""
    text: str = ""

    def accepts(self, line: Line) -> bool:
        """Tell whether a line is wanted."""
        return (
            (not self.task or self.task in line.tasks)
            and (not self.agent or self.agent in line.agents)
            and (not self.machine or self.machine == line.machine)
            and (not self.text or self.text in f"{line.name} {line.event} {line.cause} {line.actor}".lower())
        )

    def tells(self, told: Told) -> bool:
        """Tell whether a sentence of the story is wanted; ``machine`` chooses transitions only."""
        is_for_all = not (told.tasks or told.agents)
        return (
            (not self.task or is_for_all or self.task in told.tasks)
            and (not self.agent or is_for_all or self.agent in told.agents)
            and (not self.text or self.text in f"{told.about} {told.said} {told.by}".lower())
        )


class Journal:
    """The lines of a log, in its order. One thread adds; any thread reads up to a position that it knows."""

    def __init__(self, attempts: Mapping[str, int] | None = None, there: Mapping[str, Aggregate] | None = None) -> None:
        """Begin without lines, with the attempts before the first one, and with the aggregates that were there."""
        self.lines: Final[list[Line]] = []
        self.story: Final[list[Told]] = []
        self.lanes: Final[dict[tuple[str, str], list[Line]]] = {}
        """The lines of each task, and the changes of state of each session, assignment and run of a service."""
        self.idle: Final[list[tuple[int, int]]] = []
        """The times of at least ``IDLE_MS`` without any transition."""
        self._sent: Final[dict[tuple[str, str, int], int]] = {}
        self._chronicle: Final = Chronicle(attempts, there)

    def add(self, seq: int, aggregate: str, envelope: Envelope, reaction: Reaction) -> None:
        """Add the transitions of the entry at a position."""
        cause = self._sent.pop((envelope.sender, aggregate, envelope.ordinal), 0) if envelope.sender else 0
        for happening, step in zip(happenings(aggregate, reaction), reaction.transitions, strict=True):
            tasks, agents = concerned(aggregate, reaction, step)
            event = happening.event
            line = Line(
                seq,
                step.at_ms,
                aggregate,
                event.entity_type,
                event.entity_id,
                event.from_status,
                event.to_status,
                str(event.metadata["event"]),
                happening.cause,
                event.actor,
                happening.is_move,
                cause,
                _names(tasks),
                _names(agents),
            )
            self._index(line)
            self.lines.append(line)
        for each in reaction.effects:
            if isinstance(each.effect, Tell):
                self._sent[aggregate, each.effect.aggregate, each.effect.ordinal] = seq

        self._tell(seq, aggregate, envelope, reaction)

    def _tell(self, seq: int, aggregate: str, envelope: Envelope, reaction: Reaction) -> None:
        """Add to the story what the entry at a position tells."""
        if aggregate == board.NAME and isinstance(envelope.event, RunnerRecovered):
            news = self._chronicle.recovered(envelope.event, envelope.at_ms)
            if news is not None:
                self.story.append(_told(seq, news, (), ()))
        if isinstance(envelope.event, RulesChanged):
            self.story.append(_told(seq, self._chronicle.rules_changed(envelope.event, envelope.at_ms), (), ()))
        for news, steps in self._chronicle.told(aggregate, reaction):
            found = [concerned(aggregate, reaction, step) for step in steps]
            tasks, agents = (frozenset[str]().union(*each) for each in zip(*found, strict=True))
            self.story.append(_told(seq, news, _names(tasks), _names(agents)))

    def _index(self, line: Line) -> None:
        before_ms = self.lines[-1].at_ms if self.lines else line.at_ms
        if line.at_ms - before_ms >= IDLE_MS:
            self.idle.append((before_ms, line.at_ms))
        if line.machine == "task" or (line.machine in LANES and (line.is_move or not line.before)):
            self.lanes.setdefault((line.machine, line.name), []).append(line)

    def lane(self, machine: str, name: str, until: int) -> list[Line]:
        """Return the lines of one lane, up to a position."""
        found = self.lanes.get((machine, name), [])
        return found[: bisect_right(found, until, key=_seq)]

    def between(self, after: int, until: int) -> Iterator[Line]:
        """Yield the lines of the entries after one position, up to another."""
        begin = bisect_right(self.lines, after, key=_seq)
        end = bisect_right(self.lines, until, key=_seq)
        return (self.lines[number] for number in range(begin, end))

    def chosen(self, choice: Choice, *, before: int, most: int) -> list[Line]:
        """Return the last lines that fit, at most so many, of the entries before a position; the latest is the last."""
        found: list[Line] = []
        number = bisect_left(self.lines, before, key=_seq)
        while number and len(found) < most:
            number -= 1
            if choice.accepts(self.lines[number]):
                found.append(self.lines[number])
        return found[::-1]

    def told(self, choice: Choice, *, before: int, most: int) -> list[Told]:
        """Return the last sentences that fit, at most so many, of the entries before a position, the oldest first."""
        found: list[Told] = []
        number = bisect_left(self.story, before, key=_seq)
        while number and len(found) < most:
            number -= 1
            if choice.tells(self.story[number]):
                found.append(self.story[number])
        return found[::-1]


def _told(seq: int, news: News, tasks: tuple[str, ...], agents: tuple[str, ...]) -> Told:
    return Told(seq, news.at_ms, news.about, news.said, news.by, str(news.mood), tasks, agents)


def _names(found: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(each for each in found if each))


def _seq(line: Line | Told) -> int:
    return line.seq
