"""How long a session may take, by how long others took (E33): remembered by the board, and carried to the worker."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregate_hand import Hand
from board_hand import ask, brief, make, opened, rest, say
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import adaptive_timeout, worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.kernel import Opened
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.policy.adaptive_timeout import LONGEST_MS, SHORTEST_MS, PastRun, Work, estimate
from lifefold.effects import RunSession, Tell
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.check_targets import named

MINUTE_MS: Final = 60_000
PLAIN_MS: Final = 30 * MINUTE_MS
ANN: Final = worker_slot.WorkerSlot(roles=("reviewer",), adaptive=True)


def board(*names: str, **fields: Any) -> Hand:
    """Return a board of tasks that are retried, and of an agent whose sessions may take as long as others took."""
    tasks = (make(name, max_retries=9, **fields) for name in names)
    return opened(*tasks, worker_slots=(), **{"worker_slot:ann": ANN})


def done(of: Hand, name: str, minutes: int) -> Hand:
    """Let the owner of a task be done with it after so many minutes, and bring it home."""
    say(of, name, task.Started)
    say(of, name, task.Completed, took_ms=minutes * MINUTE_MS)
    return say(of, name, task.Verified)


def test_until_anything_is_known_a_session_may_take_half_an_hour_and_more_for_files() -> None:
    """The plain value of the formula, for a task of medium size."""
    assert brief(ask(board("T1"))).timeout_ms == PLAIN_MS
    assert brief(ask(board("T1", files=("a", "b")))).timeout_ms == PLAIN_MS + 2 * 30_000


@pytest.mark.parametrize(("minutes", "expected"), [(10, 30), (20, 30), (40, 60), (100, 120), (1_000, 120)])
def test_long_sessions_raise_the_limit_to_half_as_much_again_up_to_two_hours(minutes: int, expected: int) -> None:
    """And never shortens it."""
    of = done(ask(board("T1", "T2")), "T1", minutes)
    assert brief(ask(of)).timeout_ms == expected * MINUTE_MS


def test_only_sessions_of_the_same_role_say_anything() -> None:
    """A review is no implementation."""
    tasks = make("T1", role="reviewer"), make("T2"), make("T3", role="reviewer")
    of = opened(*tasks, worker_slots=(), **{"worker_slot:ann": ANN})
    done(ask(of), "T1", 40)
    assert brief(ask(of)).timeout_ms == PLAIN_MS
    done(of, "T2", 1)
    assert brief(ask(of)).timeout_ms == 60 * MINUTE_MS


def test_a_failed_session_does_not_count() -> None:
    """However long it took to do so."""
    of = say(ask(board("T1")), "T1", task.Started, task.Failed)
    assert brief(ask(rest(of, "T1"))).timeout_ms == PLAIN_MS
    assert adaptive_timeout.pace_of(of.aggregate).runs == ()


def test_a_session_that_says_it_is_done_counts_whatever_becomes_of_its_work() -> None:
    """Its work is not verified yet."""
    of = say(ask(board("T1")), "T1", task.Started)
    say(of, "T1", task.Completed, took_ms=40 * MINUTE_MS)
    say(of, "T1", task.Rejected)
    assert [each.duration_ms for each in adaptive_timeout.pace_of(of.aggregate).runs] == [40 * MINUTE_MS]
    assert brief(ask(rest(of, "T1"))).timeout_ms == 60 * MINUTE_MS


def test_a_report_of_a_former_owner_is_not_remembered() -> None:
    """A zombie's word fits no row (E12)."""
    of = ask(board("T1"))
    of.dismiss("worker/ann", "task:T1", task.Completed(7, 40 * MINUTE_MS))
    assert adaptive_timeout.pace_of(of.aggregate).runs == ()


def test_the_latest_sessions_count_and_the_oldest_are_forgotten() -> None:
    """A limit on everything."""
    names = [f"T{n:02}" for n in range(adaptive_timeout.MOST_RUNS + 2)]
    of = done(ask(board(*names)), names[0], 100)
    for name in names[1:-1]:
        done(ask(of), name, 1)
    runs = adaptive_timeout.pace_of(of.aggregate).runs
    assert [each.duration_ms for each in runs] == [MINUTE_MS] * adaptive_timeout.MOST_RUNS
    assert brief(ask(of)).timeout_ms == PLAIN_MS


