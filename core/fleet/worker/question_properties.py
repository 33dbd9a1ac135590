"""The properties of a worker's questions: none is lost, and each is answered once, in its claim."""

from typing import Any, Final

from lifefold.core.fleet.worker.question_model import (
    MOST_KEPT,
    MOST_WAITING,
    AnswerOverdue,
    Question,
    QuestionAnswered,
    QuestionAsked,
    Questions,
    QuestionsClosed,
    QuestionsOpened,
    State,
    Verdict,
)
from lifefold.core.kernel import Property, Transition, accepts, always, always_step, sometimes
from lifefold.core.lifecycles.property_forms import exits_on, keeps_time, leads_where
from lifefold.effects import HoldTimeLimit


def _before(step: Transition) -> Questions | None:
    return None if step.before is None else step.before.record


def are_answered_once(step: Transition) -> bool:
    """An answer that is kept never changes."""
    before = _before(step)
    if before is None:
        return True
    now: Questions = step.after.record
    was = {each.number: each.answer for each in before.questions if each.answer is not None}
    return all(each.answer == was[each.number] for each in now.questions if each.number in was)


def are_never_lost(step: Transition) -> bool:
    """A question that waits is answered, or waits on; only the end of its session drops it."""
    before = _before(step)
    if before is None or isinstance(step.event, QuestionsClosed):
        return True
    kept = {each.number: each for each in step.after.record.questions}
    return all(_is_the_same(each, kept.get(each.number)) for each in before.waiting)


def _is_the_same(was: Question, now: Question | None) -> bool:
    return now is not None and (now.id, now.kind, now.asked_ms) == (was.id, was.kind, was.asked_ms)


def new_answers_have_a_cause(step: Transition) -> bool:
    """Only an operator, a standing answer, or a time that is set answers a question, one at a time."""
    before = _before(step)
    if before is None:
        return True
    was = {each.number for each in before.questions if each.answer is not None}
    now: Questions = step.after.record
    new = [each for each in now.questions if each.answer is not None and each.number not in was]
    match step.event:
        case QuestionAnswered(number=number, answer=answer):
            return [(each.number, each.answer) for each in new] == [(number, answer)]
        case QuestionAsked(id=asked):
            return all(each.id == asked and each.answer is not None and each.answer.standing for each in new)
        case AnswerOverdue():
            return [each.number for each in new] == [before.waiting[0].number] and now.terms.timeout_ms > 0
        case _:
            return not new


def answers_are_of_their_claim(step: Transition) -> bool:
    """No answer of an earlier claim is kept, so none is given to another claim's session."""
    before = _before(step)
    if before is None or not isinstance(step.event, QuestionsOpened):
        return True
    now: Questions = step.after.record
    return (before.task, before.epoch) == (now.task, now.epoch) or not now.questions


def answers_are_kept(step: Transition) -> bool:
    """An answer is kept for an asker that asks again, until the next claim or until enough newer ones are there."""
    before = _before(step)
    now: Questions = step.after.record
    if before is None or (before.task, before.epoch) != (now.task, now.epoch):
        return True
    kept = {each.number for each in now.questions}
    lost = [each for each in before.questions if each.answer is not None and each.number not in kept]
    return not lost or len(now.questions) - len(now.waiting) == MOST_KEPT


def holds_the_time_limit(step: Transition) -> bool:
    """The time limit of the session is held when a question begins to wait, and goes on with the last answer."""
    asked = [each.held for each in step.effects if isinstance(each, HoldTimeLimit)]
    if step.before is None or State.WAITING not in {step.before.state, step.after.state}:
        return not asked
    if step.before.state is step.after.state or step.after.state is State.CLOSED:
        return not asked
    return asked == [step.after.state is State.WAITING]


def is_asked_once(q: Questions) -> bool:
    """No two questions have one identifier, or one number."""
    ids, numbers = {each.id for each in q.questions}, {each.number for each in q.questions}
    return len(ids) == len(numbers) == len(q.questions)


def silence_ends_where_it_may(q: Questions) -> bool:
    """A question expires only where the fleet file sets a time."""
    is_expired = any(each.answer is not None and each.answer.verdict is Verdict.EXPIRED for each in q.questions)
    return not is_expired or q.terms.timeout_ms > 0


def is_within_limits(q: Questions) -> bool:
    """The questions that wait, and the answers that are kept, are within their limits."""
    return len(q.waiting) <= MOST_WAITING and len(q.questions) - len(q.waiting) <= MOST_KEPT


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("questions wait in Waiting, and only there", lambda e: (e.state is State.WAITING) == bool(e.record.waiting)),
    always("a question is asked once", lambda e: is_asked_once(e.record)),
    always("silence ends a question only where a time is set", lambda e: silence_ends_where_it_may(e.record)),
    always("questions are within their limits", lambda e: is_within_limits(e.record)),
    always_step("a question is answered at most once", are_answered_once),
    always_step("no question that waits is lost before its session is over", are_never_lost),
    always_step("every answer has its cause", new_answers_have_a_cause),
    always_step("an answer is kept for its asker until the claim is over", answers_are_kept),
    always_step("the time limit of a session stands still exactly while a question waits", holds_the_time_limit),
    always_step("no answer is kept after its claim", answers_are_of_their_claim),
    leads_where(
        "a session opens the questions, and its end closes them",
        {QuestionsOpened: (State.OPEN,), QuestionsClosed: (State.CLOSED,)},
    ),
    accepts("a question that waits can be answered", {State.WAITING: (QuestionAnswered,)}),
    accepts("the session of a claim can ask", {(State.OPEN, State.WAITING): (QuestionAsked,)}),
    *keeps_time({AnswerOverdue: ((State.WAITING,), lambda q: q.terms.timeout_ms or None)}),
    *exits_on(State.CLOSED, QuestionsOpened),
    *exits_on(State.OPEN, QuestionsClosed),
    *exits_on(State.WAITING, QuestionsClosed),
    sometimes("a question waits", lambda e: e.state is State.WAITING),
)
