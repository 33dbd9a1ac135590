"""The faults of agent programs in a simulation: limits, doubled and late facts, and conversations that are lost."""

from collections.abc import Iterator

import pytest

from lifefold.core.fleet.worker.output import LimitSeen, Seen
from lifefold.core.kernel import Event
from lifefold.core.lifecycles.session import SessionExited
from lifefold.core.policy.ends import Trouble
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.targets.simulation_targets import named

SEEDS = 12


def inputs(name: str) -> Iterator[list[tuple[str, Event]]]:
    """Yield the inputs of each run, with their aggregates. No property is broken in any."""
    target = named(name)
    for seed in range(SEEDS):
        run = simulate(target.subject, opening=target.opening, environment=target.environment, seed=seed)
        assert run.ok, (seed, run.found)
        yield [(each.aggregate, each.envelope.event) for each in run.entries]


@pytest.mark.no_cover
def test_sessions_meet_limits_and_lose_their_conversations_and_repeat_facts() -> None:
    """All properties hold in each of these runs, those of accounts and conversations too."""
    limited = lost = repeated = 0
    for run in inputs("fleet-talking-2x3"):
        seen = [each for each in run if isinstance(each[1], Seen)]
        limited += sum(isinstance(event, LimitSeen) for _, event in seen)
        repeated += len(seen) - len({*map(repr, seen)})
        ends = (event.diagnosis for _, event in run if isinstance(event, SessionExited))
        lost += sum(each is not None and each.trouble is Trouble.LOST for each in ends)
    assert limited > 0
    assert lost > 0
    assert repeated > 0
