"""Profiles of the session: writing a prompt may fail; a session may suspend itself; a stopped agent is restarted.

*A stalled session is an error* (``in_fleet``). Its watcher reports it. It is ended like a stopped one, by TERM, grace
and KILL, and the next one begins only when that is confirmed.

*A suspended session is no error* (``in_fleet``, D28). The next one continues the same work in the same place, after a
pause that grows as it does after errors. An agent cannot continue like that for ever. Its
``max_total_errors``-th suspension in a row without a request is an error like any other.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Pattern,
    Property,
    PropertyKind,
    Step,
    Transition,
    accepts,
    after,
    always_step,
    does,
    replace,
    row,
)
from lifefold.core.lifecycles.property_forms import LEADS, exits_on, lasts_only
from lifefold.core.lifecycles.session import (
    SESSION_LIVES,
    BackoffElapsed,
    Error,
    FatalError,
    Limits,
    Outcome,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    State,
    Suspended,
    UrgentMessage,
    backoff,
    build_prompt,
    count_error,
    describe,
    give_up,
    machine,
    run_session,
    threshold_reached,
)
from lifefold.core.lifecycles.session_limits import PROPERTIES as OF_LIMITS
from lifefold.core.lifecycles.session_limits import ROWS as LIMITS
from lifefold.core.lifecycles.session_limits import LimitableSession, LimitReached, limit_of
from lifefold.core.lifecycles.session_yielding import INSTEAD, PROPERTIES, ROWS, YieldWanted
from lifefold.core.policy.ends import TIMED_OUT, Diagnosis
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.effects import End, LogFatal, RunSession


class PromptFailed(Event, frozen=True):
    """The prompt could not be written this time (profile ``prompt-failures``, D6)."""

    msg: str = ""


def give_up_prompting(s: Session, e: PromptFailed) -> Step[Session, LogFatal]:
    """Give up as after a session that failed while Spawning."""
    return give_up(s, SessionExited(Error(e.msg)))


def prompt_threshold_reached(s: Session, e: PromptFailed) -> bool:
    """One more failure makes one of the counters reach its threshold."""
    return threshold_reached(s, SessionExited(Error(e.msg)))


def counts_prompt_failures(t: Transition) -> bool:
    """A prompt that cannot be written counts as an error, once, and is followed by a pause or the end."""
    added: int = t.after.record.consecutive_errors - t.was.consecutive_errors
    return added == 1 and t.after.state in {State.COOLING_DOWN, State.STOPPED}


prompt_failures = machine.with_rows(
    row(State.BUILDING_PROMPT, PromptFailed, State.STOPPED, give_up_prompting, when=prompt_threshold_reached),
    row(State.BUILDING_PROMPT, PromptFailed, State.COOLING_DOWN, count_error),
    during={State.BUILDING_PROMPT: does(build_prompt, yields=FatalError, last=(PromptReady, PromptFailed))},
    name="session-prompt-failures",
).with_properties(
    always_step("a prompt that fails counts as an error", counts_prompt_failures, on=PromptFailed),
    *exits_on(State.BUILDING_PROMPT, PromptFailed),
)
"""The profile in which writing a prompt can fail and be tried again (D6)."""


SUSPENDED: Final = Pattern(SessionExited, "Suspended", lambda e: type(e.outcome) is Suspended)
UNASKED: Final = Pattern(SessionExited, "Suspended unasked", lambda e: e.outcome == Suspended())


def may_go_on(s: Session, e: SessionExited) -> bool:
    """The agent was asked to suspend, or has not done it too often by itself."""
    return isinstance(e.outcome, Suspended) and (e.outcome.asked or s.suspensions + 1 < s.limits.max_total_errors)


def failure(outcome: Outcome) -> str:
    """Return the reason of a session's failure."""
    ended = describe(outcome)
    return f"{ended}, too often in a row" if isinstance(outcome, Suspended) else ended


