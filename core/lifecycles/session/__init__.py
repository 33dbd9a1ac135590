"""One agent's loop of sessions: get a worktree, write a prompt, spawn the command, see it end, cool down or go on.

The table is the document's, line by line: thirteen lines from a state, two from any. Where the document writes
``CoolingDown or Stopped`` there are two rows, of which the first has the threshold as its guard; its one line for
OperatorStop is two rows here, for its side effect depends on the state.

The theory, in three parts.

*A session is one process.* It lives in Spawning, Running and Interrupting
(``SESSION_LIVES``); the activity ``RunSession`` is declared for those three together. So leaving them by whatever row
ends the process, although the row's own side effect may be None: a stop while Spawning leaves nothing behind (D9), and
so does a fatal error (D10). After GraceExceeded the next session begins only when the old process is confirmed dead
(D13); the kernel sees to it.

*Two counters decide between a pause and the end.* A session that ends in Error or Timeout, from Spawning or Running,
counts in both; reaching a threshold (``>=`` after counting, D1) stops the agent. ``consecutive_errors`` starts again
with SessionStarted or Success, ``total_errors`` never does. Taken literally, an agent that starts and then crashes
never gets past the first backoff (D3); ``Limits.reset_errors_on = "success"`` is the other reading, and a profile
forgets errors of long ago (D22). An interrupted session is no error.

*What the document leaves to a runner is declared here as activities*, each with the events it may yield. An urgent
message waits while the session is spawning and interrupts it right after it started (D14).
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
