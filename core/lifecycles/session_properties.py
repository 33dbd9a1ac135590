"""The properties of an agent's sessions, for its operator: at all times, and of every transition.

They are written without the guards and actions that they check. Where a state lasts as long as its work, the end of the
work is assumed; a state with a timer needs no assumption.
"""

from typing import Final

from lifefold.core.kernel import (
    Entity,
    Event,
    Phase,
    Property,
    Transition,
    always,
    always_step,
    eventually,
    leads_to,
    sometimes,
    weakly,
)
from lifefold.core.lifecycles.property_forms import (
    asks_once,
    ends_confirmed,
    enters,
    exits_on,
    is_transient,
    lasts_only,
    rests_in,
)
from lifefold.core.lifecycles.session_model import (
    ERROR,
    SESSION_LIVES,
    SUCCESS,
    TIMEOUT,
    BackoffElapsed,
    Error,
    FatalError,
    GraceExceeded,
    OperatorStop,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    State,
    Success,
    Suspended,
    Timeout,
    UrgentMessage,
)
from lifefold.effects import (
    BuildPrompt,
    CancelSession,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    PrepareWorktree,
    RefreshWorktree,
    RunSession,
    StartTimer,
    StorePrompt,
)


def errors_added(t: Transition) -> int:
    """Return the change of the consecutive errors in a step."""
    before: int = t.before.record.consecutive_errors if t.before else 0
    after: int = t.after.record.consecutive_errors
    return after - before


def counts_errors_once(t: Transition) -> bool:
    """An error or a time-out of a session that was not interrupted counts, once, and no other end counts."""
    if not isinstance(t.event, SessionExited):
        return True
    at_work = t.was.state in {State.SPAWNING, State.RUNNING}
    if at_work and isinstance(t.event.outcome, Error | Timeout):
        return errors_added(t) == 1
    spared = isinstance(t.event.outcome, Success) or t.event.outcome == Suspended(asked=True)
    return not spared or errors_added(t) <= 0


def forgets_with_a_reason(t: Transition) -> bool:
    """Consecutive errors are forgotten by the events that reset them, and by nothing else."""
    started = isinstance(t.event, SessionStarted) and t.after.record.limits.reset_errors_on == "start"
    succeeded = enters(t, State.SESSION_COMPLETE)
    return bool(t.after.record.consecutive_errors == 0) if started or succeeded else errors_added(t) >= 0


def counts_among_all(t: Transition) -> bool:
    """An error counts in the total, too, and nothing else does; old errors may be forgotten (D22)."""
    now: int = t.after.record.total_errors
    before: int = t.before.record.total_errors if t.before else 0
    added = max(errors_added(t), 0)
    return now == before + added or (bool(t.after.record.timestamps) and added <= now <= before + added)


def gives_up_at_a_threshold(t: Transition) -> bool:
    """The error that reaches a threshold ends the agent, and no other one does (D1); the report names it (D4)."""
    if errors_added(t) <= 0:
        return True
    s: Session = t.after.record
    reached = [
        f"{count} error{'s' * (count != 1)} in {of} ({name} = {most})"
        for count, of, name, most in (
            (s.consecutive_errors, "a row", "max_consecutive_errors", s.limits.max_consecutive_errors),
            (s.total_errors, "all", "max_total_errors", s.limits.max_total_errors),
        )
        if count >= most
    ]
    reported = [each.message.partition(";")[0] for each in t.effects if isinstance(each, LogFatal)]
    return enters(t, State.STOPPED) == bool(reached) and reported == [", ".join(reached)] * bool(reached)


def keeps_the_prompt(t: Transition) -> bool:
    """The written prompt is the one that is kept, and the one of the session."""
    if not isinstance(t.event, PromptReady):
        return True
    stored = [each.prompt for each in t.effects if isinstance(each, StorePrompt)]
    return t.after.record.prompt == t.event.prompt and stored == [t.event.prompt]


def goes_on_after_an_interruption(t: Transition) -> bool:
    """After an interrupted session the next prompt is written, with the interrupting message."""
    interrupted = t.before is not None and t.before.state is State.INTERRUPTING
    return not (interrupted and isinstance(t.event, SessionExited)) or t.entered is State.BUILDING_PROMPT


