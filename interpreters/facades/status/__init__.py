"""The interface of document 001: a ``Runtime`` that spawns and stops agents, over a store that loses no update."""

from lifefold.core.lifecycles.budget.account import Verdict
from lifefold.core.lifecycles.budget.lease import State as LeaseState
from lifefold.core.lifecycles.status import State
from lifefold.interpreters.facades.status.configuration import AgentConfig
from lifefold.interpreters.facades.status.errors import (
    AgentBusy,
    AgentError,
    AgentFailed,
    AlreadyRunning,
    BudgetRefused,
    NotFound,
    NotReserved,
    NotRunning,
    RefreshRefused,
    StoreError,
    StoreUnavailable,
    TaskRefused,
    UnreadableState,
    VersionConflict,
)
from lifefold.interpreters.facades.status.runtime import Runtime
from lifefold.interpreters.facades.status.store import AgentState, MemoryStateManager, SqliteStateManager, StateManager

__all__ = [
    "AgentBusy",
    "AgentConfig",
    "AgentError",
    "AgentFailed",
    "AgentState",
    "AlreadyRunning",
    "BudgetRefused",
    "LeaseState",
    "MemoryStateManager",
    "NotFound",
    "NotReserved",
    "NotRunning",
    "RefreshRefused",
    "Runtime",
    "SqliteStateManager",
    "State",
    "StateManager",
    "StoreError",
    "StoreUnavailable",
    "TaskRefused",
    "UnreadableState",
    "Verdict",
    "VersionConflict",
]
