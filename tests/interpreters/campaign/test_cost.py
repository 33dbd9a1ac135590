"""The cost of a run is the fold of its log, and the cost of a campaign is the sum."""

from collections import Counter

import pytest

from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session
from lifefold.interpreters.campaign import Tally, campaign
from lifefold.interpreters.campaign.cost import Cost, cost
from lifefold.interpreters.campaign.report import Report, crash_points, duration, spread, working_ms
from lifefold.interpreters.simulate import NONE, Faults, Run, simulate
from lifefold.interpreters.simulate.faults import DEADLY
from lifefold.interpreters.simulate.story import steps
from lifefold.interpreters.targets.simulation_targets import named

AT_ONCE = Faults(dict.fromkeys(["early timer", "clock back", "slow", "slow store", *DEADLY], 0.0))
"""With these an input is on record when it happens, and its time is right."""


def run_of(name: str, seed: int, faults: Faults | None = None) -> tuple[Run, Cost]:
    target = named(name)
    run = simulate(target.subject, opening=target.opening, seed=seed, faults=faults, environment=target.environment)
    return run, cost(target.system, run.entries)


def sessions_by_task(run: Run) -> Counter[str]:
    """Count the sessions of each task as the worker's own records have it."""
    workers: dict[str, Aggregate] = {}
    counts: Counter[str] = Counter()
    for each in steps(named("fleet").system, run.entries):
        if isinstance(each.envelope.event, session.SessionStarted):
            work: assignment.Assignment = workers[each.aggregate].record("assignment")
            counts[work.brief.task] += 1
        workers[each.aggregate] = each.reaction.aggregate
    return counts


def test_sessions_are_those_of_the_task_that_the_worker_had_in_hand() -> None:
    """Whatever has gone wrong: read off the log, it is what folding it says."""
    for seed in range(15):
        run, paid = run_of("fleet-2x4", seed)
        assert {name: each.sessions for name, each in paid.tasks.items() if each.sessions} == sessions_by_task(run)
        assert paid.sessions == sum(each.sessions for each in paid.tasks.values())
        assert paid.session_ms == sum(each.session_ms for each in paid.tasks.values())


def test_sessions_take_as_long_as_they_are_running() -> None:
    """Where every input is on record at its time, but for the second that the end of each may take."""
    for seed in range(15):
        run, paid = run_of("fleet-2x4", seed, AT_ONCE)
        running_ms = sum(run.state_ms.get(("session", state), 0) for state in ("Running", "Interrupting"))
        assert abs(paid.session_ms - running_ms) <= 2_000 * paid.sessions


def test_an_orderly_fleet_needs_one_session_for_a_task() -> None:
    """Nothing comes back, and nothing is claimed twice."""
    _, paid = run_of("fleet-2x4", 0, NONE)
    assert [(each.claims, each.sessions) for each in paid.tasks.values()] == [(1, 1)] * 4
    assert paid.unclaimed_ms == ()
    assert paid.microusd is None


def test_a_returned_task_has_no_owner_until_its_next_claim() -> None:
    """Once for each further claim after a failure, and never for less than no time."""
    seen = 0
    for seed in range(15):
        _, paid = run_of("fleet-2x4", seed)
        assert len(paid.unclaimed_ms) <= sum(each.claims - 1 for each in paid.tasks.values())
        assert all(each >= 0 for each in paid.unclaimed_ms)
        seen += len(paid.unclaimed_ms)
    assert seen


def test_money_is_what_the_accounts_have_paid() -> None:
    """Of a system that has accounts; the fleet has none, and nothing is invented for it."""
    paid = [run_of("lease", seed)[1].microusd for seed in range(15)]
    assert None not in paid
    assert any(paid)


@pytest.mark.parametrize(
    ("spent_ms", "said"),
    [(0, "0 ms"), (999, "999 ms"), (1_000, "1.0 s"), (90_000, "1.5 min"), (7_200_000, "2.0 h")],
)
def test_durations_have_the_unit_that_suits_them(spent_ms: int, said: str) -> None:
    """From milliseconds to hours."""
    assert duration(spent_ms) == said


def test_a_single_time_is_its_own_distribution() -> None:
    """Nothing is said of what was not seen."""
    assert spread([1_500]) == "1.5 s (median), 1.5 s (95 %)"


def test_a_campaign_says_what_all_runs_have_cost_and_where_runners_died() -> None:
    """In words and as JSON: sums of what the runs have, every deadly fault with a number."""
    tally = campaign("fleet-2x3", range(20))
    paid = [run_of("fleet-2x3", seed) for seed in range(20)]
    assert tally.sessions == sum(each.sessions for _, each in paid)
    assert tally.session_ms == sum(each.session_ms for _, each in paid)
    assert sum(tally.task_sessions) == tally.sessions
    report = Report(named("fleet-2x3"), tally)
    told = report.facts()
    assert told["cost"]["sessions"] == tally.sessions
    assert told["cost"]["microusd"] is None
    assert set(told["crash_points"]) == set(DEADLY)
    assert sum(told["crash_points"].values()) <= tally.crashes
    assert "no money is in the log" in str(report)
    assert working_ms(report.target, tally).keys() <= {
        "CheckOutWork", "MergeWork", "PrepareWorktree", "RunSession", "VerifyWork",
    }  # fmt: skip


def test_where_no_runner_died_no_crash_point_is_covered() -> None:
    """It says which are missing."""
    tally = campaign("fleet-2x2", range(2), faults=NONE)
    assert crash_points(tally) == dict.fromkeys(DEADLY, 0)
    assert "crash points none" in str(Report(named("fleet-2x2"), tally))


def test_what_has_no_name_is_tried_in_this_process() -> None:
    """With the same result as under its name; other processes could not find it."""
    figures = [
        (each.inputs, each.transitions, each.state_ms, each.task_ms)
        for each in (campaign(named("fleet-2x2"), range(6)), campaign("fleet-2x2", range(6)))
    ]
    assert figures[0] == figures[1]
    with pytest.raises(ValueError, match="by its name"):
        campaign(named("fleet-2x2"), range(6), jobs=2)


def test_of_long_lists_the_last_are_kept() -> None:
    """A soak that goes on for days needs no more memory for it; the sums are of all."""
    tally = Tally(recovery_ms=[1, 2, 3], task_ms=[4], session_ms=10)
    tally.forget(2)
    assert (tally.recovery_ms, tally.task_ms, tally.session_ms) == ([2, 3], [4], 10)
