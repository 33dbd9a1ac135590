"""The questions of a worker's session: what an agent asks an operator, and the answers.

A question asks for the *permission* to use a tool, or is a *question* in words. It is ASKED, and then ANSWERED, REFUSED
or EXPIRED, once. It is DROPPED with its session: no process waits for the answer any more. A worker has one entity for
all its questions, which is *Waiting* while at least one of them waits.

- A question has an identifier that its asker gives. An ask with a known identifier is the same question, so an asker
  that has crashed asks again and gets the same answer. Answers are kept until the claim is over.
- Only the session of the claim can ask, and proves that with the claim's token. Only operators answer.
- An urgent message for a running session ends its turn. No question is accepted until the session has taken it: with
  the end of the turn no process would wait for the answer any more.
- A nudge interrupts the turn of a silent session, too. No question is accepted until the session has shown a sign.
- A standing answer of the fleet file decides about a permission at once.
- Silence is a refusal after ``Terms.timeout_ms``, and waits for ever without it. The time counts from the moment when
  the question is the oldest one that waits.

While a question waits, the time limit of the session stands still, and the stall detector does not watch it.
"""

from collections.abc import Iterator
from typing import Any, Final, Never

from lifefold.core.fleet.worker import assignment, stall_detector, steering
from lifefold.core.fleet.worker.question_model import (
    MOST_KEPT,
    MOST_WAITING,
    REF,
    Answer,
    AnswerOverdue,
    Kind,
    Question,
    QuestionAnswered,
    QuestionAsked,
    Questions,
    QuestionsClosed,
    QuestionsOpened,
    State,
    Terms,
    Verdict,
    expired,
    refused_answer,
    refused_ask,
    settled,
    standing_answer,
    waits,
)
from lifefold.core.fleet.worker.question_properties import PROPERTIES
from lifefold.core.kernel import (
    STAY,
    Aggregate,
    Dispatch,
    Machine,
    Phase,
    Step,
    Transition,
    after,
    anywhere,
    replace,
    row,
)
from lifefold.core.lifecycles import session
from lifefold.effects import HoldTimeLimit, RunSession

__all__ = [
    "MOST_KEPT", "MOST_WAITING", "REF", "Answer", "AnswerOverdue", "Kind", "Question", "QuestionAnswered",
    "QuestionAsked", "Questions", "QuestionsClosed", "QuestionsOpened", "State", "Terms", "Verdict", "are_open_rightly",
    "expired", "keep_open", "machine", "refused_answer", "refused_ask", "waits",
]  # fmt: skip


def is_known(q: Questions, e: QuestionAsked) -> bool:
    """The session has asked this before, under the same identifier."""
    return not refused_ask(q, e) and q.with_id(e.id) is not None


def is_answered_already(q: Questions, e: QuestionAsked) -> bool:
    """A standing answer of the fleet file decides about the permission."""
    return not refused_ask(q, e) and standing_answer(q, e) is not None


def may_ask(q: Questions, e: QuestionAsked) -> bool:
    """The session of the claim asks within the limits."""
    return not refused_ask(q, e)


def is_the_last(q: Questions, e: QuestionAnswered) -> bool:
    """The answer fits the only question that waits."""
    return not refused_answer(q, e) and len(q.waiting) == 1


def is_the_oldest(q: Questions, e: QuestionAnswered) -> bool:
    """The answer fits the oldest of the questions that wait."""
    return not refused_answer(q, e) and q.waiting[0].number == e.number


def may_answer(q: Questions, e: QuestionAnswered) -> bool:
    """The answer fits a question that waits."""
    return not refused_answer(q, e)


def is_alone(q: Questions, _e: AnswerOverdue) -> bool:
    """Only one question waits."""
    return len(q.waiting) == 1


def begin(q: Questions, e: QuestionsOpened) -> Step[Questions, Never]:
    """Begin with the session of a claim; the answers of an earlier claim are forgotten."""
    if (e.task, e.epoch) == (q.task, q.epoch):
        return Step(replace(q, token=e.token))
    return Step(replace(q, task=e.task, epoch=e.epoch, token=e.token, questions=()))


def drop(q: Questions, _e: QuestionsClosed) -> Step[Questions, Never]:
    """Drop the questions that wait; the answers are kept for a later session of the claim."""
    return Step(replace(q, questions=tuple(each for each in q.questions if each.answer is not None)))


def same(q: Questions, _e: QuestionAsked) -> Step[Questions, Never]:
    """Keep the question, and its answer."""
    return Step(q)


def ask(q: Questions, e: QuestionAsked) -> Step[Questions, Never]:
    """Keep the question, with the standing answer if there is one; the oldest answers are forgotten beyond a limit."""
    number = q.asked + 1
    answer = standing_answer(q, e)
    asked = Question(number, e.id, e.kind, e.tool, e.subject, e.input, e.text, e.choices, e.asked_ms, answer)
    return Step(replace(q, asked=number, questions=_within_limits((*q.questions, asked))))


def ask_and_wait(q: Questions, e: QuestionAsked) -> Step[Questions, HoldTimeLimit]:
    """Keep the first question that waits, and hold the time limit of the session."""
    return Step(ask(q, e).record, (HoldTimeLimit(held=True),))