def gives_it_time(t: Transition) -> bool:
    """An interrupted session has the grace of its limits; after it, the session is killed, and told so."""
    graces = [each.delay_ms for each in t.effects if isinstance(each, StartTimer) and each.slot == "GraceExceeded"]
    killed = sum(isinstance(each, ForceStopSession) for each in t.effects)
    began = enters(t, State.INTERRUPTING)
    return graces == [t.after.record.present_grace_ms] * began and killed == isinstance(t.event, GraceExceeded)


def pauses_long_enough(t: Transition) -> bool:
    """The pause doubles with every consecutive error, or suspension, up to its cap."""
    s: Session = t.after.record
    if not enters(t, State.COOLING_DOWN):
        return True
    in_a_row = max(s.suspensions, s.consecutive_errors, 1)
    longest_ms = min(s.limits.backoff_base_ms * 2 ** (in_a_row - 1), s.limits.backoff_cap_ms)
    pauses = [each.delay_ms for each in t.effects if isinstance(each, StartTimer)]
    return len(pauses) == 1 and longest_ms * (1 - s.limits.jitter) <= pauses[0] <= longest_ms


def leaves_the_pause_when_it_is_over(t: Transition) -> bool:
    """Only the end of the pause, or of the agent, ends the pause."""
    paused = t.before is not None and t.before.state is State.COOLING_DOWN and t.entered is not None
    return not paused or t.after.state is State.STOPPED or isinstance(t.event, BackoffElapsed)


def reports_the_reason_of_its_stop(t: Transition) -> bool:
    """An agent that stops without an operator's stop reports the reason."""
    requested = isinstance(t.event, OperatorStop)
    return not enters(t, State.STOPPED) or requested or any(isinstance(each, LogFatal) for each in t.effects)


def asks_before_it_ends(t: Transition) -> bool:
    """A running session is asked to end when a message interrupts it or an operator stops it, also repeatedly."""
    runs = t.before is not None and t.before.state in {State.RUNNING, State.INTERRUPTING}
    requested = runs and isinstance(t.event, UrgentMessage | OperatorStop)
    return not requested or any(isinstance(each, CancelSession) for each in t.effects)


def kills_the_interrupted_alone(t: Transition) -> bool:
    """Only an interrupted session that outlasts its grace is killed."""
    killed = any(isinstance(each, ForceStopSession) for each in t.effects)
    return not killed or (t.before is not None and t.before.state is State.INTERRUPTING)


def counts_sessions_once(t: Transition) -> bool:
    """The session number rises when the agent continues after a success, then alone, and is reported."""
    rises = t.after.record.session_seq - t.was.session_seq
    goes_on = t.was.state is State.SESSION_COMPLETE and enters(t, State.BUILDING_PROMPT)
    reported = [each.session_seq for each in t.effects if isinstance(each, IncrementSession)]
    return rises == goes_on and reported == [t.after.record.session_seq] * goes_on


def numbers_every_attempt(t: Transition) -> bool:
    """Say: every spawn has its own number."""
    rises: int = t.after.record.attempt - (t.before.record.attempt if t.before else 0)
    return rises == enters(t, State.SPAWNING)


def starts_what_was_spawned(t: Transition) -> bool:
    """A start is accepted for the spawned session, and for no other."""
    s: Session = t.after.record
    return not isinstance(t.event, SessionStarted) or t.event.seq == s.session_seq


def completes_by_success(t: Transition) -> bool:
    """Only a successful session is complete."""
    return not enters(t, State.SESSION_COMPLETE) or (
        isinstance(t.event, SessionExited) and isinstance(t.event.outcome, Success)
    )


def _has_its_session(e: Entity[Session]) -> bool:
    s, begun = e.record, e.find("RunSession") or e.find("RunSession", Phase.WAITING)
    if begun is None or not isinstance(begun.activity, RunSession):
        return e.state not in SESSION_LIVES
    of = begun.activity
    started = e.state is State.SPAWNING or begun.phase is Phase.LIVE
    return e.state in SESSION_LIVES and started and (of.session_seq, of.attempt) == (s.session_seq, s.attempt)


