"""The interface of document 000: an ``Agent`` to subclass, and the process that one lives in."""

from lifefold.interpreters.handles.cooperative.agent import Agent, AgentRetiredError, AgentState, HookError
from lifefold.interpreters.handles.cooperative.states import StateTransitionError

__all__ = ["Agent", "AgentRetiredError", "AgentState", "HookError", "StateTransitionError"]
