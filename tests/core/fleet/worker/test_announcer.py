"""A worker passes on to the board's notifiers what only it knows: questions that wait, and silence."""

from typing import Any

from aggregate_hand import Hand
from fleet_worker import next_task, start
from lifefold.core.fleet import AgentPlan, NotifierPlan, Plan, ServicePlan, TaskPlan, opening
from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.worker import announcer, question, stall_detector
from lifefold.core.fleet.worker.question import Kind, QuestionAsked, Terms
from lifefold.core.kernel import Aggregate, Envelope, Opened, Projection, replace
from lifefold.core.lifecycles import session
from lifefold.core.policy.standing import StandingAnswer
from lifefold.effects import Notification, NotificationKind

QUESTION, PERMISSION, STALLED = NotificationKind.QUESTION, NotificationKind.PERMISSION, NotificationKind.STALLED
TERMS = Terms(60_000, (StandingAnswer("Read", "*", allows=True),))
ASKED = QuestionAsked("T1", 2, id="b", text="which?")


def records(plan: Plan, name: str) -> dict[str, Any]:
    """Return what an aggregate of a plan begins with."""
    (event,) = [each.event for of, each in opening(plan, 0) if of == name]
    assert isinstance(event, Opened)
    return dict(event.records)


def planned(*notify: NotifierPlan, asks: bool = True, watched: bool = True) -> Plan:
    """Return a fleet of one agent with these notifiers."""
    stall = stall_detector.Limits() if watched else None
    agents, tasks = (AgentPlan("ann", stall=stall),), (TaskPlan("T1", "do it"),)
    return Plan("telling", agents, tasks, questions=TERMS if asks else None, notify=notify)


def working(*kinds: NotificationKind) -> Hand:
    """Return a worker whose session works at claim 2 of T1, in a fleet with a notifier of these kinds."""
    of = Hand("worker/ann", records(planned(NotifierPlan("desk", kinds)), "worker/ann"))
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    return start(next_task(of))


def announced(of: Hand) -> list[tuple[str, Notification]]:
    """Return what the last reaction has announced, and to which notifier."""
    return [(ref, event.notification) for _, ref, event in of.told() if isinstance(event, notifier.Announced)]


def asked(of: Hand, asks: QuestionAsked) -> Hand:
    """Let the session of the claim ask."""
    token = of.record(question.REF).token
    return of.give(question.REF, replace(asks, token=token))


def test_a_question_that_waits_is_announced_with_the_command_that_answers_it() -> None:
    """It is announced to the notifiers that listen to questions."""
    of = asked(working(QUESTION), ASKED)
    said = "ann asks a question at T1, lifefold answer ann/Q1: which?"
    assert announced(of) == [(notifier.FIRST, Notification(QUESTION, said, "T1", "ann"))]


def test_a_permission_is_announced_as_a_permission() -> None:
    """A notifier that listens to questions only does not hear of it."""
    asks = QuestionAsked("T1", 2, id="a", kind=Kind.PERMISSION, tool="Bash", subject="make")
    said = "ann asks for a permission at T1, lifefold approve ann/Q1: Bash make"
    of = working(PERMISSION)
    assert announced(asked(of, asks)) == [(notifier.FIRST, Notification(PERMISSION, said, "T1", "ann"))]
    of = working(QUESTION)
    of.offer(Envelope(question.REF, replace(asks, token=of.record(question.REF).token), 0))
    assert of.state(question.REF) == "Waiting"
    assert announced(of) == []


def test_a_question_that_is_asked_again_or_has_a_standing_answer_is_no_news() -> None:
    """An asker that has crashed asks again under the same identifier."""
    of = asked(working(QUESTION, PERMISSION), ASKED)
    assert announced(asked(of, ASKED)) == []
    assert announced(asked(of, QuestionAsked("T1", 2, id="c", kind=Kind.PERMISSION, tool="Read", subject="a"))) == []


def test_a_long_question_is_cut() -> None:
    """A message of a chat has a limit."""
    of = asked(working(QUESTION), replace(ASKED, text="x" * 5_000))
    assert [len(each.text) for _, each in announced(of)] == [announcer.MOST_CHARACTERS]


