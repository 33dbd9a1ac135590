"""The fleet: a board that gives tasks out, and a worker for every agent; the system that lifefold ships."""

from lifefold.core.budget.amounts import Caps
from lifefold.core.fleet import (
    assignment,
    board,
    budgets,
    departure,
    doors,
    intent,
    job,
    mailbox,
    meter,
    orphans,
    permit,
    promises,
    proposal,
    pulse,
    purse,
    restarts,
    seat,
    status,
    supervision,
    trusting,
    work,
    worker,
)
from lifefold.core.fleet.plan import AgentPlan, Budget, GatePlan, Plan, TaskPlan, opening
from lifefold.core.kernel import System

system = System("fleet", board.aggregate, worker.aggregate, properties=promises.PROMISES)

__all__ = [
    "AgentPlan",
    "Budget",
    "Caps",
    "GatePlan",
    "Plan",
    "TaskPlan",
    "assignment",
    "board",
    "budgets",
    "departure",
    "doors",
    "intent",
    "job",
    "mailbox",
    "meter",
    "opening",
    "orphans",
    "permit",
    "promises",
    "proposal",
    "pulse",
    "purse",
    "restarts",
    "seat",
    "status",
    "supervision",
    "system",
    "trusting",
    "work",
    "worker",
]
