"""The coarse status for operators and budgets: RUNNING, STOPPED, FAILED. The table is document 001's.

Its first line, Spawn Agent, creates the record: ``spawned`` makes it, with the effects of that line. The other four are
rows of ``table``; the FAILED line stands for every event there is. A row without a State as target (``STAY``) is no
line of the document. Such rows are for tasks, and for reports that come too late. There is no IDLE, though the
document's purpose mentions it (B18).

*Stop has a guard*, "no active tasks", and the document leaves the other case open. It is refused (B2), unless the stop
is forced. In the profile ``draining`` the stop may wait, too. Then no new task is accepted, and the agent stops with
its last task, which is the document's line for Stop Agent, taken late. Stopping a stopped agent changes nothing and is
not reported (B3).

*FAILED has a producer*, ``FatalError`` (B20), and is immutable: it accepts every event and ignores it, be it a stop
(B4) or a restart. A request for a restart is answered with the advice to replace the agent (B8). The reason of the
failure and its exit code are in the record and in ``agent_failed`` (B13, B14). A fatal error that is reported of a
stopped agent is counted, and changes nothing else (B15). So is personal data that was found before it stopped. The end
of a task that a forced stop has cut off changes nothing at all.

*A restart keeps the id*, counts the incarnation, and keeps the counters (B6, B7). ``successor`` is the other way: a new
id, new counters, and the name of its predecessor (B8).

*Saved, then reported.* ``SaveState`` comes before ``EmitTelemetry`` in every step (B10). Its interpreter commits the
transition by saving it, so a transition that cannot be saved has not happened (B11). The hook ``launch`` comes before
both.

Money is not in this record: an agent's incarnation has a ``lease``; see ``budget.agent`` for the two together.
"""

from lifefold.core.lifecycles.status.model import (
    LAUNCH,
    ORPHANED,
    RELEASE,
    UNKNOWN,
    FatalError,
    PiiDetected,
    Spawn,
    State,
    Status,
    Stop,
    TaskBegan,
    TaskEnded,
)
from lifefold.core.lifecycles.status.properties import (
    DRAINING_PROPERTIES,
    PROPERTIES,
    drains_for_something,
    failure_is_explained,
    works_only_while_running,
)
from lifefold.core.lifecycles.status.rules import (
    Told,
    begin_draining,
    begin_task,
    count_pii,
    drains,
    end_task,
    fail,
    finish_draining,
    has_task,
    ignore,
    is_replaceable,
    may_stop,
    record_late,
    restart,
    spawned,
    stop,
    successor,
    takes_tasks,
    was_last_of_draining,
)
from lifefold.core.lifecycles.status.table import EVENTS, ROWS, draining, machine

__all__ = [
    "DRAINING_PROPERTIES", "EVENTS", "LAUNCH", "ORPHANED", "PROPERTIES", "RELEASE", "ROWS", "UNKNOWN", "FatalError",
    "PiiDetected", "Spawn", "State", "Status", "Stop", "TaskBegan", "TaskEnded", "Told", "begin_draining", "begin_task",
    "count_pii", "draining", "drains", "drains_for_something", "end_task", "fail", "failure_is_explained",
    "finish_draining", "has_task", "ignore", "is_replaceable", "machine", "may_stop", "record_late", "restart",
    "spawned", "stop", "successor", "takes_tasks", "was_last_of_draining", "works_only_while_running",
]  # fmt: skip
