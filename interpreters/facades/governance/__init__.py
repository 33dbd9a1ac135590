"""The interface of document 004: transitions of tasks, agents and turns, abort chains, and assessments of agents."""

from lifefold.core.kernel import LifecycleEvent
from lifefold.core.lifecycles.claims import Claims
from lifefold.core.policy.abort import AbortPolicy, AbortScope
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.interpreters.facades.governance.aborts import AbortChain
from lifefold.interpreters.facades.governance.appraisal import (
    AgentState,
    AgentStateThresholds,
    GraduatedAccess,
    TimeoutEstimate,
    classify_agent_state,
    estimate_timeout,
)
from lifefold.interpreters.facades.governance.errors import (
    AccessDeniedError,
    DuplicateTransitionError,
    IllegalTransitionError,
    PlanConflictError,
)
from lifefold.interpreters.facades.governance.kernel import (
    Governance,
    add_listener,
    remove_listener,
    transition_agent,
    transition_task,
)
from lifefold.interpreters.facades.governance.tasks import AgentSession, AgentStatus, Task, TaskStatus
from lifefold.interpreters.facades.governance.turns import (
    AgentTurnEvent,
    AgentTurnState,
    AgentTurnStateMachine,
    TurnChange,
)

__all__ = [
    "AbortChain",
    "AbortPolicy",
    "AbortReason",
    "AbortScope",
    "AccessDeniedError",
    "AccessLevel",
    "AgentSession",
    "AgentState",
    "AgentStateThresholds",
    "AgentStatus",
    "AgentTurnEvent",
    "AgentTurnState",
    "AgentTurnStateMachine",
    "Claims",
    "DuplicateTransitionError",
    "Governance",
    "GraduatedAccess",
    "IllegalTransitionError",
    "LifecycleEvent",
    "PlanConflictError",
    "Task",
    "TaskStatus",
    "TimeoutEstimate",
    "TransitionReason",
    "TurnChange",
    "add_listener",
    "classify_agent_state",
    "estimate_timeout",
    "remove_listener",
    "transition_agent",
    "transition_task",
]
