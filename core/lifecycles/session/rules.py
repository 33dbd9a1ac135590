"""The guards, the actions and the activities of a session."""

from typing import Never

from lifefold.core.kernel import Event, Step, replace
from lifefold.core.lifecycles.session.model import (
    Error,
    FatalError,
    GraceExceeded,
    Outcome,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    Timeout,
    WorktreeReady,
)
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
    return s.patience_ms


def backoff(s: Session) -> int:
    """Return ``min(2000 * 2^(n-1), 60000)`` milliseconds for n consecutive errors, less the jitter, if there is any."""
    limits = s.limits
    delay_ms = exponential_ms(s.consecutive_errors, base_ms=limits.backoff_base_ms, cap_ms=limits.backoff_cap_ms)
    return spread_ms(delay_ms, limits.jitter, s.name, s.total_errors)
