"""What a fleet has cost so far, by agent and by task: a projection, folded over the transitions of its log.

A session says at its end what it has cost, if it can. It is counted for the agent whose session it was, and for the
task that the agent had in its hands. What is killed before it could say so counts as nothing, so that this is what is
known to be spent, and no more.
"""

import msgspec
from pyrsistent import PMap, pmap

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles.session import SessionExited, Usage


class Spending(msgspec.Struct, frozen=True):
    """What is known to be spent. ``hands`` says which task each agent was given last."""

    agents: PMap[str, Usage] = pmap()
    tasks: PMap[str, Usage] = pmap()
    hands: PMap[str, str] = pmap()

    @property
    def total(self) -> Usage:
        """What all agents together have spent."""
        total = Usage()
        for each in self.agents.values():
            total = total.plus(each)
        return total

    def of_agent(self, name: str) -> Usage:
        """Return what an agent has spent."""
        return self.agents.get(name, Usage())

    def of_task(self, name: str) -> Usage:
        """Return what was spent on a task."""
        return self.tasks.get(name, Usage())


def spend(spending: Spending, aggregate: str, transition: Transition) -> Spending:
    """Take a transition of an aggregate into account."""
    kind, _, agent = aggregate.partition("/")
    if kind != worker.KIND:
        return spending
    event = transition.event
    if isinstance(event, assignment.Assigned):
        return replace(spending, hands=spending.hands.set(agent, event.brief.task))
    if isinstance(event, SessionExited) and event.usage != Usage():
        task = spending.hands.get(agent, "")
        return replace(
            spending,
            agents=spending.agents.set(agent, spending.of_agent(agent).plus(event.usage)),
            tasks=spending.tasks.set(task, spending.of_task(task).plus(event.usage)),
        )
    return spending
