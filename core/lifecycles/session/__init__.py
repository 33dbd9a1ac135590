"""One agent's loop of sessions: worktree, prompt, spawn, run, end, cool down or continue.

The table is the document's, line by line: thirteen lines from a state, two from any. ``CoolingDown or Stopped`` in the
document is two rows here, and the first has the threshold as its guard. The document's one line for OperatorStop is two
rows here, because its side effect depends on the state.

The theory, in three parts.

*A session is one process.* It lives in Spawning, Running and Interrupting (``SESSION_LIVES``); the activity
``RunSession`` is declared for those three together. So every row that leaves them ends the process, even a row without
a side effect of its own. A stop while Spawning leaves no process behind (D9), nor does a fatal error (D10). After
GraceExceeded the next session begins only when the old process is confirmed dead (D13), which the kernel enforces.

*Two counters decide between a pause and the end.* A session that ends in Error or Timeout, from Spawning or Running,
counts in both. Reaching a threshold (``>=`` after counting, D1) stops the agent. ``consecutive_errors`` starts again
with SessionStarted or Success, ``total_errors`` never does. Taken literally, an agent that starts and then crashes
never gets past the first backoff (D3). ``Limits.reset_errors_on = "success"`` is the other reading, and a profile
forgets old errors (D22). An interrupted session is no error.

*The work that the document leaves to a runner is declared here as activities*, each with the events it may yield. An
urgent message waits while the session is spawning and interrupts it right after it started (D14).
"""

from lifefold.core.lifecycles.session.model import (
    SESSION_LIVES,
    BackoffElapsed,
    Error,
    FatalError,
    GraceExceeded,
    Limits,
    OperatorStop,
    Outcome,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    State,
    Success,
    Suspended,
    Timeout,
    UrgentMessage,
    Usage,
    WorktreeReady,
)
from lifefold.core.lifecycles.session.rules import (
    backoff,
    build_prompt,
    count_error,
    describe,
    give_up,
    is_expected,
    threshold_reached,
)
from lifefold.core.lifecycles.session.table import ROWS, counts_within_thresholds, machine

__all__ = [
    "ROWS", "SESSION_LIVES", "BackoffElapsed", "Error", "FatalError", "GraceExceeded", "Limits", "OperatorStop",
    "Outcome", "PromptReady", "Session", "SessionExited", "SessionStarted", "State", "Success", "Suspended",
    "Timeout", "UrgentMessage", "Usage", "WorktreeReady", "backoff", "build_prompt", "count_error",
    "counts_within_thresholds", "describe", "give_up", "is_expected", "machine", "threshold_reached",
]  # fmt: skip
