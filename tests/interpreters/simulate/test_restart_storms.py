"""However agents fail, whatever becomes of messages and runners: no more restarts in a window than there may be."""

from collections import defaultdict
from collections.abc import Iterable

from lifefold.core.kernel import Aggregate, Reaction, react
from lifefold.core.lifecycles.session_profiles import Restarted
from lifefold.interpreters.simulate import Run, simulate
from lifefold.interpreters.targets.fleet_plans import restarted_plan
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.targets.target import Target

SEEDS = 30
AGENTS, TASKS = 3, 9
PLAN = restarted_plan(AGENTS, TASKS)


def restarts_of(target: Target, run: Run) -> dict[str, list[int]]:
    """Return when each agent was restarted, in milliseconds of virtual time: the log of the run, folded again."""
    system = target.system
    aggregates: dict[str, Aggregate] = {}
    found: dict[str, list[int]] = defaultdict(list)
    for each in run.entries:
        of = system.type_of(each.aggregate)
        before = aggregates.get(each.aggregate) or of.start(each.aggregate)
        outcome = react(of, before, each.envelope)
        if isinstance(outcome, Reaction):
            aggregates[each.aggregate] = outcome.aggregate
            found[each.aggregate] += [t.at_ms for t in outcome.transitions if isinstance(t.event, Restarted)]
    return found


def most_within(timestamps: Iterable[int], window_ms: int) -> int:
    """Return how many moments there are in the window that has most of them."""
    every = sorted(timestamps)
    return max((sum(at <= each < at + window_ms for each in every) for at in every), default=0)


def test_no_window_has_more_restarts_than_the_intensity_allows() -> None:
    """Of each agent, and of all together; and an agent's limit is reached, so that it is what keeps it so.

    A clock that is set back shows restarts nearer to each other than they were: such runs are not looked at.
    """
    target, looked_at, most_of_one = named(f"fleet-restarts-{AGENTS}x{TASKS}"), 0, 0
    one, every = PLAN.agents[0].restart, PLAN.restarts
    assert every is not None
    for seed in range(SEEDS):
        run = simulate(target.subject, opening=target.opening, seed=seed, environment=target.environment)
        assert run.ok, (seed, run.found)
        if not run.struck.get("clock back"):
            found = restarts_of(target, run)
            looked_at += 1
            most_of_one = max(most_of_one, *(most_within(each, one.window_ms) for each in found.values()))
            assert most_within((at for each in found.values() for at in each), every.window_ms) <= every.max_restarts
    assert most_of_one == one.max_restarts
    assert looked_at > SEEDS // 3
