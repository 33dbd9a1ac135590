"""The questions of a fleet's agents in words, with the names by which operators answer them.

A question is named by its agent and its number, as ``ann/Q3``. Where no other question that waits has the number, and
no task has the name, ``Q3`` is enough.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker.question_model import (
    REF,
    AnswerOverdue,
    Kind,
    Question,
    QuestionAnswered,
    QuestionAsked,
    Questions,
    QuestionsOpened,
)
from lifefold.core.kernel import Aggregate

SHELLS: Final = frozenset({"bash", "shell", "sh", "exec", "run_shell_command", "execute"})
"""The names of tools that run commands, in lower case."""

MOST_SHOWN: Final = 300
"""The most characters of a command or of a question in a sentence."""

_NAME: Final = re.compile(r"(?:(?P<agent>.+)/)?Q(?P<number>\d{1,9})")


class Asked(msgspec.Struct, frozen=True):
    """A question of an agent; ``until_ms`` is when silence refuses it, in Unix milliseconds, and 0 is never."""

    agent: str
    question: Question
    until_ms: int = 0

    @property
    def name(self) -> str:
        """Its name for operators."""
        return name_of(self.agent, self.question.number)

    @property
    def is_permission(self) -> bool:
        """Whether it asks for a permission."""
        return self.question.kind is Kind.PERMISSION

    def sentence(self) -> str:
        """Return what is asked: ``ann asks: may it run `make`?``."""
        return f"{self.agent} asks: {words(self.question)}"


def name_of(agent: str, number: int) -> str:
    """Return the name of a question for operators."""
    return f"{agent}/Q{number}"


def words(asked: Question | QuestionAsked) -> str:
    """Return a question, or a permission as a question."""
    if asked.kind is Kind.QUESTION:
        choices = f" ({' or '.join(asked.choices)})" if asked.choices else ""
        return _shown(asked.text) + choices
    if asked.tool.lower() in SHELLS and asked.subject:
        return f"may it run `{_shown(asked.subject)}`?"
    what = asked.subject or asked.input
    return f"may it use {_shown(asked.tool)}{f' on `{_shown(what)}`' if what else ''}?"


def described(event: QuestionsOpened | QuestionAsked | QuestionAnswered) -> str:
    """Return an event of questions in words, without its token."""
    match event:
        case QuestionsOpened(task=task, epoch=epoch):
            return f"{task}, claim {epoch}"
        case QuestionAsked():
            return words(event)
        case QuestionAnswered(number=number, answer=answer):
            return f"Q{number} {answer.verdict}{f': {_shown(answer.text)}' if answer.text else ''}"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]}…"


def waiting(aggregates: Mapping[str, Aggregate]) -> Iterator[Asked]:
    """Yield the questions that wait for an operator, by agent, the oldest first."""
    for name in sorted(aggregates):
        of = aggregates[name]
        if of.kind == worker.KIND:
            yield from of_agent(of)


def of_agent(of: Aggregate) -> Iterator[Asked]:
    """Yield the questions of a worker that wait, the oldest first."""
    entity = of.entities.get(REF)
    if entity is None:
        return
    timer = entity.find(AnswerOverdue.__name__)
    until_ms = timer.deadline_ms or 0 if timer is not None else 0
    record: Questions = entity.record
    for place, each in enumerate(record.waiting):
        yield Asked(of.key, each, 0 if place else until_ms)


def is_short(name: str) -> bool:
    """Tell whether a name is a number without an agent, as ``Q3``."""
    return "/" not in name and _NAME.fullmatch(name) is not None


def numbered(aggregates: Mapping[str, Aggregate], name: str) -> list[str]:
    """Return the full names of the questions that wait and have this short name."""
    return [each.name for each in waiting(aggregates) if f"Q{each.question.number}" == name]


def meant(aggregates: Mapping[str, Aggregate], name: str) -> tuple[str, int] | None:
    """Return the agent and the number of a question that a name stands for; None if it stands for none.

    A full name is that of a question also if no such question waits.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    agent, number = found["agent"], int(found["number"])
    if agent is not None:
        return (agent, number) if f"{worker.KIND}/{agent}" in aggregates else None
    named = [each for each in waiting(aggregates) if each.question.number == number]
    return (named[0].agent, number) if len(named) == 1 else None