def count_suspension(s: Session, e: SessionExited) -> Step[Session, Never]:
    """Count the suspension, unless it was requested."""
    unasked = isinstance(e.outcome, Suspended) and not e.outcome.asked
    return Step(replace(s, suspensions=s.suspensions + unasked))


def pause(s: Session) -> int:
    """Return the delay after so many errors, or so many suspensions, in a row, in milliseconds."""
    return backoff(replace(s, consecutive_errors=max(s.suspensions, s.consecutive_errors)))


def counts_suspensions(t: Transition) -> bool:
    """A session that suspends itself counts and is followed by a pause; one too many is an error.

    A requested suspension does not count, and an error or a success forgets the earlier ones (D28).
    """
    was: Session = t.was
    now: Session = t.after.record
    if not isinstance(t.event, SessionExited) or not isinstance(t.event.outcome, Suspended):
        forgotten = now.total_errors != was.total_errors or t.entered is State.SESSION_COMPLETE
        return now.suspensions == (0 if forgotten else was.suspensions)
    unasked = t.was.state is State.RUNNING and not t.event.outcome.asked
    if unasked and was.suspensions + 1 >= was.limits.max_total_errors:
        return (now.suspensions, now.total_errors) == (0, was.total_errors + 1)
    pauses = t.was.state is not State.RUNNING or t.entered is State.COOLING_DOWN
    return pauses and (now.suspensions, now.total_errors) == (was.suspensions + unasked, was.total_errors)


class Stalled(Event, frozen=True):
    """The session has shown no sign of progress for ``silent_ms``, and is given up."""

    transition_reason: ClassVar = TransitionReason.RETRY
    abort_reason: ClassVar = AbortReason.TIMEOUT

    silent_ms: int = 0

    @property
    def reason(self) -> str:
        """The problem of the session."""
        return f"silent for {self.silent_ms // 1_000} s"


def stall_threshold_reached(s: Session, e: Stalled) -> bool:
    """One more stalled session makes one of the counters reach its threshold."""
    return threshold_reached(s, SessionExited(Error(e.reason)))


def give_up_stalled(s: Session, e: Stalled) -> Step[Session, LogFatal]:
    """Give up as after a session that failed while Running."""
    return give_up(s, SessionExited(Error(e.reason)))


def counts_stalls(t: Transition) -> bool:
    """A stalled session counts as an error, once, is ended, and is followed by a pause or the end."""
    added: int = t.after.record.consecutive_errors - t.was.consecutive_errors
    ended = any(isinstance(each, End) and each.slot == RunSession.__name__ for each in t.effects)
    return added == 1 and ended and t.after.state in {State.COOLING_DOWN, State.STOPPED}


def failure_reason(event: Event) -> str:
    """Return the reason of a session's failure by this event; empty for an event without a failure."""
    match event:
        case SessionExited(outcome=outcome):
            return failure(outcome)
        case Stalled() as stalled:
            return stalled.reason
        case _:
            return ""


def diagnosed(event: Event) -> Diagnosis:
    """Return the meaning of a session's failure by this event."""
    match event:
        case SessionExited(diagnosis=Diagnosis() as known):
            return known
        case Stalled():
            return TIMED_OUT
        case _:
            return Diagnosis()


class TimeLimited(Event, frozen=True):
    """The time limit of a session from now on, from the durations of others (E33)."""

    timeout_ms: int = 1

    @classmethod
    def examples(cls) -> tuple["TimeLimited", ...]:
        """Return one: its duration decides nothing here."""
        return (cls(7),)


def limit_time(s: Session, e: TimeLimited) -> Step[Session, Never]:
    """Keep the time limit of the next session."""
    return Step(replace(s, limits=replace(s.limits, session_timeout_ms=e.timeout_ms)))


class LimitsChanged(Event, frozen=True):
    """The fleet's plan has other limits for the sessions of this agent: they hold from the next session on."""

    limits: Limits = Limits()

    @classmethod
    def examples_for(cls, record: Any) -> tuple["LimitsChanged", ...]:
        """Return the present limits, and some that differ in every field: a rule that forgets a field is detected."""
        return cls(record.limits), cls(_OTHER_LIMITS)


