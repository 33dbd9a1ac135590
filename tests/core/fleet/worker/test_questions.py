"""The questions of a session: asked once, answered once, in their claim; and who is not watched meanwhile."""

from collections.abc import Callable
from typing import Any, Final, Never

import pytest

from aggregate_hand import Hand
from declared import Mutants, instead, must_be_found, must_hold, rebuilt
from fleet_worker import BRIEF, exit_with, following, next_task, start
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, question, quota, stall_detector, steering
from lifefold.core.fleet.worker.question import (
    MOST_KEPT,
    MOST_WAITING,
    REF,
    Answer,
    AnswerOverdue,
    Kind,
    QuestionAnswered,
    QuestionAsked,
    Questions,
    QuestionsClosed,
    QuestionsOpened,
    State,
    Terms,
    Verdict,
)
from lifefold.core.fleet.worker.question_model import MOST_CHARACTERS, MOST_CHOICES
from lifefold.core.kernel import STAY, Aggregate, Envelope, IllegalTransition, Machine, Row, Step, replace, row
from lifefold.core.kernel import after as after_delay
from lifefold.core.lifecycles import session, session_profiles
from lifefold.core.policy.standing import StandingAnswer
from lifefold.effects import CancelTimer, HoldTimeLimit, StartTimer
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.bounded import few_questions
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

TERMS = Terms(60_000, (StandingAnswer("Bash", "pytest*", allows=True), StandingAnswer("Web*")))
LEAVE = QuestionAsked("T1", 2, id="a", kind=Kind.PERMISSION, tool="Bash", subject="make", asked_ms=5)
WORDS = QuestionAsked("T1", 2, id="b", text="which?")
ALLOWED, REFUSED = Answer(Verdict.ALLOWED), Answer(Verdict.REFUSED, "no")


def working(terms: Terms = TERMS, nudge_ms: int | None = None) -> Hand:
    """Return a worker whose session works at claim 2 of T1, and is watched, perhaps with a nudge."""
    of = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann"),
            "stall_detector": stall_detector.StallDetector(limits=stall_detector.Limits(nudge_ms=nudge_ms)),
            REF: Questions(terms=terms),
        },
    )
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    return start(next_task(of))


def after(record: Questions, *events: Any) -> Questions:
    """Return the record after events that it must accept."""
    for each in events:
        step = question.machine.step(record, each)
        assert isinstance(step, Step), each
        record = step.record
    return record


OPEN = after(Questions(terms=TERMS), QuestionsOpened("T1", 2))


def refused(record: Questions, event: Any) -> bool:
    """Tell whether the machine refuses an event."""
    return isinstance(question.machine.step(record, event), IllegalTransition)


def test_a_question_waits_for_the_answer_of_an_operator() -> None:
    """The answer stays for an asker that asks again, and nothing else can change it."""
    of = working().give(REF, LEAVE)
    assert of.state(REF) == "Waiting"
    of.must_refuse(REF, QuestionAnswered(1, Answer(Verdict.ANSWERED, "yes")))
    of.give(REF, QuestionAnswered(1, ALLOWED)).give(REF, LEAVE)
    assert of.state(REF) == "Open"
    (asked,) = of.record(REF).questions
    assert (asked.number, asked.id, asked.asked_ms, asked.answer) == (1, "a", 5, ALLOWED)
    of.must_refuse(REF, QuestionAnswered(1, REFUSED))


def test_a_session_that_waits_is_not_watched() -> None:
    """A new watch begins with the answer; several questions keep it away until the last."""
    of = working()
    assert of.state("stall_detector") == "Fresh"
    of.give(REF, LEAVE).give(REF, WORDS)
    assert of.state("stall_detector") == "Unwatched"
    of.give(REF, QuestionAnswered(1, REFUSED))
    assert of.state("stall_detector") == "Unwatched"
    of.give(REF, QuestionAnswered(2, Answer(Verdict.ANSWERED, "this")))
    assert of.state("stall_detector") == "Fresh"


