"""A worker and its account: limits are reported, the task is given back, and no session begins while it rests."""

from typing import Final

import pytest

from aggregate_hand import Hand
from fleet_worker import BRIEF, exit_with, start, states
from lifefold.core.fleet.board import account, worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, quota, stall_detector, usage_meter
from lifefold.core.kernel import Record
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.session_limits import LimitReached
from lifefold.interpreters.check import check

ONE_ERROR: Final = session.Limits(max_consecutive_errors=1, max_total_errors=1)
UNKNOWN: Final = ("board", "account:claude", account.LimitReported(None, 0, "five_hour", "limit"))
GIVEN_BACK: Final = ("board", "task:T1", task.Released(2, "account claude rests (five_hour limit)"))
WANTS: Final = ("board", "worker_slot:ann", worker_slot.WorkWanted())
LIMITED: Final = session.Limited(None, "five_hour", "limit")


def spawning(**more: Record) -> Hand:
    """Return a worker with an account whose session is being spawned; one error stops its agent."""
    of = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann", limits=ONE_ERROR, account="claude"),
            quota.REF: quota.Quota(),
            **more,
        },
    )
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    return of.report("assignment", "CheckOutWork", assignment.CheckedOut())


def running(**more: Record) -> Hand:
    """Return such a worker whose session runs."""
    return start(spawning(**more))


def test_a_limited_session_gives_its_task_back_and_its_agent_goes_on() -> None:
    """The account learns of it before the task is free, so that no other agent of the account gets the task."""
    of = exit_with(running(), LIMITED)
    assert of.told() == [UNKNOWN, GIVEN_BACK, WANTS]
    assert states(of) == ("BuildingPrompt", "Wanting")


def test_a_told_end_is_reported_with_the_rest_that_is_left() -> None:
    """The time is that of the report; the word of the limit is optional."""
    of = running()
    of.now_ms = 1_000
    exit_with(of, session.Limited(61_000))
    assert of.told()[0] == ("board", "account:claude", account.LimitReported(60_000, 61_000))
    assert of.told()[1] == ("board", "task:T1", task.Released(2, "account claude rests"))


def test_a_session_that_shows_a_limit_is_ended_and_its_task_given_back() -> None:
    """Other work is asked for when its process is gone."""
    of = running().report("session", "RunSession", LimitReached(None, "five_hour", "limit"))
    assert of.told() == [UNKNOWN, GIVEN_BACK]
    assert states(of) == ("Interrupting", "Idle")
    assert exit_with(of, session.Error("interrupted")).told() == [WANTS]


def test_a_limit_that_is_told_twice_gives_back_one_task() -> None:
    """A session that was interrupted for a limit may end with the same words."""
    of = exit_with(running().report("session", "RunSession", LimitReached()), LIMITED)
    assert of.told() == [UNKNOWN, WANTS]


def test_a_limit_shown_at_the_start_ends_the_session_when_it_runs() -> None:
    """It is kept until then."""
    of = spawning().report("session", "RunSession", LimitReached(None, "five_hour", "limit"))
    assert of.told() == []
    assert UNKNOWN in start(of).told()


def test_costs_of_a_limited_session_are_reported_with_the_request_for_work() -> None:
    """A metered worker gives its task back before its session counts as over, and begins no other one."""
    of = exit_with(running(**{usage_meter.REF: usage_meter.UsageMeter()}), LIMITED)
    assert states(of) == ("BuildingPrompt", "Wanting")
    assert [type(event).__name__ for _, _, event in of.told()] == ["LimitReported", "Released", "WorkWanted"]


def test_a_limited_session_asks_for_work_when_its_watch_has_ended() -> None:
    """A watched worker requests nothing while anything of the last session is being ended."""
    of = exit_with(running(**{stall_detector.REF: stall_detector.StallDetector()}), LIMITED)
    assert states(of) == ("BuildingPrompt", "Idle")
    assert WANTS in of.confirm(stall_detector.REF, "WatchOutput").told()


def test_an_interrupted_session_of_a_metered_worker_is_followed_by_one_that_is_asked_for() -> None:
    """The next session begins in the same step in which the last one is counted."""
    of = running(**{usage_meter.REF: usage_meter.UsageMeter()})
    of.give("mailbox", mailbox.OperatorMessageArrived("look", urgent=True))
    exit_with(of, session.Error("interrupted"))
    assert states(of) == ("Spawning", "Working")
    assert of.record(quota.REF).lives


def test_no_session_begins_while_the_account_rests() -> None:
    """A session that goes on may end; the next one would be refused, so its task is given back."""
    of = running().hear("board", quota.REF, quota.AccountRests())
    assert states(of) == ("Running", "Working")
    of.give("mailbox", mailbox.OperatorMessageArrived("look", urgent=True))
    exit_with(of, session.Error("interrupted"))
    assert states(of) == ("BuildingPrompt", "Wanting")
    assert of.told()[0] == ("board", "task:T1", task.Released(2, "account claude rests"))


def test_a_session_that_succeeds_while_its_account_rests_has_done_its_work() -> None:
    """It is verified and merged, which needs no account."""
    of = exit_with(running().hear("board", quota.REF, quota.AccountRests()), session.Success())
    assert states(of) == ("SessionComplete", "Verifying")
    assert not of.record(quota.REF).lives


def test_sessions_begin_again_when_the_account_is_open() -> None:
    """The board says so before it assigns a task."""
    of = exit_with(running(), LIMITED).hear("board", quota.REF, quota.AccountRests())
    of.hear("board", quota.REF, quota.AccountOpens()).hear("board", "assignment", assignment.Assigned(BRIEF))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert states(of) == ("Spawning", "Working")
    assert of.record(quota.REF).lives


@pytest.mark.parametrize("outcome", [session.Limited(), session.Error("broken")], ids=["limit", "error"])
def test_a_worker_without_an_account_reports_no_limit(outcome: session.Limited | session.Error) -> None:
    """A limit is an error like any other there."""
    of = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann"),
        },
    ).report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    exit_with(start(of.report("assignment", "CheckOutWork", assignment.CheckedOut())), outcome)
    assert of.state("session") == "CoolingDown"
    assert [type(event) for _, _, event in of.told()] == [task.Failed]


@pytest.mark.no_cover
def test_a_quota_has_its_properties() -> None:
    """They hold in every state that it can come to."""
    assert check(quota.machine).ok