def settle_and_go_on(q: Questions, e: QuestionAnswered) -> Step[Questions, HoldTimeLimit]:
    """Keep the last answer, and let the time limit of the session go on."""
    return Step(settle(q, e).record, (HoldTimeLimit(held=False),))


def expire_and_go_on(q: Questions, e: AnswerOverdue) -> Step[Questions, HoldTimeLimit]:
    """Refuse the only question that waits, and let the time limit of the session go on."""
    return Step(expire(q, e).record, (HoldTimeLimit(held=False),))


def settle(q: Questions, e: QuestionAnswered) -> Step[Questions, Never]:
    """Keep the operator's answer."""
    return Step(replace(q, questions=_within_limits(settled(q.questions, e.number, e.answer))))


def expire(q: Questions, _e: AnswerOverdue) -> Step[Questions, Never]:
    """Refuse the oldest question that waits."""
    refusal = expired(q.terms.timeout_ms)
    return Step(replace(q, questions=_within_limits(settled(q.questions, q.waiting[0].number, refusal))))


def _within_limits(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """Forget the oldest answers beyond ``MOST_KEPT``; questions that wait are all kept."""
    answered = [each.number for each in questions if each.answer is not None]
    forgotten = frozenset(answered[: max(0, len(answered) - MOST_KEPT)])
    return tuple(each for each in questions if each.number not in forgotten)


def silence(q: Questions) -> int | None:
    """Return how long the oldest question waits, in milliseconds; None is for ever."""
    return q.terms.timeout_ms or None


_ASKED_IN: Final = (State.OPEN, State.WAITING)

machine: Machine[Any] = Machine(
    REF,
    Questions(),
    about="what the session of a worker asks an operator, and the answers",
    rows=(
        row(State.CLOSED, QuestionsOpened, State.OPEN, begin),
        row(_ASKED_IN, QuestionsClosed, State.CLOSED, drop),
        row(_ASKED_IN, QuestionAsked, STAY, same, when=is_known),
        row(_ASKED_IN, QuestionAsked, STAY, ask, when=is_answered_already),
        row(State.OPEN, QuestionAsked, State.WAITING, ask_and_wait, when=may_ask),
        row(State.WAITING, QuestionAsked, STAY, ask, when=may_ask),
        row(State.WAITING, QuestionAnswered, State.OPEN, settle_and_go_on, when=is_the_last),
        row(State.WAITING, QuestionAnswered, State.WAITING, settle, when=is_the_oldest, restart=True),
        row(State.WAITING, QuestionAnswered, STAY, settle, when=may_answer),
        row(State.WAITING, AnswerOverdue, State.OPEN, expire_and_go_on, when=is_alone),
        row(State.WAITING, AnswerOverdue, State.WAITING, expire, restart=True),
    ),
    during={State.WAITING: after(silence, AnswerOverdue)},
    properties=PROPERTIES,
    rests=anywhere,
)


def _may_be_asked(worker: Aggregate) -> bool:
    """Tell whether a session works at the claim of a worker, and its turn is not being interrupted."""
    lives = worker.record("session").state in {session.State.SPAWNING, session.State.RUNNING}
    works = lives and worker.record("assignment").state is assignment.State.WORKING
    return works and not _is_interrupted(worker)


def _is_interrupted(worker: Aggregate) -> bool:
    """Tell whether the turn of the running session is to end, for an urgent message or for a nudge."""
    return steering.cancels(worker) or stall_detector.has_nudged(worker)


def keep_open(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Questions are accepted as long as a session works at a claim, except while its turn is being interrupted."""
    may_be, is_open = _may_be_asked(worker), worker.record(REF).state is not State.CLOSED
    if may_be and not is_open:
        brief = worker.record("assignment").brief
        yield Dispatch(REF, QuestionsOpened(brief.task, brief.epoch, brief.token))
    elif is_open and not may_be:
        yield Dispatch(REF, QuestionsClosed())


def are_open_rightly(worker: Aggregate) -> bool:
    """Questions are open exactly while a session works at a claim, and are those of that claim.

    They are closed while an urgent message that the session was given is not taken, and while it has not answered a
    nudge. The running activities tell it: a process of a session that is not to end yet, and no other step of the
    assignment.
    """
    if REF not in worker.entities:
        return True
    q: Questions = worker.record(REF)
    may_ask = _works_at_a_claim(worker) and not _is_interrupted(worker)
    if q.state is State.CLOSED:
        return not may_ask
    brief = worker.record("assignment").brief
    return may_ask and (q.task, q.epoch, q.token) == (brief.task, brief.epoch, brief.token)


def _works_at_a_claim(worker: Aggregate) -> bool:
    """Tell by the running activities whether a session may ask; ``_may_be_asked`` tells it by the states."""
    agent, work = worker.entities["session"], worker.entities["assignment"]
    wanted = [
        each for each in agent.running if isinstance(each.activity, RunSession) and each.phase is not Phase.ENDING
    ]
    lives = bool(wanted) and agent.state is not session.State.INTERRUPTING
    owns = work.state not in {assignment.State.IDLE, assignment.State.WANTING, assignment.State.ORPHANED}
    return lives and owns and all(each.phase is Phase.ENDING for each in work.running)
