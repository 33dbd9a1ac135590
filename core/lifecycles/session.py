"""One agent's loop of sessions: worktree, prompt, spawn, run, end, cool down or continue.

The table is the document's, line by line: thirteen lines from a state, two from any. ``CoolingDown or Stopped`` in the
document is two rows here, and the first has the threshold as its guard. The document's one line for OperatorStop is two
rows here, because its side effect depends on the state. A worker of a fleet runs a profile of it with more rows:
``session_profiles.supervised``.

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

from typing import Never

from lifefold.core.kernel import ANY, Event, Machine, Pattern, Row, Step, after, does, replace, row
from lifefold.core.lifecycles.property_forms import follows_table
from lifefold.core.lifecycles.session_model import (
    ERROR,
    SESSION_LIVES,
    SUCCESS,
    TIMEOUT,
    BackoffElapsed,
    Error,
    FatalError,
    GraceExceeded,
    Limited,
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
from lifefold.core.lifecycles.session_properties import PROPERTIES, STEPS
from lifefold.core.policy.backoff import exponential_ms, spread_ms
from lifefold.effects import (
    BuildPrompt,
    CancelSession,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    PrepareWorktree,
    RefreshWorktree,
    RunSession,
    StorePrompt,
)

__all__ = [
    "ROWS", "SESSION_LIVES", "BackoffElapsed", "Error", "FatalError", "GraceExceeded", "Limited", "Limits",
    "OperatorStop", "Outcome", "PromptReady", "Session", "SessionExited", "SessionStarted", "State", "Success",
    "Suspended", "Timeout", "UrgentMessage", "Usage", "WorktreeReady", "backoff", "build_prompt", "count_error",
    "counts_within_thresholds", "describe", "give_up", "is_expected", "machine", "run_session", "threshold_reached",
]  # fmt: skip

# Guards


def is_expected(s: Session, e: SessionStarted) -> bool:
    """The start is the spawned session's, and no other's (D17)."""
    return e.seq == s.session_seq


def threshold_reached(s: Session, _e: SessionExited) -> bool:
    """One more error makes one of the counters reach its threshold (D1)."""
    consecutive, total = s.counted()
    limits = s.limits
    return consecutive >= limits.max_consecutive_errors or total >= limits.max_total_errors


# Actions


def store_prompt(s: Session, e: PromptReady) -> Step[Session, StorePrompt]:
    """Keep the prompt for the session that is about to be spawned."""
    return Step(replace(s, prompt=e.prompt, attempt=s.attempt + 1), (StorePrompt(e.prompt),))


def begin(s: Session, _e: SessionStarted) -> Step[Session, Never]:
    """Forget the errors in a row, if a start is what resets them."""
    return Step(replace(s, consecutive_errors=0) if s.limits.reset_errors_on == "start" else s)


def complete(s: Session, _e: SessionExited) -> Step[Session, Never]:
    """Forget the errors in a row, and the suspensions."""
    return Step(replace(s, consecutive_errors=0, suspensions=0))


def count_error(s: Session, _e: Event) -> Step[Session, Never]:
    """Count the error; the following pause depends on it."""
    return Step(s.after_error())


def give_up(s: Session, e: SessionExited) -> Step[Session, LogFatal]:
    """Count the error and report the threshold it reached, by its key in a fleet file; both if both (D4)."""
    counted = s.after_error()
    reached = [
        f"{count} {'error' if count == 1 else 'errors'} {how} ({name} = {threshold})"
        for count, how, name, threshold in (
            (counted.consecutive_errors, "in a row", "max_consecutive_errors", s.limits.max_consecutive_errors),
            (counted.total_errors, "in all", "max_total_errors", s.limits.max_total_errors),
        )
        if count >= threshold
    ]
    return Step(counted, (LogFatal(f"{', '.join(reached)}; the last was {describe(e.outcome)}"),))


def cancel(s: Session, _e: Event) -> Step[Session, CancelSession]:
    """Ask the session to end."""
    return Step(s, (CancelSession(),))


def force_stop(s: Session, _e: GraceExceeded) -> Step[Session, ForceStopSession]:
    """Kill the session that did not end when asked."""
    return Step(s, (ForceStopSession(),))


def increment(s: Session, _e: WorktreeReady) -> Step[Session, IncrementSession]:
    """Count the completed session, here and only here; the effect is a notification (D24)."""
    return Step(replace(s, session_seq=s.session_seq + 1), (IncrementSession(s.session_seq + 1),))


def log_fatal(s: Session, e: FatalError) -> Step[Session, LogFatal]:
    """Report the error."""
    return Step(s, (LogFatal(e.msg),))


def describe(outcome: Outcome) -> str:
    """Return a few words about the end of a session."""
    match outcome:
        case Error(message=message):
            return f"Error({message})"
        case Timeout(message=message) if message:
            return f"Timeout({message})"
        case _:
            return type(outcome).__name__


# Activities


def prepare_worktree(_s: Session) -> PrepareWorktree:
    """Return the activity of Initializing."""
    return PrepareWorktree()


def build_prompt(s: Session) -> BuildPrompt:
    """Return the activity of BuildingPrompt."""
    return BuildPrompt(s.session_seq)


def run_session(s: Session) -> RunSession:
    """Return the activity of a living session."""
    return RunSession(s.prompt, s.session_seq, s.attempt, s.limits.grace_ms, s.limits.session_timeout_ms)


def refresh_worktree(s: Session) -> RefreshWorktree:
    """Return the activity of SessionComplete."""
    return RefreshWorktree(s.session_seq)


def grace(s: Session) -> int:
    """Return the time in which an interrupted session must end, in milliseconds."""
    return s.present_grace_ms


def backoff(s: Session) -> int:
    """Return ``min(2000 * 2^(n-1), 60000)`` milliseconds for n consecutive errors, less the jitter, if there is any."""
    limits = s.limits
    delay_ms = exponential_ms(s.consecutive_errors, base_ms=limits.backoff_base_ms, cap_ms=limits.backoff_cap_ms)
    return spread_ms(delay_ms, limits.jitter, s.name, s.total_errors)


# The table

ANY_OUTCOME = Pattern(SessionExited, "*", lambda _e: True)

ROWS: tuple[Row[Session], ...] = (
    row(State.INITIALIZING, WorktreeReady, State.BUILDING_PROMPT),
    row(State.BUILDING_PROMPT, PromptReady, State.SPAWNING, store_prompt),
    row(State.SPAWNING, SessionStarted, State.RUNNING, begin, when=is_expected),
    row(State.SPAWNING, ERROR, State.STOPPED, give_up, when=threshold_reached),
    row(State.SPAWNING, ERROR, State.COOLING_DOWN, count_error),
    row(State.SPAWNING, TIMEOUT, State.STOPPED, give_up, when=threshold_reached),
    row(State.SPAWNING, TIMEOUT, State.COOLING_DOWN, count_error),
    row(State.RUNNING, SUCCESS, State.SESSION_COMPLETE, complete),
    row(State.RUNNING, ERROR, State.STOPPED, give_up, when=threshold_reached),
    row(State.RUNNING, ERROR, State.COOLING_DOWN, count_error),
    row(State.RUNNING, TIMEOUT, State.STOPPED, give_up, when=threshold_reached),
    row(State.RUNNING, TIMEOUT, State.COOLING_DOWN, count_error),
    row(State.RUNNING, UrgentMessage, State.INTERRUPTING, cancel),
    row(State.INTERRUPTING, ANY_OUTCOME, State.BUILDING_PROMPT),
    row(State.INTERRUPTING, GraceExceeded, State.BUILDING_PROMPT, force_stop),
    row(State.SESSION_COMPLETE, WorktreeReady, State.BUILDING_PROMPT, increment),
    row(State.COOLING_DOWN, BackoffElapsed, State.BUILDING_PROMPT),
    row((State.RUNNING, State.INTERRUPTING), OperatorStop, State.STOPPED, cancel),
    row(ANY, OperatorStop, State.STOPPED),
    row(ANY, FatalError, State.STOPPED, log_fatal),
)


def counts_within_thresholds(s: Session) -> bool:
    """An agent that is not stopped has all its counters below their thresholds."""
    below = s.consecutive_errors < s.limits.max_consecutive_errors and s.total_errors < s.limits.max_total_errors
    return below or s.state is State.STOPPED


machine = Machine(
    "session",
    Session(),
    about="one agent's loop of CLI sessions: worktree, prompt, spawn, run, interrupt, cool down",
    rows=ROWS,
    final={State.STOPPED},
    during={
        State.INITIALIZING: does(prepare_worktree, yields=FatalError, last=WorktreeReady),
        State.BUILDING_PROMPT: does(build_prompt, yields=FatalError, last=PromptReady),
        SESSION_LIVES: does(run_session, yields=SessionStarted, last=SessionExited, outlives=True),
        State.INTERRUPTING: after(grace, GraceExceeded),
        State.SESSION_COMPLETE: does(refresh_worktree, yields=FatalError, last=WorktreeReady),
        State.COOLING_DOWN: after(backoff, BackoffElapsed),
    },
    postpone={State.SPAWNING: UrgentMessage},
    invariants=(counts_within_thresholds,),
    properties=(*PROPERTIES, *STEPS, *follows_table(ROWS)),
)
