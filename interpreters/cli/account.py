"""The account of a log: costs, the operators who paused agents, errors that stopped agents, sessions of tasks.

It is folded from the transitions of a log. A run that continues a log begins with the account of that log.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from lifefold.core.fleet import service, system
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Reaction, Refusal, Transition, replace
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.session import Usage
from lifefold.effects import LogFatal
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.explain.chronicle_words import OPERATOR
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import SqliteStore

SESSION: Final = "session"
"""The entity of a worker whose fatal error stops the agent."""

MOST_OUTPUTS: Final = 3
"""The most outputs of sessions that a summary or a status names."""

_AT_REST: Final = frozenset({task.State.CLOSED, task.State.CANCELLED})

_AGENTS: Final = frozenset({worker.KIND, service.KIND})


class Account:
    """Costs, the operator who paused each agent, and the message of each agent that its errors have stopped.

    It also has the last session at each task. ``attempts`` counts the attempts at each task: the claims, without those
    that only verify or merge done work. The board and the worker both tell of a claim, so workers alone suffice.
    """

    def __init__(self) -> None:
        """Begin an empty account."""
        self.spending = Spending()
        self.paused_by: dict[str, str] = {}
        self.stopped_by: dict[str, str] = {}
        self.attempts: Counter[str] = Counter()
        self._epochs: dict[str, int] = {}
        self._last_sessions: dict[str, tuple[str, int]] = {}

    def copied(self) -> "Account":
        """Return a copy that later transitions do not change."""
        copy = Account()
        copy.spending = self.spending
        copy.paused_by, copy.stopped_by = self.paused_by.copy(), self.stopped_by.copy()
        copy.attempts, copy._epochs = self.attempts.copy(), self._epochs.copy()
        copy._last_sessions = self._last_sessions.copy()
        return copy

    def observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        """Add the transitions of one input."""
        if not isinstance(outcome, Reaction):
            return
        for transition in outcome.transitions:
            self.spending = spend(self.spending, aggregate, transition)
            self._note(aggregate, transition)
            if transition.entity == SESSION and transition.entered is session.State.SPAWNING:
                brief: task.Brief = outcome.aggregate.record("assignment").brief
                self._last_sessions[brief.task] = (outcome.aggregate.key, transition.after.record.attempt)

    def attempted(self, tasks: Iterable[TaskStatus]) -> tuple[TaskStatus, ...]:
        """Return the tasks with the number of their attempts: handing done work over to be merged is none."""
        return tuple(replace(each, attempts=self.attempts[each.id]) for each in tasks)

    def output_of(self, task: str, folder: FleetFolder) -> str:
        """Return the file with the output of a task's last session; empty without one that this user may read."""
        if task in self._last_sessions:
            with suppress(PermissionError):  # a user may read the log, but not its folder
                output = folder.output(*self._last_sessions[task])
                return str(output) if output.exists() else ""
        return ""

    def outputs(self, tasks: Iterable[TaskStatus], folder: FleetFolder, log: str) -> Iterator[str]:
        """Yield where the output of the last session is, for the first tasks that failed or were given back.

        ``log`` is the option for the log that commands need, or empty.
        """
        concerned = (each.id for each in tasks if each.reason and each.state not in _AT_REST)
        found = [(name, output) for name in concerned if (output := self.output_of(name, folder))]
        yield from (f"the output of the last session at {name} is in {output}" for name, output in found[:MOST_OUTPUTS])
        if len(found) > MOST_OUTPUTS:
            yield f"lifefold why TASK{log} names the output of {len(found) - MOST_OUTPUTS} more"

    def _note(self, aggregate: str, transition: Transition) -> None:
        agent = aggregate.partition("/")[2]
        match transition.event:
            case fleet_task.Handed():
                pass
            case task.Claimed():
                self._claim(transition.entity.removeprefix("task:"), transition.after.record.epoch)
            case assignment.Assigned(brief=brief) if brief.stage is task.Stage.WORK:
                self._claim(brief.task, brief.epoch)
            case _:
                pass
        if isinstance(transition.event, desired_state.PauseWanted):
            self.paused_by[agent] = transition.actor.removeprefix(OPERATOR)
        if transition.entity == SESSION and transition.entered is not None:
            self.stopped_by.pop(agent, None)
            for effect in transition.effects:
                if isinstance(effect, LogFatal):
                    self.stopped_by[agent] = in_plain_words(effect.message)

    def _claim(self, name: str, epoch: int) -> None:
        """Count an attempt, once: the epochs of a task's claims grow."""
        if epoch > self._epochs.get(name, 0):
            self._epochs[name] = epoch
            self.attempts[name] += 1


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
