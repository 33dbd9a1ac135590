"""The interface of document 001: a ``Runtime`` that spawns and stops agents, over a store that loses no update."""

from lifefold.interpreters.handles.arguments import AgentConfig
from lifefold.interpreters.handles.status.errors import (
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
from lifefold.interpreters.handles.status.runtime import Runtime
from lifefold.interpreters.handles.status.store import (
    AgentState,
    MemoryStateManager,
    SqliteStateManager,
    StateManager,
)

__all__ = [
    "AgentBusy",
    "AgentConfig",
    "AgentError",
    "AgentFailed",
    "AgentState",
    "AlreadyRunning",
    "BudgetRefused",
    "MemoryStateManager",
    "NotFound",
    "NotReserved",
    "NotRunning",
    "RefreshRefused",
    "Runtime",
    "SqliteStateManager",
    "StateManager",
    "StoreError",
    "StoreUnavailable",
    "TaskRefused",
    "UnreadableState",
    "VersionConflict",
]