_OTHER_LIMITS: Final = Limits(
    max_consecutive_errors=1,
    max_total_errors=2,
    backoff_base_ms=3,
    backoff_cap_ms=4,
    jitter=0.5,
    grace_ms=5,
    session_timeout_ms=7,
    reset_errors_on="success",
    total_errors_window_ms=8,
)
"""Limits that no other example has, and that few errors reach."""


def change_limits(s: Session, e: LimitsChanged) -> Step[Session, Never]:
    """Keep the limits. An agent that has reached their number of errors already may fail once more."""
    limits = replace(
        e.limits,
        max_consecutive_errors=max(e.limits.max_consecutive_errors, s.consecutive_errors + 1),
        max_total_errors=max(e.limits.max_total_errors, s.total_errors + 1),
    )
    return Step(replace(s, limits=limits))


def has_the_last_time_limit(t: Transition) -> bool:
    """The time limit of a session is the last one set; other limits change with the plan only."""
    was: Session = t.was
    now: Session = t.after.record
    if isinstance(t.event, TimeLimited):
        return now == replace(was, limits=replace(was.limits, session_timeout_ms=t.event.timeout_ms))
    if isinstance(t.event, LimitsChanged):
        return now == replace(was, limits=_least(t.event.limits, was)) and t.entered is None
    return now.limits == was.limits


def _least(limits: Limits, was: Session) -> Limits:
    """Return new limits as they hold for a session with errors: it may fail once more at least."""
    again = max(limits.max_consecutive_errors, was.consecutive_errors + 1)
    return replace(
        limits, max_consecutive_errors=again, max_total_errors=max(limits.max_total_errors, was.total_errors + 1)
    )


_NOT_STOPPED: Final = tuple(each for each in State if each is not State.STOPPED)

in_fleet = prompt_failures.with_rows(
    row(State.BUILDING_PROMPT, TimeLimited, STAY, limit_time),
    row(_NOT_STOPPED, LimitsChanged, STAY, change_limits),
    row(State.RUNNING, Stalled, State.STOPPED, give_up_stalled, when=stall_threshold_reached),
    row(State.RUNNING, Stalled, State.COOLING_DOWN, count_error),
    row(State.RUNNING, SUSPENDED, State.COOLING_DOWN, count_suspension, when=may_go_on),
    row(State.RUNNING, SUSPENDED, State.STOPPED, give_up, when=threshold_reached),
    row(State.RUNNING, SUSPENDED, State.COOLING_DOWN, count_error),
    during={State.COOLING_DOWN: after(pause, BackoffElapsed)},
    name="session-in-fleet",
).with_properties(
    always_step("suspensions count until they are too many, and are then an error", counts_suspensions, on=Event),
    accepts("a suspension is accepted also if it is one too many", {State.RUNNING: (UNASKED,)}),
    *exits_on(State.RUNNING, SUSPENDED),
    always_step("the time limit of a session is the last one set", has_the_last_time_limit, on=Event),
    accepts("the time limit of a session can be set before it begins", {State.BUILDING_PROMPT: (TimeLimited,)}),
    accepts("other limits are accepted unless the agent has stopped", {_NOT_STOPPED: (LimitsChanged,)}),
    always_step("a stalled session counts as an error, and is ended", counts_stalls, on=Stalled),
    *exits_on(State.RUNNING, Stalled),
)
"""The profile for a fleet: a prompt may fail, and a session may suspend itself (D28), or stall.

The time limit of the next session can be set before it begins (E33).
"""


class Restarted(Event, frozen=True):
    """The supervisor restarts the stopped agent (profile ``session-supervised``)."""


