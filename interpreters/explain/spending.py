"""The known costs of a fleet, by agent and by task: a projection, folded over the transitions of its log.

A session reports its cost at its end, if it can. The cost counts for its agent and for the agent's task. A session that
is given up before its end reports nothing and counts as nothing, so the real costs can be higher. A total of a
conversation counts as what its budgets are charged: the difference to the earlier charges.
"""

import msgspec
from pyrsistent import PMap, PSet, pmap, pset

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles.session import SessionExited, Usage


class Spending(msgspec.Struct, frozen=True):
    """The known costs. ``assigned`` has the last task of each agent; ``talking`` are the agents with conversations."""

    agents: PMap[str, Usage] = pmap()
    tasks: PMap[str, Usage] = pmap()
    assigned: PMap[str, str] = pmap()
    talking: PSet[str] = pset()

    @property
    def total(self) -> Usage:
        """The costs of all agents together."""
        total = Usage()
        for each in self.agents.values():
            total = total.plus(each)
        return total

    def of_agent(self, name: str) -> Usage:
        """Return the costs of an agent."""
        return self.agents.get(name, Usage())

    def of_task(self, name: str) -> Usage:
        """Return the costs of a task."""
        return self.tasks.get(name, Usage())


def spend(spending: Spending, aggregate: str, transition: Transition) -> Spending:
    """Take a transition of an aggregate into account."""
    kind, _, agent = aggregate.partition("/")
    if kind != worker.KIND:
        return spending
    event = transition.event
    if isinstance(event, assignment.Assigned):
        return replace(spending, assigned=spending.assigned.set(agent, event.brief.task))
    if transition.machine == conversation.machine.name and transition.before is None:
        return replace(spending, talking=spending.talking.add(agent))
    if isinstance(event, conversation.SessionEnded):
        return _charge(spending, agent, conversation.charge(transition.was, event))
    if isinstance(event, SessionExited) and agent not in spending.talking:
        return _charge(spending, agent, event.usage)
    return spending


def _charge(spending: Spending, agent: str, usage: Usage) -> Spending:
    if usage == Usage():
        return spending
    task = spending.assigned.get(agent, "")
    return replace(
        spending,
        agents=spending.agents.set(agent, spending.of_agent(agent).plus(usage)),
        tasks=spending.tasks.set(task, spending.of_task(task).plus(usage)),
    )
