"""The fleet: a board that gives tasks out, a worker for every agent, and services; the system that lifefold ships."""

from lifefold.core.fleet import service
from lifefold.core.fleet.system import board, fleet_properties, worker
from lifefold.core.fleet.system.plan import (
    AgentPlan,
    Budget,
    GatePlan,
    NotifierPlan,
    Plan,
    Preemption,
    ServicePlan,
    Talks,
    TaskPlan,
    opening,
)
from lifefold.core.kernel import System
from lifefold.core.lifecycles.budget.amounts import Caps

system = System("fleet", board.aggregate, worker.aggregate, service.aggregate, properties=fleet_properties.PROPERTIES)

__all__ = [
    "AgentPlan", "Budget", "Caps", "GatePlan", "NotifierPlan", "Plan", "Preemption", "ServicePlan", "Talks", "TaskPlan",
    "opening", "system",
]  # fmt: skip
