"""A worker tells the board what the sessions of a claim have cost: all of it, and once."""

from aggregate_hand import Hand
from fleet_worker import NAME, start, states
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, usage, usage_meter
from lifefold.core.kernel import replace
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps

SHARE = Amounts(microusd=100, tokens=1_000, time_ms=60_000, sessions=1)


NO_LIMITS = session.Limits()


def working(share: Amounts = SHARE, *, keeps_time: bool = False, limits: session.Limits = NO_LIMITS) -> Hand:
    """Return a worker that is spawning a session for a task, of which costs are counted."""
    of = Hand(
        NAME,
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann", limits=limits),
            usage_meter.REF: usage_meter.UsageMeter(keeps_time=keeps_time),
        },
    )
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(task.Brief("T1", 2, "do it", share=share)))
    return of.report("assignment", "CheckOutWork", assignment.CheckedOut())


def end(of: Hand, outcome: session.Success | session.Error, *, microusd: int = 0, tokens: int = 0) -> Hand:
    """Let the session end, and say what it has cost."""
    usage = session.Usage(microusd, tokens, 0)
    return of.report("session", "RunSession", session.SessionExited(outcome, usage))


def told(of: Hand) -> list[tuple[Amounts, bool]]:
    """Return what the last reaction has told the board of costs."""
    return [
        (e.spent, e.silent) for _, _, e in of.told() if isinstance(e, worker_slot.WorkWanted | worker_slot.WorkerGone)
    ]


def interrupted(of: Hand, *, microusd: int = 0, tokens: int = 0) -> Hand:
    """Let the session be interrupted by a message, and end."""
    start(of).give("mailbox", mailbox.OperatorMessageArrived("look"))
    return end(of, session.Success(), microusd=microusd, tokens=tokens)


def test_the_cost_of_a_claim_is_reported_with_the_next_request_for_work() -> None:
    """Together, as one session, and only once."""
    of = interrupted(working(), microusd=30, tokens=5)
    end(start(of), session.Error("no"), microusd=20)
    assert told(of) == []
    of.elapse("session", "BackoffElapsed")
    assert told(of) == [(Amounts(50, 5, 0, 1), False)]
    assert of.record(usage_meter.REF).spent == Amounts()


def test_a_session_that_says_nothing_of_its_cost_is_told_to_have_been_silent() -> None:
    """Beside what the others have said."""
    of = interrupted(working(), microusd=30)
    end(start(of), session.Error("no")).elapse("session", "BackoffElapsed")
    assert told(of) == [(Amounts(30, 0, 0, 1), True)]


def test_a_session_that_is_given_up_counts_though_it_can_say_nothing_any_more() -> None:
    """It is over when the agent has stopped, whatever it takes to end it."""
    of = start(working()).give("desired_state", desired_state.StopWanted("enough"))
    assert told(of) == [(Amounts(sessions=1), True)]


def test_how_long_sessions_take_is_counted_where_time_is_limited() -> None:
    """From when one is begun to when it is over."""
    for keeps_time, took_ms in ((True, 5_000), (False, 0)):
        of = start(working(keeps_time=keeps_time))
        of.now_ms += 5_000
        end(of, session.Error("no")).elapse("session", "BackoffElapsed")
        assert told(of) == [(Amounts(time_ms=took_ms, sessions=1), True)]


def test_no_session_is_charged_more_time_than_it_may_take() -> None:
    """If the clock has jumped, or no runner saw its end, it is charged at most its time limit and its grace."""
    limits = session.Limits(session_timeout_ms=60_000, grace_ms=5_000)
    for later_ms, took_ms in ((64_000, 64_000), (86_400_000, 65_000), (-1, 0)):
        of = start(working(keeps_time=True, limits=limits))
        of.now_ms += later_ms
        end(of, session.Error("no")).elapse("session", "BackoffElapsed")
        assert told(of) == [(Amounts(time_ms=took_ms, sessions=1), True)]


def test_a_session_that_begins_with_nothing_left_of_its_share_breaks_a_property() -> None:
    """Of whichever resource; what is not limited, and how many sessions there are, does not count."""
    for spent, is_kept in (
        (Amounts(), True),
        (Amounts(99, 999, 59_999, 7), True),
        (Amounts(microusd=100), False),
        (Amounts(tokens=1_001), False),
        (Amounts(time_ms=60_000), False),
    ):
        of = working().aggregate
        known = of.entities[usage_meter.REF]
        having_spent = replace(known, record=replace(known.record, spent=spent))
        begins = replace(of, entities=of.entities.set(usage_meter.REF, having_spent))
        assert usage.spends_within_the_reservation(begins) is is_kept, spent


def test_no_other_session_of_a_claim_begins_when_its_share_is_used_up() -> None:
    """The task is given back, and a new claim has a new share."""
    of = interrupted(working(), microusd=100)
    assert states(of) == ("BuildingPrompt", "Wanting")
    dropped = task.Released(2, "its share of the budget is used up")
    assert of.told() == [
        ("board", "task:T1", dropped),
        ("board", "worker_slot:ann", worker_slot.WorkWanted(Amounts(100, 0, 0, 1), silent=False)),
    ]


def test_a_session_that_is_interrupted_goes_on_as_long_as_something_is_left() -> None:
    """How many sessions there are does not count: people interrupt them."""
    of = interrupted(working(), microusd=99, tokens=999)
    assert states(of) == ("Spawning", "Working")
    assert usage.left(of.aggregate) == Caps(1, 1, 60_000, 0)


def test_a_session_gets_no_limit_of_an_unlimited_resource() -> None:
    """Nor is there anything that could be used up."""
    of = interrupted(working(Amounts(tokens=10)), microusd=99)
    assert states(of) == ("Spawning", "Working")
    assert usage.left(of.aggregate) == Caps(tokens=10)


def test_where_nothing_is_limited_nothing_is_counted() -> None:
    """A worker without a usage meter reports no costs."""
    of = Hand(
        NAME,
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann"),
        },
    )
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]
    assert usage.left(of.aggregate) == Caps()


def left(of: Hand) -> list[tuple[Amounts, bool]]:
    """Return with what the last reaction has told the board that nothing is in hand, and nothing is wanted."""
    return [(e.spent, e.silent) for _, _, e in of.told() if isinstance(e, worker_slot.WorkLeft)]


def test_a_paused_worker_without_a_task_reports_that_and_its_usage() -> None:
    """So it keeps no reservation, neither for a task that has not begun, nor for a recalled one."""
    of = start(working()).give("desired_state", desired_state.PauseWanted("lunch"))
    assert left(of) == []
    of = end(of, session.Success(), microusd=7)
    assert left(of) == []
    of.hear("board", "assignment", assignment.Recalled("T1", 2, "cancelled"))
    assert left(of) == [(Amounts(7, 0, 0, 1), False)]
    assert of.record(usage_meter.REF).spent == Amounts()


def test_the_cost_of_a_session_without_its_task_is_reported_at_its_end() -> None:
    """Not before: what it costs is not known."""
    of = start(working()).give("desired_state", desired_state.PauseWanted("lunch"))
    of.hear("board", "assignment", assignment.Recalled("T1", 2, "cancelled"))
    assert left(of) == []
    assert left(end(of, session.Success(), microusd=9)) == [(Amounts(9, 0, 0, 1), False)]


def test_a_running_worker_reports_its_usage_with_a_request_for_work() -> None:
    """And nothing else; nor does one without a usage meter."""
    of = end(start(working()), session.Error("no")).elapse("session", "BackoffElapsed")
    assert (left(of), told(of)) == ([], [(Amounts(sessions=1), True)])
