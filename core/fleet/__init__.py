"""The fleet: a board that gives tasks out, and a worker for every agent; the system that lifefold ships."""

from lifefold.core.fleet import assignment, board, intent, mailbox, promises, seat, status, work, worker
from lifefold.core.fleet.plan import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.kernel import System

system = System("fleet", board.aggregate, worker.aggregate, properties=promises.PROMISES)

__all__ = [
    "AgentPlan",
    "Plan",
    "TaskPlan",
    "assignment",
    "board",
    "intent",
    "mailbox",
    "opening",
    "promises",
    "seat",
    "status",
    "system",
    "work",
    "worker",
]
