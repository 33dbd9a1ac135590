"""A runtime of agents with everything around it written down: telemetry, hooks, money that comes back, the clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from lifefold.interpreters.facades.status import AgentState, MemoryStateManager, Runtime, StateManager


def well(_agent_id: str, _incarnation: int) -> None:
    """Do what is asked."""


def alive(_state: AgentState) -> bool:
    """Say that it lives."""
    return True


@dataclass
class RecordedRuntime:
    """``told`` has what was heard of, in order. Hooks may be set by a test."""

    store: StateManager = field(default_factory=MemoryStateManager)
    launch: Callable[[str, int], None] = well
    release: Callable[[str, int], None] = well
    told: list[str] = field(default_factory=list[str])
    fields: list[dict[str, str | int | None]] = field(default_factory=list[dict[str, str | int | None]])
    now_ms: int = 1_000
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.runtime = self.another()

    def another(self, liveness: Callable[[AgentState], bool] | None = None) -> Runtime:
        """Return a runtime on the same store, as after a restart, or in another process."""
        return Runtime(
            self.store,
            self.hear,
            launch=self.launched,
            release=self.released,
            returned=lambda agent_id, amount: self.told.append(f"{agent_id} returns {amount}"),
            liveness=liveness,
            new_id=lambda: f"agent_{next(self.numbers)}",
            clock=lambda: self.now_ms,
        )

    def hear(self, agent_id: str, event: str, fields: dict[str, str | int | None]) -> None:
        self.told.append(f"{agent_id} {event}")
        self.fields.append(fields)

    def launched(self, agent_id: str, incarnation: int) -> None:
        self.told.append(f"{agent_id} launch {incarnation}")
        self.launch(agent_id, incarnation)

    def released(self, agent_id: str, incarnation: int) -> None:
        self.told.append(f"{agent_id} release {incarnation}")
        self.release(agent_id, incarnation)


class UneasyStore(MemoryStateManager):
    """A store that cannot keep anything while ``full`` is set, or reports once that another writer was faster."""

    full = False
    before_save: Callable[[], object] | None = None

    def save_agent_state(self, state: AgentState, expected_version: int) -> None:
        meanwhile, self.before_save = self.before_save, None
        if meanwhile:
            meanwhile()
        if self.full:
            raise OSError("disk full")
        super().save_agent_state(state, expected_version)
