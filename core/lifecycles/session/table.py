"""The table of an agent as the document writes it, line by line, and the activities of its states."""

from lifefold.core.kernel import ANY, Machine, Pattern, Row, after, does, row
from lifefold.core.lifecycles.session.model import (
    ERROR,
    SESSION_LIVES,
    SUCCESS,
    TIMEOUT,
    BackoffElapsed,
    FatalError,
    GraceExceeded,
    OperatorStop,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    State,
    UrgentMessage,
    WorktreeReady,
)
from lifefold.core.lifecycles.session.properties import PROPERTIES, STEPS
from lifefold.core.lifecycles.session.rules import (
    backoff,
    begin,
    build_prompt,
    cancel,
    complete,
    count_error,
    force_stop,
    give_up,
    grace,
    increment,
    is_expected,
    log_fatal,
    prepare_worktree,
    refresh_worktree,
    run_session,
    store_prompt,
    threshold_reached,
)

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
        SESSION_LIVES: does(run_session, yields=SessionStarted, last=SessionExited),
        State.INTERRUPTING: after(grace, GraceExceeded),
        State.SESSION_COMPLETE: does(refresh_worktree, yields=FatalError, last=WorktreeReady),
        State.COOLING_DOWN: after(backoff, BackoffElapsed),
    },
    postpone={State.SPAWNING: UrgentMessage},
    invariants=(counts_within_thresholds,),
    properties=(*PROPERTIES, *STEPS),
)
