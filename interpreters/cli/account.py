"""What a log says beyond how things stand: what was spent, who has paused whom, by what agents have stopped.

It is folded along with the log.

A run observes what happens; one that goes on with a log begins with what that says.
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
from lifefold.interpreters.cli.story import PEOPLE
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.store import SqliteStore

SESSION: Final = "session"
"""The entity of a worker that stops by its errors, and says then which they were."""

_AGENTS: Final = frozenset({worker.KIND, service.KIND})


class Account:
    """What was spent, by whom each agent was paused, and by what errors those have stopped that are down by errors."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.spending = Spending()
        self.paused_by: dict[str, str] = {}
        self.stopped_by: dict[str, str] = {}

    def observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        """Take into account what an input came to."""
        for transition in outcome.transitions if isinstance(outcome, Reaction) else ():
            self.spending = spend(self.spending, aggregate, transition)
            self._note(aggregate, transition)

    def _note(self, aggregate: str, transition: Transition) -> None:
        agent = aggregate.partition("/")[2]
        if isinstance(transition.event, desired_state.PauseWanted):
            self.paused_by[agent] = transition.actor.removeprefix(PEOPLE)
        if transition.entity == SESSION and transition.entered is not None:
            self.stopped_by.pop(agent, None)
            for said in transition.effects:
                if isinstance(said, LogFatal):
                    self.stopped_by[agent] = said.message


async def account_of(log: Path) -> Account:
    """Return what a log has come to so far: only agents are folded, for all of it happens to them."""
    account = Account()
    with SqliteStore.peek(log) as store:
        of_agents = (each for each in await store.read() if each.stream.partition("/")[0] in _AGENTS)
        for decision in Ledger(system).fold(of_agents):
            account.observe(decision.entry.stream, decision.reaction)
    return account


def usage_json(usage: Usage) -> Mapping[str, Any]:
    """Return what was spent as programs read it: dollars, and tokens; null is what nobody has said anything of."""
    return {
        "cost_usd": usage.cost_microusd / 1_000_000 if usage.cost_microusd else None,
        "input_tokens": usage.input_tokens or None,
        "output_tokens": usage.output_tokens or None,
    }