def test_a_question_is_refused_from_a_nudge_until_its_session_shows_a_sign() -> None:
    """The nudge interrupts the turn, and no process would wait for the answer. Answers stay for the asker."""
    of = working(nudge_ms=90_000).give(REF, replace(LEAVE, subject="pytest"))
    for silent_ms in (60_000, 90_000):
        assert of.state(REF) == "Open"
        of.report("stall_detector", "WatchOutput", stall_detector.Silent(silent_ms))
    assert (of.state("stall_detector"), of.state(REF)) == ("Nudged", "Closed")
    assert question.refused_ask(of.record(REF), WORDS).endswith("its turn is being interrupted")
    of.must_refuse(REF, WORDS)
    of.report("stall_detector", "WatchOutput", stall_detector.Stirred())
    assert (of.state("stall_detector"), of.state(REF)) == ("Answered", "Open")
    assert [each.answer and each.answer.verdict for each in of.record(REF).questions] == [Verdict.ALLOWED]
    assert of.give(REF, WORDS).state(REF) == "Waiting"


def test_a_session_that_is_given_up_after_its_nudge_asks_nothing() -> None:
    """The next session of the agent can ask."""
    of = working(nudge_ms=90_000)
    for silent_ms in (60_000, 90_000, 120_000):
        of.report("stall_detector", "WatchOutput", stall_detector.Silent(silent_ms))
    assert (of.state("session"), of.state(REF)) == ("CoolingDown", "Closed")


def test_the_time_limit_of_a_session_stands_still_while_a_question_waits() -> None:
    """It is held once, however many questions wait, and goes on with the last answer."""
    of = working().give(REF, LEAVE)
    assert of.effects(HoldTimeLimit) == [HoldTimeLimit(held=True)]
    assert of.give(REF, WORDS).effects(HoldTimeLimit) == []
    assert of.give(REF, QuestionAnswered(1, REFUSED)).effects(HoldTimeLimit) == []
    of.elapse(REF, "AnswerOverdue")
    assert of.effects(HoldTimeLimit) == [HoldTimeLimit(held=False)]
    of.give(REF, replace(LEAVE, id="z")).give(REF, QuestionAnswered(3, ALLOWED))
    assert of.effects(HoldTimeLimit) == [HoldTimeLimit(held=False)]
    assert of.give(REF, replace(LEAVE, id="y", subject="pytest")).effects(HoldTimeLimit) == []


