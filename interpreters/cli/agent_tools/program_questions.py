"""The questions of Claude Code's own tool ``AskUserQuestion``, which come to the permission tool as its input.

A permission alone answers none of them: the program then tells its agent that the user did not answer. So each
question is asked in words, and the answers go back in the tool's input, by the text of their questions. The form was
seen with Claude Code 2.1.330.
"""

from typing import Any, Final

import msgspec

from lifefold.core.fleet.worker.question_model import MOST_CHARACTERS, MOST_CHOICES, QuestionAsked
from lifefold.interpreters.cli import inside

TOOL: Final = "AskUserQuestion"
MOST_QUESTIONS: Final = 20
"""The most questions of one call; the program itself allows four."""

SEVERAL: Final = "Several may be chosen."


class Option(msgspec.Struct, frozen=True):
    """One choice of a question."""

    label: str
    description: str = ""


class ProgramQuestion(msgspec.Struct, frozen=True):
    """One question of the tool's input."""

    question: str
    options: tuple[Option, ...] = ()
    is_multiple: bool = msgspec.field(name="multiSelect", default=False)

    @property
    def text(self) -> str:
        """The question with what its choices mean, for an operator."""
        meanings = [f"{each.label}: {each.description.rstrip('.')}." for each in self.options if each.description]
        return " ".join([self.question, *meanings, *([SEVERAL] if self.is_multiple else [])])

    @property
    def is_bounded(self) -> bool:
        """Whether a log accepts the question."""
        longest = max(map(len, (inside.hidden(self.text), *(inside.hidden(each.label) for each in self.options))))
        return bool(self.question.strip()) and longest <= MOST_CHARACTERS and len(self.options) <= MOST_CHOICES


class _Input(msgspec.Struct, frozen=True):
    questions: tuple[ProgramQuestion, ...]


def questions_of(tool: str, given: dict[str, Any]) -> tuple[ProgramQuestion, ...]:
    """Return the questions of a call; none for another tool, and for an input of another form."""
    if tool != TOOL:
        return ()
    try:
        found = msgspec.convert(given, _Input).questions
    except msgspec.ValidationError:
        return ()
    return found if len(found) <= MOST_QUESTIONS and all(each.is_bounded for each in found) else ()


def asked_in_words(question: ProgramQuestion, identifier: str) -> QuestionAsked:
    """Return the question as an agent's question in words, without secrets."""
    choices = tuple(inside.hidden(each.label) for each in question.options)
    return QuestionAsked(id=identifier, text=inside.hidden(question.text), choices=choices)
