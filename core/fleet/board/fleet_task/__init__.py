"""A task as a fleet's board keeps it: the document's table, and what a fleet adds to it.

- *A rest before each retry* (E6): a FAILED task holds a timer, ``Rested``, with the delay of the retry policy. So no
  agent claims it early, and a crash of the runner changes nothing. The failure decides the number of retries: a
  permanent failure has none (E5). An operator can grant any failed task one more retry.
- *Approval before the merge* (E2): the owner verifies the work, *parks* it, and is free. The task then has no owner.
  After the approval, a free worker is *handed* the task to merge it, under a new epoch (E12). Silence is a refusal
  (E41), and such a refusal is not retried.
- *Parts* (E7 to E10): the owner may split its task. The task waits until all parts are closed. Then a worker is handed
  the task to verify it as a whole: in a fleet, the verification runs on the merged result.
- *Trust* (E34): an agent below the level of a task does not claim it. The work of an agent below the level for merges
  is parked for approval, as if the task needed that.
- *Aborts* (E36, E37), in a fleet that has them: the owner reports an aborted tool, or an operator aborts at the task.
  An abort at the task, a sibling or the parent cancels the task. Where a task cannot be cancelled (E16), it is
  cancelled as soon as it is opened again.
- *Conversations*: the task keeps the last conversation of an agent about it, with its charges. The same agent resumes
  it under its next claim, also after a failure or a refusal. With ``anew`` a failure ends the conversation.
- *Blockers* (E19): a task that waits for a dependency or for a part is blocked when that one will not be done. It is
  open again when that one may be done after all.

This module has the lifecycle of one task; the rules between tasks are in ``core.fleet.dispatch``.
"""

from lifefold.core.fleet.board.fleet_task.model import (
    BUDGET,
    LEVEL,
    MOST_SUBTASKS,
    NOT_IN_THE_PLAN,
    PLAN,
    ROLE,
    SUBTASKS_MS,
    Aborted,
    AbortWanted,
    ConversationKept,
    DependencyBack,
    DependencyLost,
    Entrusted,
    Fate,
    FleetTask,
    Handed,
    NothingDone,
    Parked,
    Rested,
    RetryGranted,
    Returned,
    Split,
    Subtask,
    ToolAborted,
)
from lifefold.core.fleet.board.fleet_task.properties import PROPERTIES
from lifefold.core.fleet.board.fleet_task.replanning import (
    KEYS,
    REMOVABLE,
    TERMS,
    UNDER_WAY,
    Removed,
    Replanned,
    comes_back,
    replanned,
)
from lifefold.core.fleet.board.fleet_task.rules import CANCELLABLE, is_over
from lifefold.core.fleet.board.fleet_task.table import machine

__all__ = [
    "BUDGET",
    "CANCELLABLE",
    "KEYS",
    "LEVEL",
    "MOST_SUBTASKS",
    "NOT_IN_THE_PLAN",
    "PLAN",
    "PROPERTIES",
    "REMOVABLE",
    "ROLE",
    "SUBTASKS_MS",
    "TERMS",
    "UNDER_WAY",
    "AbortWanted",
    "Aborted",
    "ConversationKept",
    "DependencyBack",
    "DependencyLost",
    "Entrusted",
    "Fate",
    "FleetTask",
    "Handed",
    "NothingDone",
    "Parked",
    "Removed",
    "Replanned",
    "Rested",
    "RetryGranted",
    "Returned",
    "Split",
    "Subtask",
    "ToolAborted",
    "comes_back",
    "is_over",
    "machine",
    "replanned",
]
