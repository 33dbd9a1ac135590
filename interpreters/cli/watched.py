"""What a picture of a fleet is drawn of: a runner in this process, or a log that another process writes."""

import time
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import anyio

from lifefold.core.fleet import system
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import logs
from lifefold.interpreters.engine import Decision, Ledger, Observer
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_runner import Runner, quarantines
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.hosts import Host, evidence_of, hosts_of, waits_of
from lifefold.interpreters.fleet_runner.notices import Notice
from lifefold.interpreters.store import LogStore

HOSTS_S: Final = 1.0
"""The age at which the words of hosts are read again, in seconds."""


class Watched(Protocol):
    """A fleet that is drawn. ``leaving`` counts the requests to its runner to leave."""

    @property
    def name(self) -> str:
        """The name of the fleet."""
        ...

    @property
    def folder(self) -> FleetFolder:
        """The files of its log."""
        ...

    @property
    def observers(self) -> list[Observer]:
        """The functions that are called with each reaction and refusal."""
        ...

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """Its present state."""
        ...

    @property
    def leaving(self) -> int:
        """How often its runner was asked to leave."""
        ...

    def now_ms(self) -> int:
        """Return the time, in Unix milliseconds."""
        ...

    def live(self) -> tuple[int, int]:
        """Return how many sessions of agents and how many runs of services a leaving runner waits for."""
        ...

    def pid(self, agent: AgentStatus) -> int | None:
        """Return the process of an agent's session."""
        ...

    def standing(self) -> list[Notice]:
        """Return the notices that hold, the latest last."""
        ...

    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts on which its sessions run; none for a fleet on one machine."""
        ...


class OfRunner:
    """The fleet of a runner in this process."""

    def __init__(self, runner: Runner) -> None:
        """Take the runner."""
        self._runner: Final = runner
        self.folder: Final = runner.folder
        self.observers: Final = runner.observers

    @property
    def name(self) -> str:
        """The name of the fleet."""
        return self._runner.fleet.name

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """Its present state."""
        return self._runner.aggregates

    @property
    def leaving(self) -> int:
        """How often the runner was asked to leave."""
        return self._runner.leaving

    def now_ms(self) -> int:
        """Return the time of the runner."""
        return self._runner.engine.clock.now_ms()

    def live(self) -> tuple[int, int]:
        """Return the sessions of agents and the runs of services that live."""
        served = {each.name for each in self._runner.fleet.services}
        names = list(self._runner.handlers.sessions.live)
        runs = sum(name in served for name in names)
        return len(names) - runs, runs

    def pid(self, agent: AgentStatus) -> int | None:
        """Return the process of an agent's session."""
        return self._runner.handlers.sessions.pid(agent.name)

    def standing(self) -> list[Notice]:
        """Return the notices of the runner that hold."""
        return self._runner.standing()

    def hosts(self) -> tuple[Host, ...]:
        """Return none: the sessions run here."""
        return ()


class Followed:
    """The fleet of a log that another process writes; ``look`` reads on."""

    def __init__(self, store: LogStore, ledger: Ledger | None = None) -> None:
        """Begin before the first entry, or with what is folded already."""
        self.leaving: Final = 0
        self.store: Final = store
        self.folder: Final = FleetFolder(store.path)
        self.observers: Final[list[Observer]] = []
        self.name: Final = store.meta("fleet") or ""
        self._ledger: Final = ledger or Ledger(system)
        self._hosts: tuple[float, tuple[Host, ...]] = (float("-inf"), ())

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """Its state in the log."""
        return self._ledger.aggregates

    @property
    def runs(self) -> bool:
        """Whether a runner is at work."""
        return self.store.is_written()

    def look(self) -> bool:
        """Read on, and return whether there was anything new."""
        return self.take(logs.decisions(self.store, self._ledger))

    def take(self, decisions: Iterable[Decision]) -> bool:
        """Tell the observers of decisions, and return whether there were any."""
        is_new = False
        for decision in decisions:
            is_new = True
            for observe in self.observers:
                observe(decision.entry.stream, decision.reaction)
        return is_new

    def now_ms(self) -> int:
        """Return the time of this machine."""
        return time.time_ns() // 1_000_000

    def live(self) -> tuple[int, int]:
        """Return no sessions: how a runner leaves is on its own screen."""
        return 0, 0

    def pid(self, agent: AgentStatus) -> int | None:
        """Return the process of an agent's session, if it is alive."""
        found = evidence_of(self.folder, agent, self.hosts()) if agent.processes else None
        return found.pid if found is not None and found.alive else None

    def standing(self) -> list[Notice]:
        """Return the quarantines, and what blocks merges and check-outs, as the runner wrote it down."""
        held = quarantined_now(self.aggregates, self.now_ms())
        waits = waits_of(self.folder, self.hosts()) if self.runs else ()
        return [*held, *(Notice(each.agent, each.said, each.seen_ms) for each in waits)]

    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts, as they have said it a second ago at most."""
        if time.monotonic() - self._hosts[0] >= HOSTS_S:
            self._hosts = time.monotonic(), anyio.run(hosts_of, self.store)
        return self._hosts[1]


def quarantined_now(aggregates: Mapping[str, Aggregate], now_ms: int) -> list[Notice]:
    """Return a notice for each quarantined entity."""
    return [
        Notice(each.name, f"its {each.entity} is quarantined: {each.reason}; lifefold release {each.name}", now_ms)
        for each in quarantines.quarantined(aggregates)
    ]
