"""The states, the events and the record of the questions of a worker."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar, Final

import msgspec

from lifefold.core.kernel import Aggregate, Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.standing import StandingAnswer, first_match

REF: Final = "questions"

MOST_WAITING: Final = 20
"""The most questions of one session that wait at a time; one more is refused."""

MOST_KEPT: Final = 100
"""The most answers of one claim that are kept for an asker that asks again; the oldest are forgotten first."""

MOST_CHARACTERS: Final = 10_000
"""The most characters of each text of a question: its asker cuts longer ones."""

MOST_CHOICES: Final = 20
"""The most choices of a question."""


class State(AnyLifecycleState):
    """The three states: no session may ask, no question waits, or at least one waits."""

    CLOSED = "Closed"
    OPEN = "Open"
    WAITING = "Waiting"


class Kind(StrEnum):
    """What is asked for: the permission to use a tool, or an answer in words."""

    PERMISSION = "permission"
    QUESTION = "question"


class Verdict(StrEnum):
    """The end of a question: an answer in words, a permission, a refusal, or silence, which is a refusal too."""

    ANSWERED = "answered"
    ALLOWED = "allowed"
    REFUSED = "refused"
    EXPIRED = "expired"


class Answer(msgspec.Struct, frozen=True):
    """The answer to a question: its verdict, its text, and the number of the standing answer; 0 for an operator's."""

    verdict: Verdict
    text: str = ""
    standing: int = 0


class Question(msgspec.Struct, frozen=True):
    """One question. ``number`` is for operators, ``id`` is the asker's. Without an ``answer`` it waits.

    A permission has the name of the ``tool``, the ``subject`` that the tool acts on, and its ``input`` as JSON. A
    question has a ``text`` and perhaps ``choices``. ``asked_ms`` is the asker's time, in Unix milliseconds.
    """

    number: int
    id: str
    kind: Kind = Kind.QUESTION
    tool: str = ""
    subject: str = ""
    input: str = ""
    text: str = ""
    choices: tuple[str, ...] = ()
    asked_ms: int = 0
    answer: Answer | None = None


class Terms(msgspec.Struct, frozen=True):
    """The terms of a fleet's questions: the time until silence is a refusal (0 is never), and the standing answers."""

    timeout_ms: int = 0
    answers: tuple[StandingAnswer, ...] = ()


class QuestionsOpened(Event, frozen=True):
    """A session works at claim ``epoch`` of ``task``, and may ask with the claim's ``token``."""

    opaque: ClassVar[tuple[str, ...]] = ("token",)

    task: str = "T1"
    epoch: int = 1
    token: str = ""

    @classmethod
    def examples(cls) -> tuple["QuestionsOpened", ...]:
        """Return sessions of two claims."""
        return cls(), cls(epoch=2)


class QuestionsClosed(Event, frozen=True):
    """No session works at the claim any more."""


class QuestionAsked(Event, frozen=True):
    """The session of a claim asks, with the claim's ``token``. ``is_cut``: the subject is longer than it is here."""

    opaque: ClassVar[tuple[str, ...]] = ("input", "asked_ms")

    task: str = ""
    epoch: int = 0
    token: str = ""
    id: str = ""
    kind: Kind = Kind.QUESTION
    tool: str = ""
    subject: str = ""
    input: str = ""
    text: str = ""
    choices: tuple[str, ...] = ()
    is_cut: bool = False
    asked_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["QuestionAsked", ...]:
        """Return two permissions and a question of a first claim, and one without an identifier."""
        first = cls("T1", 1, id="a", kind=Kind.PERMISSION, tool="Bash", subject="make")
        return (
            first,
            replace(first, id="s", tool="Read", subject="a"),
            cls("T1", 1, id="b", text="which?"),
            cls("T1", 1),
        )

    @classmethod
    def examples_for(cls, record: Any) -> tuple["QuestionAsked", ...]:
        """Return a permission, a question, one with a standing answer, and one with a forged token."""
        mine = cls(record.task, record.epoch, record.token)
        leave = replace(mine, id="a", kind=Kind.PERMISSION, tool="Bash", subject="make")
        standing = (
            replace(leave, id=f"s{n}", tool=each.tool, subject=each.matches)
            for n, each in enumerate(record.terms.answers)
        )
        return leave, replace(mine, id="b", text="which?"), *standing, replace(leave, token=f"not {record.token}")


