"""The stories of all tasks of a log, folded once: the story of a task at each position can be read from its trail.

A trail keeps each line once. The story at a position is a part of its lines, so that the past costs no memory of its
own.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

from lifefold.core.fleet.dispatch.task_messages import MAILBOX
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Envelope, Reaction, RunnerRecovered, Transition
from lifefold.interpreters.explain import status, why

_TASK: Final = "task:"


class Trail:
    """The story of one task, and its length, owner, sessions and attempts at each position at which it has changed."""

    def __init__(self, begin: why.Story) -> None:
        """Begin with a story without lines."""
        self.begin: Final = begin
        self.story = begin
        self._marks: Final[list[tuple[int, int, str, int, int]]] = []

    def becomes(self, seq: int, story: why.Story) -> None:
        """Note the story at a position."""
        if story is not self.story:
            self.story = story
            self._marks.append((seq, len(story.lines), story.owner, story.sessions, story.attempts))

    def at(self, seq: int) -> why.Story:
        """Return the story at a position."""
        found = bisect_right(self._marks, seq, key=lambda mark: mark[0])
        if not found:
            return self.begin
        _, length, owner, sessions, attempts = self._marks[found - 1]
        return why.Story(self.story.task, self.story.lines[:length], owner, sessions, attempts)


class Trails:
    """The trails of all tasks. A transition is told only to the stories that it can concern."""

    def __init__(self, attempts: Mapping[str, int] | None = None, there: Mapping[str, Aggregate] | None = None) -> None:
        """Begin without lines, with the attempts before the first one, and with the aggregates that were there."""
        self._trails: Final[dict[str, Trail]] = {}
        self._attempts: Final = dict(attempts or {})
        self._worked_at: Final = {
            name: task
            for name, of in (there or {}).items()
            if of.kind == worker.KIND and (task := status.assigned_task(of.record(assignment.machine.name)))
        }
        self._owned: Final = dict(self._worked_at)

    def add(self, seq: int, aggregate: str, envelope: Envelope, reaction: Reaction) -> None:
        """Take the entry at a position into account."""
        if aggregate == board.NAME and isinstance(envelope.event, RunnerRecovered):
            for trail in self._trails.values():
                trail.becomes(seq, why.resumed(trail.story, envelope.at_ms))
            return
        for step in reaction.transitions:
            for task in self._concerned(aggregate, step):
                trail = self._of(task)
                trail.becomes(seq, why.tell(trail.story, aggregate, step))

    def at(self, task: str, seq: int) -> why.Story:
        """Return the story of a task at a position of the log."""
        return self._trails[task].at(seq) if task in self._trails else self._begun(task)

    def _of(self, task: str) -> Trail:
        if task not in self._trails:
            self._trails[task] = Trail(self._begun(task))
        return self._trails[task]

    def _begun(self, task: str) -> why.Story:
        """Return the story of a task before its first line."""
        owner = next((name for name, at_work in self._owned.items() if at_work == task), "")
        return why.Story(task, owner=owner, attempts=self._attempts.get(task, 0))

    def _concerned(self, aggregate: str, step: Transition) -> Mapping[str, None]:
        """Return the tasks whose stories a transition can concern."""
        if aggregate == board.NAME:
            prefix = next((each for each in (_TASK, MAILBOX) if step.entity.startswith(each)), None)
            return {} if prefix is None else {step.entity.removeprefix(prefix): None}
        before = self._worked_at.get(aggregate)
        if isinstance(step.event, assignment.Assigned):
            self._worked_at[aggregate] = step.event.brief.task
        found = (before, self._worked_at.get(aggregate))
        return {each: None for each in found if each}