def test_a_question_is_dropped_with_its_session_and_its_answers_with_the_claim() -> None:
    """An interrupted session's answers are there for the next session of the claim."""
    of = working().give(REF, LEAVE).give(REF, QuestionAnswered(1, ALLOWED)).give(REF, WORDS)
    of.give("mailbox", mailbox.OperatorMessageArrived("look"))
    assert of.state(REF) == "Closed"
    assert [each.id for each in of.record(REF).questions] == ["a"]
    exit_with(of, session.Success())
    assert [each.id for each in of.record(REF).questions] == ["a"]
    assert of.state(REF) == "Open"
    again = after(of.record(REF), QuestionsClosed(), QuestionsOpened("T1", 3))
    assert (again.questions, again.asked) == ((), 2)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (replace(LEAVE, epoch=1), "claim 1 of T1 is over"),
        (replace(LEAVE, task="T2"), "claim 2 of T2 is over"),
        (QuestionAsked("T1", 2, "x", "a"), "not the token"),
        (replace(LEAVE, id=""), "an identifier"),
        (replace(LEAVE, subject="x" * (MOST_CHARACTERS + 1)), "at most 10000 characters"),
        (replace(WORDS, choices=("x",) * (MOST_CHOICES + 1)), "at most 20 choices"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(event: QuestionAsked, why: str) -> None:
    """Only the session of the claim asks, within the limits."""
    assert why in question.refused_ask(OPEN, event)
    assert refused(OPEN, event)


def test_nothing_is_asked_without_a_session() -> None:
    """The claim may be over, or its session not begun."""
    assert "no session" in question.refused_ask(Questions(terms=TERMS), LEAVE)
    assert refused(Questions(terms=TERMS), LEAVE)


def test_an_answer_has_to_fit_its_question() -> None:
    """A permission is approved, a question is answered, and both can be rejected."""
    asked = after(OPEN, LEAVE, WORDS)
    assert "approve or reject" in question.refused_answer(asked, QuestionAnswered(1, Answer(Verdict.ANSWERED, "x")))
    assert "answer or reject" in question.refused_answer(asked, QuestionAnswered(2, ALLOWED))
    assert "no such question" in question.refused_answer(asked, QuestionAnswered(3, ALLOWED))
    assert question.refused_answer(asked, QuestionAnswered(2, Answer(Verdict.EXPIRED)))
    done = after(asked, QuestionAnswered(2, REFUSED))
    assert "refused already" in question.refused_answer(done, QuestionAnswered(2, REFUSED))


def test_the_fleet_file_answers_at_once() -> None:
    """The question has the number of the entry, and no operator is asked; a question in words never matches."""
    asked = after(OPEN, replace(LEAVE, subject="pytest -q"), replace(LEAVE, id="c", tool="WebFetch", subject="x"))
    assert asked.state is State.OPEN
    first, second = (each.answer for each in asked.questions)
    assert first == Answer(Verdict.ALLOWED, "entry 1 of [[answers]] allows it", 1)
    assert second == Answer(Verdict.REFUSED, "entry 2 of [[answers]] denies it", 2)
    assert after(OPEN, replace(WORDS, tool="Bash", subject="pytest")).state is State.WAITING
    waiting = after(OPEN, LEAVE, replace(LEAVE, id="d", subject="pytest"))
    assert [each.id for each in waiting.waiting] == ["a"]


def test_no_work_is_requested_while_the_output_of_a_limited_session_is_still_read() -> None:
    """A session meets a limit while its question waits: the reading of its output is over before the next request."""
    more = {REF: Questions(terms=TERMS), quota.REF: quota.Quota()}
    of = following(account="shared", more=more).hear("board", "assignment", assignment.Assigned(BRIEF))
    start(of.report("assignment", "CheckOutWork", assignment.CheckedOut())).give(REF, LEAVE)
    part = of.part("session", "RunSession")
    exited = session.SessionExited(session.Limited(60_000))
    of.offer(Envelope("session", exited, of.now_ms, part.slot, slot=part.slot, generation=part.generation))
    assert of.record("assignment").state is assignment.State.IDLE
    assert of.confirm("output", "FollowOutput").record("assignment").state is assignment.State.WANTING


def test_silence_refuses_the_oldest_question_first() -> None:
    """The time of the next one begins when it is the oldest; an answer to another changes nothing."""
    of = working().give(REF, LEAVE)
    of.now_ms += 30_000
    of.give(REF, WORDS).give(REF, replace(WORDS, id="c")).give(REF, QuestionAnswered(2, REFUSED))
    assert not of.effects(StartTimer)
    of.elapse(REF, "AnswerOverdue")
    assert of.now_ms == 60_000
    assert of.record(REF).numbered(1).answer == Answer(Verdict.EXPIRED, "no operator has answered within 60 s")
    (timer,) = (each for each in of.effects(StartTimer) if isinstance(each, StartTimer))
    assert (timer.slot, timer.delay_ms) == ("AnswerOverdue", 60_000)
    of.elapse(REF, "AnswerOverdue")
    assert (of.state(REF), of.now_ms) == ("Open", 120_000)


def test_an_answer_to_the_oldest_question_begins_the_time_of_the_next() -> None:
    """Each question has its whole time as the oldest one."""
    of = working().give(REF, LEAVE).give(REF, WORDS)
    of.now_ms += 30_000
    of.give(REF, QuestionAnswered(1, ALLOWED))
    assert [each.deadline_ms for each in of.effects(StartTimer) if isinstance(each, StartTimer)] == [90_000]
    of.give(REF, QuestionAnswered(2, REFUSED))
    assert len(of.effects(CancelTimer)) == 1


def test_without_a_time_a_question_waits_for_ever() -> None:
    """No timer is started."""
    assert not working(Terms()).give(REF, LEAVE).effects(StartTimer)


def test_a_crash_of_the_runner_changes_no_question() -> None:
    """The question still waits, with the rest of its time."""
    of = working().give(REF, LEAVE)
    before = of.record(REF)
    of.crash(10_000)
    assert of.record(REF) == before
    assert of.part(REF, "AnswerOverdue").deadline_ms == 60_000


def test_questions_are_bounded() -> None:
    """One too many is refused; the oldest answers are forgotten, and no question that waits."""
    many = after(OPEN, *(replace(WORDS, id=str(each)) for each in range(MOST_WAITING)))
    assert "20 questions" in question.refused_ask(many, replace(WORDS, id="x"))
    assert not question.refused_ask(many, replace(WORDS, id="0"))
    record = after(OPEN, LEAVE)
    for each in range(MOST_KEPT + 5):
        record = after(record, replace(WORDS, id=f"w{each}"), QuestionAnswered(each + 2, REFUSED))
    assert [each.id for each in record.waiting] == ["a"]
    assert [each.id for each in record.questions[1:]] == [f"w{each}" for each in range(5, MOST_KEPT + 5)]


def test_a_fleet_without_questions_has_no_entity_for_them() -> None:
    """The plan turns them on for every agent."""
    plan = Plan("p", (AgentPlan("ann"),), (TaskPlan("T1", "x"),))
    for given, expected in ((plan, False), (replace(plan, questions=TERMS), True)):
        (_, worker) = opening(given, 0)
        assert (REF in worker[1].event.records) is expected  # type: ignore[attr-defined]


BOUNDS = Bounds(within={REF: few_questions}, compared=300)


@pytest.mark.no_cover
def test_questions_have_all_their_properties() -> None:
    """In all their states."""
    must_hold(question.machine.starting(Questions(terms=Terms(1, TERMS.answers)), REF), BOUNDS)


SMALL = Questions(terms=Terms(1, TERMS.answers))


def _with(new: Row[Any], when: Callable[..., bool] | None = None) -> Machine[Any]:
    return instead(question.machine, new, when).starting(SMALL, REF)


def _forget(q: Questions, _e: QuestionsClosed | QuestionsOpened) -> Step[Questions, Never]:
    return Step(replace(q, questions=()))


def _keep(q: Questions, e: QuestionsOpened) -> Step[Questions, Never]:
    return Step(replace(q, task=e.task, epoch=e.epoch, token=e.token))


def _ask_anew(q: Questions, e: QuestionAsked) -> Step[Questions, Never]:
    return question.ask(q, e)


def _lose(q: Questions, _e: QuestionAnswered) -> Step[Questions, Never]:
    return Step(replace(q, questions=()))


def _answer_all(q: Questions, e: QuestionAnswered) -> Step[Questions, Never]:
    answered = tuple(replace(each, answer=e.answer) for each in q.questions)
    return Step(replace(q, questions=answered))


def _never(_q: Questions, _e: Any) -> bool:
    return False


MUTANTS: Final[Mutants] = {
    "an answer of an earlier claim is kept": (
        "no answer is kept after its claim",
        lambda: _with(row(State.CLOSED, QuestionsOpened, State.OPEN, _keep)),
    ),
    "a known question is asked anew": (
        "a question is asked once",
        lambda: _with(
            row((State.OPEN, State.WAITING), QuestionAsked, STAY, _ask_anew, when=question.is_known), question.is_known
        ),
    ),
    "an answer loses the other questions": (
        "is lost before its session is over",
        lambda: _with(row(State.WAITING, QuestionAnswered, State.OPEN, _lose, when=question.may_answer)),
    ),
    "an answer is changed": (
        "a question is answered at most once",
        lambda: question.machine.with_rows(row(State.OPEN, QuestionAnswered, STAY, _answer_all)).starting(SMALL, REF),
    ),
    "an answer is given to all questions": (
        "every answer has its cause",
        lambda: _with(
            row(State.WAITING, QuestionAnswered, State.OPEN, _answer_all, when=question.is_the_oldest),
            question.is_the_oldest,
        ),
    ),
    "a question that waits cannot be answered": (
        "a question that waits can be answered",
        lambda: _with(row(State.WAITING, QuestionAnswered, State.OPEN, question.settle, when=_never)),
    ),
    "a question with a standing answer waits": (
        "questions wait in Waiting, and only there",
        lambda: question.machine.with_rows(
            row(State.OPEN, QuestionAsked, State.WAITING, question.ask, when=question.is_answered_already)
        ).starting(SMALL, REF),
    ),
    "silence ends a question without a time": (
        "every timer lasts as long as its limit",
        lambda: rebuilt(question.machine, during={State.WAITING: after_delay(1, AnswerOverdue)}).starting(
            Questions(), REF
        ),
    ),
    "the end of a session forgets the answers of the claim": (
        "an answer is kept for its asker",
        lambda: _with(row((State.OPEN, State.WAITING), QuestionsClosed, State.CLOSED, _forget)),
    ),
}
"""Mistakes, each with words of the property that finds it."""


@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_every_mistake_breaks_its_property(mutant: str) -> None:
    """In few states."""
    must_be_found(MUTANTS[mutant], replace(BOUNDS, compared=0, states=5_000))


@pytest.mark.cover
def test_a_fleet_that_asks_has_all_its_properties() -> None:
    """In its nearest states; the certificate has all of them."""
    report = check(system, opening=named("fleet-asking").opening, bounds=Bounds(states=1_500, compared=0))
    assert report.broken() == ()


@pytest.mark.no_cover
def test_without_its_rule_a_question_outlives_its_claim() -> None:
    """The rule that opens and closes the questions is needed for the property of the worker."""
    report = check(without("keep_open"), opening=named("fleet-asking").opening, bounds=Bounds(states=500, compared=0))
    assert any("questions are asked in the session of their claim only" in each.name for each in report.broken())


def _runs(worker: Aggregate) -> bool:
    """Return the condition of the rule without the assignment."""
    return worker.record("session").state in {session.State.SPAWNING, session.State.RUNNING}


def _lacks(_worker: Aggregate) -> bool:
    """Return a condition that never holds."""
    return False


def _is_not_nudged(worker: Aggregate) -> bool:
    """Return the condition of the rule without the nudge."""
    return _lives(session.State.SPAWNING, session.State.RUNNING)(worker) and not steering.cancels(worker)


def _lives(*states: session.State) -> Callable[[Aggregate], bool]:
    """Return the condition of the rule with other states of the session."""
    return lambda worker: (
        worker.record("session").state in states and worker.record("assignment").state is assignment.State.WORKING
    )


@pytest.mark.parametrize(
    "mistaken",
    [
        _lives(session.State.SPAWNING, session.State.RUNNING, session.State.INTERRUPTING),
        _lives(session.State.RUNNING),
        _runs,
        _lacks,
        _is_not_nudged,
    ],
    ids=["interrupting", "spawning", "any assignment", "never", "nudged"],
)
def test_a_mistake_in_the_condition_of_the_rule_is_found(
    monkeypatch: pytest.MonkeyPatch, mistaken: Callable[[Aggregate], bool]
) -> None:
    """The property reads the running activities, and the rule the states, so that they can differ."""
    monkeypatch.setattr(question, "_may_be_asked", mistaken)
    report = check(system, opening=named("fleet-asking").opening, bounds=Bounds(states=4_000, compared=0))
    assert any("questions are asked in the session of their claim only" in each.name for each in report.broken())
