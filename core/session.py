"""One agent's loop of sessions: get a worktree, write a prompt, spawn the command, see it end, cool down or go on.

The table below is the document's, line by line: thirteen lines from a state, two from any. Where the document writes
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

from typing import Literal, Never

import msgspec

from lifefold.core.kernel import ANY, Event, Machine, Pattern, Record, Row, Step, after, does, replace, row
from lifefold.core.kernel import State as AnyLifecycleState
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


class State(AnyLifecycleState):
    """The eight states of an agent."""

    INITIALIZING = "Initializing"
    BUILDING_PROMPT = "BuildingPrompt"
    SPAWNING = "Spawning"
    RUNNING = "Running"
    INTERRUPTING = "Interrupting"
    SESSION_COMPLETE = "SessionComplete"
    COOLING_DOWN = "CoolingDown"
    STOPPED = "Stopped"


SESSION_LIVES = (State.SPAWNING, State.RUNNING, State.INTERRUPTING)


class Outcome(msgspec.Struct, frozen=True, tag=True):
    """How a session ended."""


class Success(Outcome, frozen=True):
    """It completed normally."""


class Error(Outcome, frozen=True):
    """It failed, with a message."""

    message: str = ""


class Timeout(Outcome, frozen=True):
    """It took longer than it may."""


class WorktreeReady(Event, frozen=True):
    """The place to work is there; also after a completed session, where nothing is made anew (D19)."""


class PromptReady(Event, frozen=True):
    """The next session's prompt is written."""

    prompt: str

    @classmethod
    def examples(cls) -> tuple["PromptReady", ...]:
        """Return one prompt: its text decides nothing."""
        return (cls("do it"),)


class SessionStarted(Event, frozen=True):
    """The process runs. ``seq`` is the number of the session that it was begun for."""

    seq: int

    @classmethod
    def examples(cls) -> tuple["SessionStarted", ...]:
        """Return the first two numbers: the expected one and another."""
        return cls(0), cls(1)


class SessionExited(Event, frozen=True):
    """The process is gone, confirmed."""

    outcome: Success | Error | Timeout

    @classmethod
    def examples(cls) -> tuple["SessionExited", ...]:
        """Return one of each outcome."""
        return cls(Success()), cls(Error("exit status 1")), cls(Timeout())


class UrgentMessage(Event, frozen=True):
    """Somebody has something to say that cannot wait for the session to end."""


class GraceExceeded(Event, frozen=True):
    """The session was asked to end and has not."""


class BackoffElapsed(Event, frozen=True):
    """The pause after an error is over."""


class OperatorStop(Event, frozen=True):
    """An operator wants this agent to stop for good."""


class FatalError(Event, frozen=True):
    """Something no retry will mend."""

    msg: str

    @classmethod
    def examples(cls) -> tuple["FatalError", ...]:
        """Return one message: its text decides nothing."""
        return (cls("no space left"),)


class Limits(msgspec.Struct, frozen=True):
    """What a fleet may set. Times in milliseconds; the defaults are the document's where it has one."""

    max_consecutive_errors: int = 5
    max_total_errors: int = 20
    backoff_base_ms: int = 2_000
    backoff_cap_ms: int = 60_000
    jitter: float = 0.0
    grace_ms: int = 5_000
    session_timeout_ms: int | None = None
    reset_errors_on: Literal["start", "success"] = "start"
    total_errors_window_ms: int = 86_400_000

    def __post_init__(self) -> None:
        """Refuse what could never work (D26). Raises ``ValueError`` naming the field."""
        for field in (
            "max_consecutive_errors",
            "max_total_errors",
            "backoff_base_ms",
            "backoff_cap_ms",
            "total_errors_window_ms",
        ):
            if getattr(self, field) < 1:
                message = f"{field} must be at least 1, not {getattr(self, field)}"
                raise ValueError(message)
        if self.grace_ms < 0:
            message = f"grace_ms must not be negative, not {self.grace_ms}"
            raise ValueError(message)
        if self.session_timeout_ms is not None and self.session_timeout_ms < 1:
            message = f"session_timeout_ms must be at least 1, or None for no limit, not {self.session_timeout_ms}"
            raise ValueError(message)
        if not 0 <= self.jitter <= 1:
            message = f"jitter must be between 0 and 1, not {self.jitter}"
            raise ValueError(message)


