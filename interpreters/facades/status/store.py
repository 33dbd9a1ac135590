"""The state managers of document 001: an agent's state is one JSON document, saved atomically (I1).

The document's four fields come first: ``agent_id``, ``status``, ``budget_spent``, ``pii_detections``. Documents with
only these fields can be read (B14). Programs that know only these fields can read documents of this module. All other
fields are optional. ``budget_spent`` is in dollars, for readers; the integer ``cost_microusd`` counts.

``save_agent_state`` is a compare-and-set: it names the version that was read, and fails if the version has changed
(B16). So no change of another thread or process is lost.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol, Self

import msgspec

from lifefold.core.kernel import Aggregate, Entity, PersistentMap
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.budget import agent as agent_budget
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.lease import Lease
from lifefold.core.lifecycles.status import Status
from lifefold.interpreters.facades.status.errors import NotFound, StoreUnavailable, UnreadableState, VersionConflict
from lifefold.interpreters.store.wal import open_shared

MICROUSD_PER_USD: Final = 1_000_000
BUSY_TIMEOUT_S: Final = 30.0
"""The longest wait of SQLite for another writer."""


class AgentState(msgspec.Struct, frozen=True):
    """A stored agent. ``version`` counts its saves; times are Unix time in milliseconds."""

    agent_id: str
    status: status.State
    budget_spent: float = 0.0
    pii_detections: int = 0
    version: int = 0
    name: str = ""
    incarnation: int = 1
    since_ms: int = 0
    tasks: tuple[str, ...] = ()
    draining: bool = False
    reason: str = ""
    exit_code: int | None = None
    replaces: str = ""
    late_reports: int = 0
    last_late_report: str = ""
    budget_microusd: int = 0
    lease_ms: int | None = None
    cost_microusd: int | None = None
    added_microusd: int = 0
    leases: tuple[Entity[Lease], ...] = ()

    @property
    def spent_microusd(self) -> int:
        """The cost of the agent so far, in all its incarnations."""
        known = self.cost_microusd
        return round(self.budget_spent * MICROUSD_PER_USD) if known is None else known

    @property
    def reserved_microusd(self) -> int:
        """The sum of open reservations."""
        return sum(each.record.account.reserved for each in self.leases)

    @property
    def free_microusd(self) -> int:
        """The amount that the agent can reserve now."""
        return sum(each.record.account.free for each in self.leases if each.state is lease.State.ACTIVE)

    def to_json(self) -> bytes:
        """Return the JSON document."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read a document, also one with only the four fields. Raises ``UnreadableState``."""
        try:
            fields = msgspec.json.decode(data, type=dict[str, Any])
            return msgspec.convert(fields | {"status": str(fields["status"]).upper()}, cls)
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, RecursionError) as error:
            message = f"not an agent's state: {data[:200]!r}: {error}"
            raise UnreadableState(message) from error

    def aggregate(self) -> Aggregate:
        """Return the agent and its leases as an aggregate of the core."""
        shared = {name: getattr(self, name) for name in _SHARED}
        record = Status(state=self.status, **shared)
        if record.state is status.State.FAILED and not record.reason:
            record = msgspec.structs.replace(record, reason=status.UNKNOWN)
        entities: dict[str, Entity[Any]] = {each.ref: each for each in self.leases}
        entities[agent_budget.STATUS] = Entity(agent_budget.STATUS, record, self.version, self.since_ms)
        views = PersistentMap({agent_budget.COST: self.spent_microusd, agent_budget.ADDED: self.added_microusd})
        return Aggregate(f"{agent_budget.KIND}/{self.agent_id}", self.version, PersistentMap(entities), views)

    @classmethod
    def of(cls, agent: Aggregate, version: int) -> Self:
        """Return the state to be stored of an agent, without settled leases of earlier incarnations."""
        entity: Entity[Status] = agent.entities[agent_budget.STATUS]
        record, cost = entity.record, int(agent.views[agent_budget.COST])
        kept = tuple(
            each
            for each in agent_budget.leases(agent)
            if each.ref == agent_budget.lease_ref(record.incarnation) or not agent_budget.is_settled(each.record)
        )
        return cls(
            status=record.state,
            budget_spent=cost / MICROUSD_PER_USD,
            version=version,
            since_ms=entity.entered_ms,
            cost_microusd=cost,
            added_microusd=int(agent.views[agent_budget.ADDED]),
            leases=kept,
            **{name: getattr(record, name) for name in _SHARED},
        )

    def says_the_same_as(self, other: "AgentState") -> bool:
        """Tell whether the two states differ in versions only, so that saving adds nothing."""
        return msgspec.structs.replace(self, version=0, leases=_plain(self)) == msgspec.structs.replace(
            other, version=0, leases=_plain(other)
        )


