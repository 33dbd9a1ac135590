"""The account of a log: costs, the operators who paused agents, and the errors that have stopped agents.

It is folded from the transitions of a log. A run that continues a log begins with the account of that log.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lifefold.core.fleet import service, system
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Reaction, Refusal, Transition
from lifefold.core.lifecycles.session import Usage
from lifefold.effects import LogFatal
from lifefold.interpreters.cli.story import OPERATOR
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.store import SqliteStore

SESSION: Final = "session"
"""The entity of a worker whose fatal error stops the agent."""

_AGENTS: Final = frozenset({worker.KIND, service.KIND})


class Account:
    """Costs, the operator who paused each agent, and the message of each agent that its errors have stopped."""

    def __init__(self) -> None:
        """Begin an empty account."""
        self.spending = Spending()
        self.paused_by: dict[str, str] = {}
        self.stopped_by: dict[str, str] = {}

    def observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        """Add the transitions of one input."""
        for transition in outcome.transitions if isinstance(outcome, Reaction) else ():
            self.spending = spend(self.spending, aggregate, transition)
            self._note(aggregate, transition)

    def _note(self, aggregate: str, transition: Transition) -> None:
        agent = aggregate.partition("/")[2]
        if isinstance(transition.event, desired_state.PauseWanted):
            self.paused_by[agent] = transition.actor.removeprefix(OPERATOR)
        if transition.entity == SESSION and transition.entered is not None:
            self.stopped_by.pop(agent, None)
            for effect in transition.effects:
                if isinstance(effect, LogFatal):
                    self.stopped_by[agent] = effect.message


async def account_of(log: Path) -> Account:
    """Return the account of a log; only workers and services are folded, because the account is about them."""
    account = Account()
    with SqliteStore.peek(log) as store:
        of_agents = (each for each in await store.read() if each.stream.partition("/")[0] in _AGENTS)
        for decision in Ledger(system).fold(of_agents):
            account.observe(decision.entry.stream, decision.reaction)
    return account


def usage_json(usage: Usage) -> Mapping[str, Any]:
    """Return the costs for JSON, in US dollars and tokens; null for what no session has reported."""
    return {
        "cost_usd": usage.cost_microusd / 1_000_000 if usage.cost_microusd else None,
        "input_tokens": usage.input_tokens or None,
        "output_tokens": usage.output_tokens or None,
    }
