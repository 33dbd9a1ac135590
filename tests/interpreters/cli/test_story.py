"""The lines of transitions: why a session was interrupted."""

import pytest

from fleet_driver import Driver
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Envelope, Event, Reaction
from lifefold.core.lifecycles.session import SessionStarted
from lifefold.interpreters.cli.story import told

PLAN = Plan("plan", (AgentPlan("bob"),), (TaskPlan("T1", "do it"),))


def spawning() -> Driver:
    """Return a fleet whose agent is about to run its first session."""
    return Driver(PLAN).run(
        until=lambda now: "worker/bob" in now.aggregates and now.record("worker/bob", "session").state == "Spawning"
    )


@pytest.mark.parametrize(
    ("entity", "event", "cause"),
    [
        ("assignment", assignment.Recalled("T1", 1, "not wanted"), "T1 was taken back while the session began"),
        ("desired_state", desired_state.PauseWanted("lunch"), "paused: lunch"),
    ],
)
def test_a_session_that_is_interrupted_as_soon_as_it_runs_is_shown_with_its_reason(
    entity: str, event: Event, cause: str
) -> None:
    """The interruption waits for the start, and what has caused it is an earlier entry then."""
    driver = spawning()
    assert isinstance(driver.deliver("worker/bob", Envelope(entity, event, driver.now_ms)), Reaction)
    part = driver.aggregates["worker/bob"].entities["session"].find("RunSession")
    assert part is not None
    begun = Envelope("session", SessionStarted(0), driver.now_ms, "runner", slot=part.slot, generation=part.generation)
    reaction = driver.deliver("worker/bob", begun)
    assert isinstance(reaction, Reaction)
    (interrupted,) = (each for each in told("worker/bob", reaction) if each.event.to_status == "Interrupting")
    assert interrupted.cause == cause