class SupervisedSession(LimitableSession, frozen=True):
    """A session that is restarted after it has stopped, if it is ``supervised``, and that can be told to yield.

    ``talks``: its agent program keeps conversations. ``steers``: it takes messages while its session runs.
    """

    supervised: bool = False
    talks: bool = False
    steers: bool = False

    def normal_form(self) -> "SupervisedSession":
        """Return it without its numbers where no session follows, and without the time of an old request to yield."""
        unhurried = self if self.state is State.INTERRUPTING else replace(self, within_ms=0)
        if self.supervised or self.state is not State.STOPPED:
            return unhurried
        return replace(unhurried, session_seq=0, attempt=0, suspensions=0)


def is_supervised(s: SupervisedSession, _e: Restarted) -> bool:
    """A supervisor limits the number of restarts."""
    return s.supervised


def restart(s: Session, _e: Restarted) -> Step[Session, Never]:
    """Forget all errors; the numbers of sessions continue."""
    return Step(replace(s, consecutive_errors=0, total_errors=0, suspensions=0))


def restarts_without_errors(t: Transition) -> bool:
    """A restarted agent had stopped, begins with its worktree, and has no errors; everything else is unchanged."""
    if t.before is None or not isinstance(t.event, Restarted):
        return t.before is None or t.before.state is not State.STOPPED or t.entered is None
    fresh = replace(t.before.record, state=State.INITIALIZING, consecutive_errors=0, total_errors=0, suspensions=0)
    return t.before.state is State.STOPPED and t.before.record.supervised and t.after.record == fresh


def _but_for_restarts(properties: Iterable[Property[Any]]) -> Iterator[Property[Any]]:
    """Yield the properties that remain: those of steps for all but restarts, and none of a final end.

    The document's table has no limits of accounts.
    """
    for each in properties:
        if each.name == LEADS:
            yield replace(each, holds=partial(_holds_but_for_limits, each.holds))
        elif each.property_kind is PropertyKind.ALWAYS_STEP:
            yield replace(each, holds=partial(_holds_but_for_restarts, each.holds))
        elif each.property_kind is not PropertyKind.LEADS_TO or each.when is not None:
            yield each


def _holds_but_for_restarts(holds: Callable[[Transition], bool], t: Transition) -> bool:
    return isinstance(t.event, Restarted) or holds(t)


def _holds_but_for_limits(holds: Callable[[Transition], bool], t: Transition) -> bool:
    return limit_of(t.event) is not None or _holds_but_for_restarts(holds, t)


_UNTIL_LIMITED: Final = does(run_session, yields=(SessionStarted, LimitReached), last=SessionExited, outlives=True)

supervised: Machine[Any] = Machine(
    "session-supervised",
    SupervisedSession(supervised=True),
    about="session-in-fleet, but an agent may be restarted, a session has its time to yield, and its account may rest",
    rows=(
        *(INSTEAD.get((r.sources, r.event), r) for r in in_fleet.rows),
        *ROWS,
        *LIMITS,
        row(State.STOPPED, Restarted, State.INITIALIZING, restart, when=is_supervised),
    ),
    during={
        source: _UNTIL_LIMITED if source == frozenset(SESSION_LIVES) else parts
        for source, parts in in_fleet.during.items()
    },
    postpone={State.SPAWNING: (UrgentMessage, YieldWanted, LimitReached)},
    invariants=in_fleet.invariants,
    properties=(
        *_but_for_restarts(in_fleet.properties),
        *PROPERTIES,
        *OF_LIMITS,
        lasts_only("PrepareWorktree", State.INITIALIZING),
        lasts_only("BuildPrompt", State.BUILDING_PROMPT),
        lasts_only("RefreshWorktree", State.SESSION_COMPLETE),
        always_step("only a stopped agent is restarted, and has no errors then", restarts_without_errors),
        accepts("a stopped agent can be restarted", {State.STOPPED: (Restarted,)}, when=lambda e: e.record.supervised),
    ),
    rests=lambda s: s.state is State.STOPPED,
)
"""The profile of a worker's session: a stopped session stays stopped unless its supervisor restarts it."""