def test_an_agent_without_adaptive_limits_gets_no_duration() -> None:
    """Its own time-out is what counts, as ever."""
    of = opened(make("T1"), worker_slots=("ann",))
    assert brief(ask(of)).timeout_ms == 0


@given(
    role=st.sampled_from(["", "reviewer", "manager"]),
    files=st.integers(0, 1_000),
    runs=st.lists(st.tuples(st.sampled_from(["", "reviewer"]), st.integers(1, 10**8)), max_size=30),
)
def test_it_is_the_formulas_value_between_its_bounds(role: str, files: int, runs: list[tuple[str, int]]) -> None:
    """The same as from the list of past runs, and never less than without any."""
    known = adaptive_timeout.PastSessions(tuple(PastRun(of, "done", ms) for of, ms in runs))
    limit_ms = known.limit_ms(role, files)
    assert limit_ms == estimate(Work(role=role, owned_files=files), known.runs).timeout_ms
    assert SHORTEST_MS <= adaptive_timeout.PastSessions().limit_ms(role, files) <= limit_ms <= LONGEST_MS


# What a worker does with it


def running(timeout_ms: int) -> Hand:
    """Return a worker whose session runs, at a task that was given to it with this limit."""
    limits = session.Limits(session_timeout_ms=LONGEST_MS)
    of = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann", limits=limits),
        },
    ).report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(task.Brief("T1", 1, timeout_ms=timeout_ms)))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    return of.report("session", "RunSession", session.SessionStarted(0))


@pytest.mark.parametrize(("carried", "expected"), [(PLAIN_MS, PLAIN_MS), (0, LONGEST_MS)])
def test_a_session_may_take_as_long_as_its_brief_says_or_else_its_limits(carried: int, expected: int) -> None:
    """Its shim ends it then."""
    activity = running(carried).part("session", "RunSession").activity
    assert isinstance(activity, RunSession)
    assert activity.timeout_ms == expected


@pytest.mark.parametrize(("carried", "told"), [(PLAIN_MS, 7 * MINUTE_MS), (0, 0)])
def test_the_board_hears_how_long_the_session_took_that_is_done_if_it_wants_to(carried: int, told: int) -> None:
    """From when it ran to when it had succeeded."""
    of = running(carried)
    of.now_ms += 7 * MINUTE_MS
    of.report("session", "RunSession", session.SessionExited(session.Success()))
    assert [each.event for each in of.effects(Tell) if isinstance(each, Tell)] == [task.Completed(1, told)]


def test_the_next_task_has_its_own_limit() -> None:
    """What an earlier one was given is not kept."""
    of = running(PLAIN_MS)
    of.report("session", "RunSession", session.SessionExited(session.Success()))
    of.report("assignment", "VerifyWork", assignment.Verified())
    of.report("assignment", "MergeWork", assignment.Merged())
    of.hear("board", "assignment", assignment.Assigned(task.Brief("T2", 1, timeout_ms=60 * MINUTE_MS)))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    activity = of.part("session", "RunSession").activity
    assert isinstance(activity, RunSession)
    assert activity.timeout_ms == 60 * MINUTE_MS


def test_a_plan_names_the_agents_with_adaptive_time_limits() -> None:
    """By default of no agent."""
    plan = Plan("p", (AgentPlan("ann", adaptive=True), AgentPlan("ben")), (TaskPlan("T1", "do it"),))
    (_, begun), *_ = opening(plan, 0)
    assert isinstance(begun.event, Opened)
    worker_slots = [begun.event.records[f"worker_slot:{name}"] for name in ("ann", "ben")]
    assert [each.adaptive for each in worker_slots if isinstance(each, worker_slot.WorkerSlot)] == [True, False]


def test_a_fleet_with_adaptive_time_limits_has_its_properties() -> None:
    """As far as this looks: what is carried decides nothing but how long a session may take."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2, session_timeout_ms=LONGEST_MS)
    agents = (AgentPlan("ann", limits, adaptive=True),)
    plan = Plan("paced", agents, (TaskPlan("T1", "do it", max_retries=0), TaskPlan("T2", "do it", max_retries=0)))
    bounds = Bounds(within=named("fleet-orphans").bounds.within, commands=1, states=30_000, compared=200)
    report = check(system, opening=list(opening(plan, 0)), bounds=bounds)
    assert not report.broken(), report