class Session(Record, frozen=True):
    """An agent. ``session_seq`` counts completed sessions, ``attempt`` every spawn (D15); ``prompt`` is the last."""

    state: State = State.INITIALIZING
    name: str = ""
    session_seq: int = 0
    attempt: int = 0
    prompt: str = ""
    consecutive_errors: int = 0
    total_errors: int = 0
    limits: Limits = Limits()

    def counted(self) -> tuple[int, int]:
        """Return consecutive and total errors with one more."""
        return self.consecutive_errors + 1, self.total_errors + 1

    def after_error(self) -> "Session":
        """Return the record with one more error counted."""
        return replace(self, consecutive_errors=self.consecutive_errors + 1, total_errors=self.total_errors + 1)


# Guards


def is_expected(s: Session, e: SessionStarted) -> bool:
    """A start counts for the session that was spawned, and for no other (D17)."""
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
    """Forget the errors in a row."""
    return Step(replace(s, consecutive_errors=0))


def count_error(s: Session, _e: SessionExited) -> Step[Session, Never]:
    """Count the error; the cool-down that follows lasts accordingly."""
    return Step(s.after_error())


def give_up(s: Session, e: SessionExited) -> Step[Session, LogFatal]:
    """Count the error and say which threshold it reached; both if both (D4)."""
    counted = s.after_error()
    reached = [
        f"{name} {count} of {threshold}"
        for name, count, threshold in (
            ("consecutive_errors", counted.consecutive_errors, s.limits.max_consecutive_errors),
            ("total_errors", counted.total_errors, s.limits.max_total_errors),
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
    """Say in a few words how a session ended."""
    return f"Error({outcome.message})" if isinstance(outcome, Error) else type(outcome).__name__


# Activities


def prepare_worktree(_s: Session) -> PrepareWorktree:
    """Return what goes on in Initializing."""
    return PrepareWorktree()


def build_prompt(s: Session) -> BuildPrompt:
    """Return what goes on in BuildingPrompt."""
    return BuildPrompt(s.session_seq)


def run_session(s: Session) -> RunSession:
    """Return what goes on while a session lives."""
    return RunSession(s.prompt, s.session_seq, s.attempt, s.limits.grace_ms, s.limits.session_timeout_ms)


def refresh_worktree(s: Session) -> RefreshWorktree:
    """Return what goes on in SessionComplete."""
    return RefreshWorktree(s.session_seq)


def grace(s: Session) -> int:
    """Return how long, in milliseconds, an interrupted session may take to end."""
    return s.limits.grace_ms


def backoff(s: Session) -> int:
    """Return ``min(2000 * 2^(n-1), 60000)`` milliseconds for n consecutive errors, less the jitter, if there is any."""
    limits = s.limits
    delay_ms = exponential_ms(s.consecutive_errors, base_ms=limits.backoff_base_ms, cap_ms=limits.backoff_cap_ms)
    return spread_ms(delay_ms, limits.jitter, s.name, s.total_errors) if limits.jitter else delay_ms


# The table

SUCCESS = Pattern(SessionExited, "Success", lambda e: type(e.outcome) is Success)
ERROR = Pattern(SessionExited, "Error", lambda e: type(e.outcome) is Error)
TIMEOUT = Pattern(SessionExited, "Timeout", lambda e: type(e.outcome) is Timeout)
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
        SESSION_LIVES: does(run_session, yields=SessionStarted, last=SessionExited),
        State.INTERRUPTING: after(grace, GraceExceeded),
        State.SESSION_COMPLETE: does(refresh_worktree, yields=FatalError, last=WorktreeReady),
        State.COOLING_DOWN: after(backoff, BackoffElapsed),
    },
    postpone={State.SPAWNING: UrgentMessage},
    invariants=(counts_within_thresholds,),
)
