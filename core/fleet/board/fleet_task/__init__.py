"""A task as a fleet's board keeps it: the document's table, and what a fleet adds to it.

- *A failure rests before it is tried again* (E6): FAILED holds a timer, ``Rested``, for as long as the policy says.
  So nothing can be claimed before its time, and a crash of the runner changes nothing. How often is decided at the
  failure: one that cannot pass is not retried (E5). A person may grant one more retry, to any task that has failed.
- *A person's word before the merge* (E2): whoever has verified the work *parks* it, and is free. It then belongs to
  nobody; when it is agreed to, whoever has time is *handed* it to merge it, under a number of its own (E12). Silence is
  a refusal (E41), and one that is not answered by doing the same again.
- *Parts* (E7 to E10): its owner may split a task. It waits until all parts are closed, and then is handed to somebody
  to be verified as a whole. In a fleet done is not enough: the proof runs on what is merged.
- *Trust* (E34): a task that takes a level is claimed by nobody below it; the work of one who is trusted less than a
  merge takes is parked for a person, as if the task asked for that.
- *Aborts* (E36, E37), in a fleet that has them: its owner says that a tool was aborted, or a person aborts here; and
  the task itself is aborted, because somebody has aborted it, its siblings or its parent. That is as if it was
  cancelled; where it cannot be (E16), it is when it is opened again.
- *What it lacks* (E19): a task that waits for another one, as a dependency or as a part, is blocked when that one will
  not be done, and open again when that one may be done after all.

What one task has to do with another is the board's business; here is what becomes of one.
"""

from lifefold.core.fleet.board.fleet_task.model import (
    LEVEL,
    MOST_SUBTASKS,
    NOT_IN_THE_PLAN,
    PLAN,
    PURSE,
    ROLE,
    SUBTASKS_MS,
    Aborted,
    AbortWanted,
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
    IN_HAND,
    KEYS,
    REMOVABLE,
    TERMS,
    Removed,
    Replanned,
    comes_back,
)
from lifefold.core.fleet.board.fleet_task.rules import CANCELLABLE, is_over
from lifefold.core.fleet.board.fleet_task.table import machine

__all__ = [
    "CANCELLABLE",
    "IN_HAND",
    "KEYS",
    "LEVEL",
    "MOST_SUBTASKS",
    "NOT_IN_THE_PLAN",
    "PLAN",
    "PROPERTIES",
    "PURSE",
    "REMOVABLE",
    "ROLE",
    "SUBTASKS_MS",
    "TERMS",
    "AbortWanted",
    "Aborted",
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
]
