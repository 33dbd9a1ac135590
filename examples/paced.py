"""A shipped lifecycle with an added state: after each task an agent rests for a while before it asks for more.

It shows three things:

- a state that the session's table does not have, added with its rows and its timer
- giving up properties of the document in a profile, by name
- the fleet's system with that session, checked, simulated and run

    lifefold check examples.paced:fleet --commands 1
    python -m examples.paced fleet.toml fleet.log.db
    lifefold log examples.paced:resting fleet.log.db

Without ``examples.paced:resting`` the command line reads logs with the rules that lifefold ships.
"""

import sys
from pathlib import Path
from typing import Any, Final

import anyio

from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.system import worker
from lifefold.core.kernel import Event, Machine, State, System, after, leads_to, row
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import increment
from lifefold.interpreters.fleet_file import Fleet, load
from lifefold.interpreters.fleet_runner import Runner, Verdict

REST_MS: Final = 2_000
"""The time that an agent rests."""


class Rest(State):
    """The state beside those of the session."""

    RESTING = "Resting"


class Rested(Event, frozen=True):
    """The agent has rested."""


agent: Final[Machine[Any]] = (
    worker.agent.replacing(
        row(session.State.SESSION_COMPLETE, session.WorktreeReady, Rest.RESTING, increment),
        row(Rest.RESTING, Rested, session.State.BUILDING_PROMPT),
        added=Rest,
        during={Rest.RESTING: after(REST_MS, Rested)},
    )
    .without_properties("a completed session counts once", "every event of the table leads where the table says")
    .with_properties(
        leads_to("who rests goes on", lambda now: now.state is Rest.RESTING, lambda now: now.state is not Rest.RESTING)
    )
)
"""The session of a worker that rests. The two removed properties are about the step with another target here."""

resting: Final[System] = system.with_machine(worker.KIND, agent)
"""The fleet with that session."""

_ONCE: Final = AgentPlan("ann", session.Limits(max_consecutive_errors=1, max_total_errors=1))
_PLAN: Final = Plan("resting", (_ONCE,), (TaskPlan("T1", "do it", max_retries=0),))
fleet: Final = (resting, tuple(opening(_PLAN, 0)))
"""A small fleet, for `lifefold check`: the agent gives up at its first error."""


async def run(of: Fleet, log: Path) -> Verdict:
    """Run a fleet whose agents rest."""
    runner = await Runner.open(of, log, rules=resting)
    try:
        return await runner.run()
    finally:
        runner.close()


if __name__ == "__main__":
    sys.exit(anyio.run(run, load(Path(sys.argv[1])), Path(sys.argv[2])))
