"""The interface of document 004: transitions of tasks, agents and turns, abort chains, and judgements about agents."""

from lifefold.interpreters.handles.governance.aborts import AbortChain
from lifefold.interpreters.handles.governance.appraisal import (
    AgentStateThresholds,
    GraduatedAccess,
    TimeoutEstimate,
    classify_agent_state,
    estimate_timeout,
)
from lifefold.interpreters.handles.governance.kernel import (
    AccessDeniedError,
    DuplicateTransitionError,
    Governance,
    IllegalTransitionError,
    PlanConflictError,
    add_listener,
    remove_listener,
    transition_agent,
    transition_task,
)
from lifefold.interpreters.handles.governance.tasks import AgentSession, Task, TaskStatus
from lifefold.interpreters.handles.governance.turns import AgentTurnEvent, AgentTurnStateMachine, TurnChange

__all__ = [
    "AbortChain",
    "AccessDeniedError",
    "AgentSession",
    "AgentStateThresholds",
    "AgentTurnEvent",
    "AgentTurnStateMachine",
    "DuplicateTransitionError",
    "Governance",
    "GraduatedAccess",
    "IllegalTransitionError",
    "PlanConflictError",
    "Task",
    "TaskStatus",
    "TimeoutEstimate",
    "TurnChange",
    "add_listener",
    "classify_agent_state",
    "estimate_timeout",
    "remove_listener",
    "transition_agent",
    "transition_task",
]
