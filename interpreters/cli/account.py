"""The account of a log: costs, the operators who paused agents, errors that stopped agents, sessions of tasks.

It is folded from the transitions of a log. A run that continues a log begins with the account of that log.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from lifefold.core.fleet import service, system
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Aggregate, Reaction, Refusal, Transition, replace
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.session import Usage
from lifefold.effects import LogFatal
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.engine.snapshots import Loaded, load
from lifefold.interpreters.explain.chronicle_words import OPERATOR
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.spending import Spending, shared, spend
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import peek_log

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
        self._claims: dict[str, dict[str, tuple[int, int]]] = {}
        self._sessions: dict[str, dict[str, tuple[int, int]]] = {}

    def copied(self) -> "Account":
        """Return a copy that later transitions do not change."""
        copy = Account()
        copy.spending = self.spending
        copy.paused_by, copy.stopped_by = self.paused_by.copy(), self.stopped_by.copy()
        copy.attempts, copy._epochs = self.attempts.copy(), self._epochs.copy()
        copy._last_sessions = self._last_sessions.copy()
        copy._claims = {agent: claims.copy() for agent, claims in self._claims.items()}
        copy._sessions = {agent: sessions.copy() for agent, sessions in self._sessions.items()}
        return copy

    @classmethod
    def restored(cls, loaded: Loaded) -> "Account | None":
        """Return the account of the entries before a snapshot, or None if a part of it is missing there."""
        account = cls()
        for stream, version in loaded.versions.items():
            kind, _, agent = stream.partition("/")
            if kind in _AGENTS:
                try:
                    notes = _NOTES.decode(loaded.notes.get(stream, b""))
                except msgspec.DecodeError:
                    return None
                if notes.version != version:
                    return None
                account._take(agent, notes)
        for _, tell in loaded.untold:
            if isinstance(tell.event, assignment.Assigned) and tell.event.brief.stage is task.Stage.WORK:
                account._claim(tell.event.brief.task, tell.event.brief.epoch)  # the board has counted it already
        return account

    def notes(self, of: Aggregate) -> bytes:
        """Return the part of the account that is about one agent or service, for a snapshot; else nothing."""
        kind, _, agent = of.name.partition("/")
        if kind not in _AGENTS:
            return b""
        spending = self.spending
        return msgspec.json.encode(
            _Notes(
                of.version,
                self._claims.get(agent, {}),
                self._sessions.get(agent, {}),
                self.paused_by.get(agent),
                self.stopped_by.get(agent),
                spending.agents.get(agent),
                dict(spending.shares.get(agent, {})),
                spending.assigned.get(agent),
                agent in spending.talking,
            )
        )

    def _take(self, agent: str, notes: "_Notes") -> None:
        """Add the part that is about one agent."""
        self._claims[agent], self._sessions[agent] = notes.claims, notes.sessions
        for name, (count, epoch) in notes.claims.items():
            self.attempts[name] += count
            self._epochs[name] = max(epoch, self._epochs.get(name, 0))
        for name, (epoch, attempt) in notes.sessions.items():
            last = self._last_sessions.get(name)
            if last is None or self._sessions[last[0]][name][0] <= epoch:
                self._last_sessions[name] = agent, attempt
        if notes.paused_by is not None:
            self.paused_by[agent] = notes.paused_by
        if notes.stopped_by is not None:
            self.stopped_by[agent] = notes.stopped_by
        self.spending = shared(self.spending, agent, notes.shares, notes.spent, notes.assigned, talks=notes.talks)

    def observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        """Add the transitions of one input."""
        if not isinstance(outcome, Reaction):
            return
        for transition in outcome.transitions:
            self.spending = spend(self.spending, aggregate, transition)
            self._note(aggregate, transition)
            if transition.entity == SESSION and transition.entered is session.State.SPAWNING:
                brief: task.Brief = outcome.aggregate.record("assignment").brief
                agent, attempt = outcome.aggregate.key, transition.after.record.attempt
                self._last_sessions[brief.task] = agent, attempt
                self._sessions.setdefault(agent, {})[brief.task] = brief.epoch, attempt

    def authors(self) -> dict[str, str]:
        """Return the agent of the last attempt at each task; handing over done work is none."""
        claims = ((epoch, name, agent) for agent, of in self._claims.items() for name, (_, epoch) in of.items())
        return {name: agent for _, name, agent in sorted(claims)}

    def attempted(self, tasks: Iterable[TaskStatus]) -> tuple[TaskStatus, ...]:
        """Return the tasks with the number of their attempts: handing done work over to be merged is none."""
        attempts = self.attempts
        return tuple(
            each if each.attempts == attempts[each.id] else replace(each, attempts=attempts[each.id]) for each in tasks
        )

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
                claims = self._claims.setdefault(agent, {})
                claims[brief.task] = claims.get(brief.task, (0, 0))[0] + 1, brief.epoch
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


class _Notes(msgspec.Struct, omit_defaults=True):
    """The account of one agent as of a version of its aggregate.

    ``claims`` has for each task the number of claims and the epoch of the last, ``sessions`` the epoch and the number
    of the last session.
    """

    version: int
    claims: dict[str, tuple[int, int]] = {}
    sessions: dict[str, tuple[int, int]] = {}
    paused_by: str | None = None
    stopped_by: str | None = None
    spent: Usage | None = None
    shares: dict[str, Usage] = {}
    assigned: str | None = None
    talks: bool = False


_NOTES: Final = msgspec.json.Decoder(_Notes)


async def account_of(log: Path) -> Account:
    """Return the account of a log; only workers and services are folded, because the account is about them."""
    with peek_log(log) as store:
        ledger = Ledger(system)
        loaded = await load(ledger, store)
        account = Account.restored(loaded)
        if account is None:
            ledger, account, entries = Ledger(system), Account(), iter(await store.read())
        else:
            entries = iter(loaded.entries)
        of_agents = (each for each in entries if each.stream.partition("/")[0] in _AGENTS)
        for decision in ledger.fold(of_agents):
            account.observe(decision.entry.stream, decision.reaction)
    return account


def usage_json(usage: Usage) -> Mapping[str, Any]:
    """Return the costs for JSON, in US dollars and tokens; null for what no session has reported."""
    return {
        "cost_usd": usage.cost_microusd / 1_000_000 if usage.cost_microusd else None,
        "input_tokens": usage.input_tokens or None,
        "output_tokens": usage.output_tokens or None,
    }