PROPERTIES: Final[tuple[Property[Entity[Session]], ...]] = (
    *ends_confirmed(RunSession),
    always("the session of this attempt runs in its states, and no other", _has_its_session),
    always("a message waits only for a session to start", lambda e: not e.postponed or e.state is State.SPAWNING),
    lasts_only("GraceExceeded", State.INTERRUPTING),
    lasts_only("BackoffElapsed", State.COOLING_DOWN),
    rests_in(State.STOPPED),
    is_transient(State.INITIALIZING, *weakly(PrepareWorktree)),
    is_transient(State.BUILDING_PROMPT, *weakly(BuildPrompt)),
    is_transient(State.SPAWNING, *weakly(RunSession)),
    is_transient(State.RUNNING, *weakly(RunSession)),
    *exits_on(State.SPAWNING, ERROR, TIMEOUT),
    *exits_on(State.RUNNING, SUCCESS, ERROR, TIMEOUT, UrgentMessage),
    is_transient(State.INTERRUPTING),
    is_transient(State.SESSION_COMPLETE, *weakly(RefreshWorktree)),
    is_transient(State.COOLING_DOWN),
    eventually(
        "an operator's stop is accepted in every state, and nothing runs after it",
        lambda e: e.state is State.STOPPED and not e.running,
        given=weakly(OperatorStop),
    ),
    eventually(
        "a fatal error stops the agent in every state", lambda e: e.state is State.STOPPED, given=weakly(FatalError)
    ),
    leads_to(
        "a waiting message does not wait for ever",
        lambda e: bool(e.postponed),
        lambda e: not e.postponed,
        given=weakly(RunSession),
    ),
    sometimes("a message waits for a session to start", lambda e: bool(e.postponed)),
    sometimes(
        "a session that is forced to end delays the next one",
        lambda e: e.state is State.SPAWNING and e.find("RunSession", Phase.WAITING) is not None,
    ),
    sometimes(
        "too many errors in a row end the agent",
        lambda e: e.record.consecutive_errors >= e.record.limits.max_consecutive_errors,
    ),
    sometimes(
        "too many errors in all end the agent", lambda e: e.record.total_errors >= e.record.limits.max_total_errors
    ),
    sometimes(
        "a session succeeds after an error", lambda e: e.state is State.SESSION_COMPLETE and e.record.total_errors > 0
    ),
)
"""Properties of an agent at all times. Where a state lasts as long as its work, that work is assumed to end."""

STEPS: Final = (
    always_step("an error counts once", counts_errors_once, on=Event),
    always_step(
        "an interrupted session is no error",
        lambda t: t.was.state is not State.INTERRUPTING or errors_added(t) <= 0,
        on=Event,
    ),
    always_step("an error counts once among all", counts_among_all),
    always_step("an error that reaches a threshold ends the agent, and names it", gives_up_at_a_threshold),
    always_step("errors in a row are forgotten with a reason only", forgets_with_a_reason),
    always_step(
        "an error is followed by a pause or the end",
        lambda t: errors_added(t) <= 0 or t.after.state in {State.COOLING_DOWN, State.STOPPED},
    ),
    always_step("a pause is as long as the errors before it require", pauses_long_enough),
    always_step("a pause ends when it is over, or with the agent", leaves_the_pause_when_it_is_over),
    always_step("an agent that stops without a request reports the reason", reports_the_reason_of_its_stop),
    always_step("a running session is asked to end before it is killed", asks_before_it_ends),
    always_step("only an interrupted session is killed", kills_the_interrupted_alone),
    always_step("an interrupted session has its grace, and is then killed", gives_it_time),
    always_step("after an interruption the next prompt is written", goes_on_after_an_interruption),
    always_step("the written prompt is kept", keeps_the_prompt),
    always_step("a completed session counts once", counts_sessions_once, on=Event),
    always_step("every attempt has its own number", numbers_every_attempt),
    always_step("a start counts for the spawned session", starts_what_was_spawned),
    always_step("only a success completes a session", completes_by_success),
    asks_once(),
)
"""Properties of every transition."""