def test_a_session_without_progress_is_announced_once_in_a_silence() -> None:
    """The steps of the ladder after the warning are no news."""
    of = working(STALLED)
    limits = of.record(stall_detector.REF).limits
    of.report(stall_detector.REF, "WatchOutput", stall_detector.Silent(limits.warn_ms))
    assert announced(of) == [(notifier.FIRST, Notification(STALLED, "ann makes no progress at T1", "T1", "ann"))]


def test_each_notifier_hears_of_its_kinds() -> None:
    """Two of three listen to questions."""
    both = (NotifierPlan("a", (QUESTION,)), NotifierPlan("b", (STALLED,)), NotifierPlan("c", (QUESTION, STALLED)))
    listeners = records(planned(*both), "worker/ann")[announcer.REF].listeners
    assert [ref for kind, ref in listeners if kind is QUESTION] == ["notifier:1", "notifier:3"]
    assert [ref for kind, ref in listeners if kind is STALLED] == ["notifier:2", "notifier:3"]


def test_a_worker_has_an_announcer_only_if_it_can_have_news() -> None:
    """An agent that cannot ask and is not watched has none, and a fleet without notifiers has none."""
    told = NotifierPlan("a", (QUESTION, STALLED, NotificationKind.CLOSED))
    assert announcer.REF not in records(planned(), "worker/ann")
    assert announcer.REF not in records(planned(told, asks=False, watched=False), "worker/ann")
    assert announcer.REF not in records(planned(NotifierPlan("a", (NotificationKind.CLOSED,))), "worker/ann")
    assert records(planned(told, asks=False), "worker/ann")[announcer.REF].listeners == ((STALLED, notifier.FIRST),)


def test_the_board_has_a_notifier_for_each_table_and_none_without() -> None:
    """With its kinds and its retries."""
    plan = planned(NotifierPlan("a", (QUESTION,), retries=7))
    there = {ref: each for ref, each in records(plan, "board").items() if ref.startswith(notifier.REF)}
    assert there == {notifier.FIRST: notifier.Notifier(name="a", kinds=(QUESTION,), retries=7)}
    assert not any(ref.startswith(notifier.REF) for ref in records(planned(), "board"))


def board(*heard: Notification) -> Aggregate:
    """Return a board whose notifier listens to everything that agents announce, and has heard of this."""
    kinds = (QUESTION, PERMISSION, STALLED)
    counts = tuple((each.kind, 1) for each in heard)
    return Hand("board", {notifier.FIRST: notifier.Notifier(kinds=kinds, accepted=counts)}).aggregate


def test_what_waits_at_an_agent_and_was_not_announced_breaks_the_property() -> None:
    """A message in flight may still announce it; without a listener nothing has to be announced."""
    of = asked(working(QUESTION, STALLED), ASKED)
    ((_, heard),) = announced(of)
    others = {"service/web": announcer.News(), "worker/bob": announcer.news(working().aggregate)}

    def holds(*known: Notification, under_way: int = 0) -> bool:
        seen = {"board": announcer.news(board(*known)), "worker/ann": announcer.news(of.aggregate), **others}
        return announcer.is_announced(Projection(seen, under_way))

    assert holds(heard)
    assert holds(under_way=1)
    assert not holds()


def test_silence_that_was_not_announced_breaks_the_property() -> None:
    """A worker without questions has silence to announce, too."""
    of = Hand("worker/ann", records(planned(NotifierPlan("desk", (STALLED,)), asks=False), "worker/ann"))
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    start(next_task(of))
    assert announcer.news(of.aggregate).present == frozenset()
    of.report(stall_detector.REF, "WatchOutput", stall_detector.Silent(of.record(stall_detector.REF).limits.warn_ms))
    assert announcer.news(of.aggregate).present == {STALLED}
    unwatched = records(planned(NotifierPlan("desk", (QUESTION,)), watched=False), "worker/ann")
    assert announcer.news(Hand("worker/ann", unwatched).aggregate).present == frozenset()


def test_a_service_has_nothing_to_announce() -> None:
    """Only workers and the board are looked at."""
    (opened,) = [
        each for of, each in opening(Plan("serving", (), (), services=(ServicePlan("web"),)), 0) if of == "service/web"
    ]
    assert isinstance(opened.event, Opened)
    assert announcer.news(Hand("service/web", dict(opened.event.records)).aggregate) == announcer.News()
