"""The known costs of a fleet, by agent and by task: a projection, folded over the transitions of its log.

A session reports its cost at its end, if it can. The cost counts for its agent and for the agent's task. An agent with
conversations can report the total of its conversation: then the part counts that was not charged before. A killed
session can report too little, so the real costs can be higher.
"""

import msgspec
from pyrsistent import PMap, PSet, pmap, pset

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles.session import SessionExited, Usage


class Spending(msgspec.Struct, frozen=True):
    """The known costs. ``assigned`` has the last task of each agent; agents that ``talk`` have conversations."""

    agents: PMap[str, Usage] = pmap()
    tasks: PMap[str, Usage] = pmap()
    assigned: PMap[str, str] = pmap()
    talk: PSet[str] = pset()

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
    if isinstance(event, conversation.ClaimBegan):
        return replace(spending, talk=spending.talk.add(agent))
    if isinstance(event, conversation.SessionEnded) and transition.before is not None:
        return _charged(spending, agent, conversation.charge(transition.before.record, event))
    if isinstance(event, SessionExited) and agent not in spending.talk:
        return _charged(spending, agent, event.usage)
    return spending


def _charged(spending: Spending, agent: str, usage: Usage) -> Spending:
    if usage == Usage():
        return spending
    task = spending.assigned.get(agent, "")
    return replace(
        spending,
        agents=spending.agents.set(agent, spending.of_agent(agent).plus(usage)),
        tasks=spending.tasks.set(task, spending.of_task(task).plus(usage)),
    )