_SHARED: Final = tuple(name for name in Status.__struct_fields__ if name != "state")


def _plain(state: AgentState) -> tuple[Entity[Lease], ...]:
    return tuple(msgspec.structs.replace(each, version=0) for each in state.leases)


class StateManager(Protocol):
    """Keeps agents. Safe to use from several threads."""

    def save_agent_state(self, state: AgentState, expected_version: int) -> None:
        """Save the state as the next version, if the saved one has ``expected_version``; 0 stands for a new agent.

        Raises ``VersionConflict`` if it has another version, ``StoreUnavailable`` if the state cannot be saved.
        """

    def get_agent_state(self, agent_id: str) -> AgentState:
        """Return the last saved state. Raises ``NotFound``, ``StoreUnavailable``, ``UnreadableState``."""
        ...

    def list_agents(self) -> tuple[str, ...]:
        """Return the ids of all agents, in order."""
        ...


class MemoryStateManager:
    """Keeps agents for as long as the process lives."""

    def __init__(self) -> None:
        """Start empty."""
        self._states: Final[dict[str, AgentState]] = {}
        self._lock: Final = Lock()

    def __repr__(self) -> str:
        """Return the number of agents."""
        return f"<MemoryStateManager: {len(self._states)} agents>"

    def save_agent_state(self, state: AgentState, expected_version: int) -> None:
        """Save the state, or raise ``VersionConflict``."""
        with self._lock:
            kept = self._states.get(state.agent_id)
            if (kept.version if kept else 0) != expected_version:
                raise VersionConflict(state.agent_id, expected_version)
            self._states[state.agent_id] = msgspec.structs.replace(state, version=expected_version + 1)

    def get_agent_state(self, agent_id: str) -> AgentState:
        """Return the state, or raise ``NotFound``."""
        with self._lock:
            if agent_id not in self._states:
                raise NotFound(agent_id, "there is no such agent")
            return self._states[agent_id]

    def list_agents(self) -> tuple[str, ...]:
        """Return the ids of all agents, in order."""
        with self._lock:
            return tuple(sorted(self._states))


class SqliteStateManager:
    """Keeps agents in a SQLite file, which several processes may use at the same time.

    A save is one statement with the version as its condition. Its transaction is durable when the call returns.
    """

    def __init__(self, path: Path | str) -> None:
        """Open the file, or make it. Raises ``StoreUnavailable``."""
        self._lock: Final = Lock()
        with _reaching(path):
            self._connection: Final = open_shared(path, BUSY_TIMEOUT_S)
            self._connection.execute(_SCHEMA)
        self._path: Final = path

    def __repr__(self) -> str:
        """Return the path of the file."""
        return f"<SqliteStateManager: {str(self._path)!r}>"

    def save_agent_state(self, state: AgentState, expected_version: int) -> None:
        """Save the state, or raise ``VersionConflict`` or ``StoreUnavailable``."""
        statement = _UPDATE if expected_version else _INSERT
        kept = msgspec.structs.replace(state, version=expected_version + 1)
        given = {"id": kept.agent_id, "version": kept.version, "state": kept.to_json(), "expected": expected_version}
        with self._lock, _reaching(self._path):
            changed = self._connection.execute(statement, given).rowcount
        if changed != 1:
            raise VersionConflict(state.agent_id, expected_version)

    def get_agent_state(self, agent_id: str) -> AgentState:
        """Return the state, or raise ``NotFound``, ``StoreUnavailable`` or ``UnreadableState``."""
        with self._lock, _reaching(self._path):
            found = self._connection.execute("SELECT state, version FROM agents WHERE id = ?", (agent_id,)).fetchone()
        if found is None:
            raise NotFound(agent_id, "there is no such agent")
        return msgspec.structs.replace(AgentState.from_json(found[0]), version=found[1])

    def list_agents(self) -> tuple[str, ...]:
        """Return the ids of all agents, in order, or raise ``StoreUnavailable``."""
        with self._lock, _reaching(self._path):
            return tuple(agent_id for (agent_id,) in self._connection.execute("SELECT id FROM agents ORDER BY id"))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


@contextmanager
def _reaching(path: Path | str) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        message = f"{path}: {error}"
        raise StoreUnavailable(message) from error


_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS agents (id TEXT PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL)"
)
_INSERT: Final = "INSERT INTO agents VALUES (:id, :version, :state) ON CONFLICT DO NOTHING"
_UPDATE: Final = "UPDATE agents SET version = :version, state = :state WHERE id = :id AND version = :expected"
