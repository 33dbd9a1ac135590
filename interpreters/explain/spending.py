"""The known costs of a fleet, by agent and by task: a projection, folded over the transitions of its log.

A session reports its cost at its end, if it can. The cost counts for its agent and for the agent's task. A session that
is given up before its end reports nothing and counts as nothing, so the real costs can be higher. A total of a
conversation counts as what its budgets are charged: the difference to the earlier charges.
"""

from collections.abc import Mapping

import msgspec
from pyrsistent import PMap, PSet, pmap, pset

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles.session import SessionExited, Usage


class Spending(msgspec.Struct, frozen=True):
    """The known costs. ``assigned`` has the last task of each agent; ``talking`` are the agents with conversations.

    ``shares`` has the costs of each agent by task.
    """

    agents: PMap[str, Usage] = pmap()
    tasks: PMap[str, Usage] = pmap()
    assigned: PMap[str, str] = pmap()
    talking: PSet[str] = pset()
    shares: PMap[str, PMap[str, Usage]] = pmap()

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
    return _charge(spending, agent, charged(spending, aggregate, transition))


def charged(spending: Spending, aggregate: str, transition: Transition) -> Usage:
    """Return the costs that a transition reports of a session; none for any other transition."""
    kind, _, agent = aggregate.partition("/")
    event = transition.event
    if kind == worker.KIND and isinstance(event, conversation.SessionEnded):
        return conversation.charge(transition.was, event)
    if kind == worker.KIND and isinstance(event, SessionExited) and agent not in spending.talking:
        return event.usage
    return Usage()


def _charge(spending: Spending, agent: str, usage: Usage) -> Spending:
    if usage == Usage():
        return spending
    task = spending.assigned.get(agent, "")
    shares: PMap[str, Usage] = spending.shares.get(agent, pmap())
    return replace(
        spending,
        shares=spending.shares.set(agent, shares.set(task, shares.get(task, Usage()).plus(usage))),
        agents=spending.agents.set(agent, spending.of_agent(agent).plus(usage)),
        tasks=spending.tasks.set(task, spending.of_task(task).plus(usage)),
    )


def shared(  # noqa: PLR0913 - the parts of what is known of an agent, each with its name
    spending: Spending,
    agent: str,
    shares: Mapping[str, Usage],
    spent: Usage | None,
    assigned: str | None,
    *,
    talks: bool,
) -> Spending:
    """Add what was known of one agent."""
    tasks = spending.tasks
    for task, usage in shares.items():
        tasks = tasks.set(task, spending.of_task(task).plus(usage))
    return Spending(
        spending.agents if spent is None else spending.agents.set(agent, spent),
        tasks,
        spending.assigned if assigned is None else spending.assigned.set(agent, assigned),
        spending.talking.add(agent) if talks else spending.talking,
        spending.shares.set(agent, pmap(shares)) if shares else spending.shares,
    )