class QuestionAnswered(Event, frozen=True):
    """An operator answers question ``number``."""

    number: int = 0
    answer: Answer = Answer(Verdict.REFUSED)

    @classmethod
    def examples(cls) -> tuple["QuestionAnswered", ...]:
        """Return every verdict on the first three questions."""
        verdicts = (Verdict.ANSWERED, Verdict.ALLOWED, Verdict.REFUSED)
        return tuple(cls(number, Answer(verdict, "so")) for number in (1, 2, 3) for verdict in verdicts)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["QuestionAnswered", ...]:
        """Return every verdict on each question that is kept, and one on a question that does not exist."""
        verdicts = (Verdict.ANSWERED, Verdict.ALLOWED, Verdict.REFUSED)
        known = (cls(each.number, Answer(verdict, "so")) for each in record.questions for verdict in verdicts)
        return *known, cls(record.asked + 1)


class AnswerOverdue(Event, frozen=True):
    """No operator has answered the oldest question in time."""


class Questions(Record, frozen=True):
    """The questions of one claim, oldest first. ``asked`` is the number of the last one, over all claims."""

    opaque: ClassVar[tuple[str, ...]] = ("token",)

    state: State = State.CLOSED
    terms: Terms = Terms()
    task: str = ""
    epoch: int = 0
    token: str = ""
    asked: int = 0
    questions: tuple[Question, ...] = ()

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The questions that wait for an answer, oldest first."""
        return tuple(each for each in self.questions if each.answer is None)

    def with_id(self, name: str) -> Question | None:
        """Return the question of an asker's identifier."""
        return next((each for each in self.questions if each.id == name), None)

    def numbered(self, number: int) -> Question | None:
        """Return the question of a number."""
        return next((each for each in self.questions if each.number == number), None)

    def normal_form(self) -> "Questions":
        """Return the record without texts and times, which no rule reads again."""
        return replace(self, questions=tuple(_plain(each) for each in self.questions))


def _plain(each: Question) -> Question:
    answer = each.answer and Answer(each.answer.verdict, standing=each.answer.standing)
    return Question(each.number, each.id, each.kind, answer=answer)


def refused_ask(q: Questions, e: QuestionAsked) -> str:
    """Return why a question is refused; empty if it is accepted."""
    return next(_against(q, e), "")


def _against(q: Questions, e: QuestionAsked) -> Iterator[str]:
    if q.state is State.CLOSED:
        yield "nothing can be asked now: no session works at a task here, or its turn is being interrupted"
    if (e.task, e.epoch) != (q.task, q.epoch):
        yield f"claim {e.epoch} of {e.task} is over"
    if e.token != q.token:
        yield "this is not the token of the claim"
    if not e.id:
        yield "a question needs an identifier"
    if any(len(each) > MOST_CHARACTERS for each in (e.id, e.tool, e.subject, e.input, e.text, *e.choices)):
        yield f"a text of a question has at most {MOST_CHARACTERS} characters"
    if len(e.choices) > MOST_CHOICES:
        yield f"a question has at most {MOST_CHOICES} choices"
    if q.with_id(e.id) is None and len(q.waiting) >= MOST_WAITING:
        yield f"{MOST_WAITING} questions of this session wait already; ask again when one of them is answered"


def refused_answer(q: Questions, e: QuestionAnswered) -> str:
    """Return why an answer is refused; empty if it is accepted."""
    found = q.numbered(e.number)
    if found is None:
        return "there is no such question now: its session is over, or it was never asked"
    if found.answer is not None:
        return f"it is {found.answer.verdict} already"
    fitting = Verdict.ALLOWED if found.kind is Kind.PERMISSION else Verdict.ANSWERED
    if e.answer.verdict in {fitting, Verdict.REFUSED}:
        return ""
    return _INSTEAD[found.kind]


_INSTEAD: Final = {
    Kind.PERMISSION: "it asks for a permission: approve or reject it",
    Kind.QUESTION: "it asks for an answer in words: answer or reject it",
}


def standing_answer(q: Questions, e: QuestionAsked) -> Answer | None:
    """Return the standing answer about a permission; None if no entry of the fleet file matches."""
    if e.kind is not Kind.PERMISSION:
        return None
    number = first_match(q.terms.answers, e.tool, e.subject, is_cut=e.is_cut)
    if not number:
        return None
    allows = q.terms.answers[number - 1].allows
    said = "allows" if allows else "denies"
    return Answer(Verdict.ALLOWED if allows else Verdict.REFUSED, f"entry {number} of [[answers]] {said} it", number)


def expired(timeout_ms: int) -> Answer:
    """Return the answer that silence gives."""
    return Answer(Verdict.EXPIRED, f"no operator has answered within {timeout_ms // 1_000} s")


def waits(worker: Aggregate) -> bool:
    """Tell whether a question of a worker waits for an operator."""
    return REF in worker.entities and worker.entities[REF].state is State.WAITING


def settled(questions: tuple[Question, ...], number: int, answer: Answer) -> tuple[Question, ...]:
    """Return the questions with an answer to one of them; an answered question no longer has its input."""
    return tuple(replace(each, answer=answer, input="") if each.number == number else each for each in questions)
