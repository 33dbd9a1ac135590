"""The ``[fleet.questions]`` and ``[[answers]]`` of a fleet file: what agents may ask operators."""

from collections.abc import Iterator

from msgspec.structs import replace

from lifefold.core.fleet.worker.question_model import Terms
from lifefold.core.policy.standing import StandingAnswer
from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.keys import Key, Section, said, said_but_defaults
from lifefold.interpreters.fleet_file.table import Table

QUESTIONS = "questions"
"""The key of the table that turns questions on."""

ANSWERS = "answers"
"""The key of the standing answers, which turn questions on too."""

_ALLOW = "allow"


class QuestionKeys(Section, header="[fleet.questions]"):
    """Allows agents to ask operators, for a permission or in words, through `lifefold mcp`."""

    timeout = Key(
        forms.duration(1), "how long a question waits for an operator; then it is refused", 0, absent="without limit"
    )


class AnswerKeys(Section, header="[[answers]]"):
    """Standing answers to permissions: the first that matches decides, and no operator is asked."""

    tool = Key(forms.TEXT, "the tool, by its name; `*` stands for any text, `?` for one character", "", required=True)
    matches = Key(
        forms.TEXT,
        "what the tool acts on: its command, path or address, as a pattern; a wildcard of `allow` matches no shell"
        " operator and no `..`",
        "",
        absent="anything",
    )
    answer = Key(forms.choice(_ALLOW, "deny"), "the answer", "deny", required=True)


def read_questions(table: Table) -> Terms:
    """Return the terms of the table ``[fleet.questions]``, without standing answers."""
    found = Terms(table.read(QuestionKeys.timeout))
    table.finish()
    return found


def with_answers(root: Table, terms: Terms | None) -> Terms | None:
    """Return the terms with the standing answers of the file; None if the file has neither."""
    answers = tuple(_answers(root))
    return replace(terms or Terms(), answers=answers) if answers else terms


def _answers(root: Table) -> Iterator[StandingAnswer]:
    for table in root.tables(AnswerKeys):
        allows = table.read(AnswerKeys.answer) == _ALLOW
        yield StandingAnswer(table.read(AnswerKeys.tool), table.read(AnswerKeys.matches), allows)
        table.finish()


def said_questions(terms: Terms | None) -> dict[str, object]:
    """Return the terms in the form of a file; the standing answers are kept in their order."""
    if terms is None:
        return {}
    answers = [_said_answer(each) for each in terms.answers]
    written = said_but_defaults({QuestionKeys.timeout: terms.timeout_ms})
    return {QUESTIONS: written | ({ANSWERS: answers} if answers else {})}


def _said_answer(each: StandingAnswer) -> dict[str, object]:
    answer = _ALLOW if each.allows else "deny"
    written = said({AnswerKeys.tool: each.tool, AnswerKeys.answer: answer})
    return written | said_but_defaults({AnswerKeys.matches: each.matches})
