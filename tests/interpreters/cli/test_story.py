"""The lines of transitions: why a session was interrupted."""

from typing import Final

import pytest

from fleet_driver import Driver
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan
from lifefold.core.fleet.board.fleet_task import ConversationKept
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.fleet.worker.output import Doing, Output, Work, WorkSeen
from lifefold.core.kernel import Aggregate, Entity, Envelope, Event, Reaction, Transition
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import SessionStarted
from lifefold.core.lifecycles.session_limits import LimitReached
from lifefold.core.lifecycles.task import KeptConversation
from lifefold.interpreters.cli.story import happenings
from lifefold.interpreters.cli.wording import moment

UNTIL_MS: Final = 1_795_600_800_000
LIMIT: Final = f"the limit five_hour of its account is reached until {moment(UNTIL_MS)}: no more"
FACTS: Final = {
    "WorkSeen: runs Bash, compacts its context": WorkSeen(2, (Doing(name="Bash"), Doing(Work.COMPACTION)), 1, 1),
    "WorkSeen: nothing is under way": WorkSeen(2, (), 1),
    "ConversationKept: ann, conversation C1": ConversationKept(1, "ann", KeptConversation("ann", "C1")),
    "ConversationKept: ann, none": ConversationKept(1, "ann"),
    f"LimitReached: {LIMIT}": LimitReached(UNTIL_MS, "five_hour", "no more"),
    f"SessionExited: {LIMIT}, 3 tokens in, 0 out in the whole conversation": session.SessionExited(
        session.Limited(UNTIL_MS, "five_hour", "no more"), session.Usage(input_tokens=3), is_total=True
    ),
    "SessionExited: the limit of its account is reached": session.SessionExited(session.Limited()),
}


@pytest.mark.parametrize("cause", FACTS)
def test_what_an_agent_program_reports_is_told_in_words(cause: str) -> None:
    """Not by the structs of an event, nor by times in milliseconds."""
    of = Entity("output", Output())
    transition = Transition("output", of, of, FACTS[cause], 0, "", ())
    (happening,) = happenings("worker/ann", Reaction(Aggregate("worker/ann"), transitions=(transition,)))
    assert happening.cause == cause


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
    (interrupted,) = (each for each in happenings("worker/bob", reaction) if each.event.to_status == "Interrupting")
    assert interrupted.cause == cause
