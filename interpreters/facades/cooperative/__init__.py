"""The interface of document 000: an ``Agent`` to subclass, and the process that one lives in."""

from lifefold.core.kernel import LifecycleEvent
from lifefold.interpreters.facades.cooperative.agent import Agent
from lifefold.interpreters.facades.cooperative.states import (
    AgentError,
    AgentRetiredError,
    AgentState,
    HookError,
    StateTransitionError,
)

__all__ = [
    "Agent",
    "AgentError",
    "AgentRetiredError",
    "AgentState",
    "HookError",
    "LifecycleEvent",
    "StateTransitionError",
]
