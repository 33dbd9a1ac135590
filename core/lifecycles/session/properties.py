"""What an operator can rely on, of an agent at any time and of every step.

The properties are written without the guards and the actions that they are about. Where a state lasts as its work does,
that the work comes to an end is given; what ends by itself has a timer and is given nothing.
"""

from typing import Final

from lifefold.core.kernel import (
    ANY,
    Entity,
    Phase,
    Property,
    Transition,
    accepts,
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
    leads_where,
    rests_in,
)
from lifefold.core.lifecycles.session.model import (
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
    WorktreeReady,
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
    """Return by how much a step has changed the errors in a row."""
    before: int = t.before.record.consecutive_errors if t.before else 0
    after: int = t.after.record.consecutive_errors
    return after - before


def counts_errors_once(t: Transition) -> bool:
    """Say: an error or a time-out of a session that nobody has interrupted counts, once, and no other end counts."""
    if t.before is None or not isinstance(t.event, SessionExited):
        return True
    at_work = t.before.state in {State.SPAWNING, State.RUNNING}
    if at_work and isinstance(t.event.outcome, Error | Timeout):
        return errors_added(t) == 1
    spared = isinstance(t.event.outcome, Success) or t.event.outcome == Suspended(asked=True)
    return not spared or errors_added(t) <= 0


def spares_the_interrupted(t: Transition) -> bool:
    """Say: what becomes of an interrupted session is no error."""
    return t.before is None or t.before.state is not State.INTERRUPTING or errors_added(t) <= 0


def forgets_with_a_reason(t: Transition) -> bool:
    """Say: errors in a row are forgotten by what resets them, and by nothing else."""
    started = isinstance(t.event, SessionStarted) and t.after.record.limits.reset_errors_on == "start"
    succeeded = enters(t, State.SESSION_COMPLETE)
    return bool(t.after.record.consecutive_errors == 0) if started or succeeded else errors_added(t) >= 0


def pauses_or_gives_up(t: Transition) -> bool:
    """Say: an error stops the agent for good, or sends it into the pause."""
    return errors_added(t) <= 0 or t.after.state in {State.COOLING_DOWN, State.STOPPED}


def counts_among_all(t: Transition) -> bool:
    """Say: an error counts among all errors, too, and nothing else does; what is long ago may be forgotten (D22)."""
    now: int = t.after.record.total_errors
    before: int = t.before.record.total_errors if t.before else 0
    added = max(errors_added(t), 0)
    return now == before + added or (bool(t.after.record.timestamps) and added <= now <= before + added)


def gives_up_at_a_threshold(t: Transition) -> bool:
    """Say: the error that reaches a threshold ends the agent, and no other one does (D1); which it was is said (D4)."""
    if errors_added(t) <= 0:
        return True
    s: Session = t.after.record
    reached = [
        f"{name} {count} of {most}"
        for name, count, most in (
            ("consecutive_errors", s.consecutive_errors, s.limits.max_consecutive_errors),
            ("total_errors", s.total_errors, s.limits.max_total_errors),
        )
        if count >= most
    ]
    said = [each.message.partition(";")[0] for each in t.effects if isinstance(each, LogFatal)]
    return enters(t, State.STOPPED) == bool(reached) and said == [", ".join(reached)] * bool(reached)


def keeps_the_prompt(t: Transition) -> bool:
    """Say: the prompt that was written is the one that is kept, and that the session is begun with."""
    if not isinstance(t.event, PromptReady):
        return True
    stored = [each.prompt for each in t.effects if isinstance(each, StorePrompt)]
    return t.after.record.prompt == t.event.prompt and stored == [t.event.prompt]


def goes_on_after_an_interruption(t: Transition) -> bool:
    """Say: when an interrupted session has ended, the next prompt is written, with what somebody had to say."""
    interrupted = t.before is not None and t.before.state is State.INTERRUPTING
    return not (interrupted and isinstance(t.event, SessionExited)) or t.entered is State.BUILDING_PROMPT


def gives_it_time(t: Transition) -> bool:
    """Say: an interrupted session has the grace that its limits say, and who outlasts it is killed, and told so."""
    graces = [each.delay_ms for each in t.effects if isinstance(each, StartTimer) and each.slot == "GraceExceeded"]
    killed = sum(isinstance(each, ForceStopSession) for each in t.effects)
    began = enters(t, State.INTERRUPTING)
    return graces == [t.after.record.patience_ms] * began and killed == isinstance(t.event, GraceExceeded)


def pauses_long_enough(t: Transition) -> bool:
    """Say: the pause doubles with every error, or suspension, in a row, up to its cap."""
    s: Session = t.after.record
    if not enters(t, State.COOLING_DOWN):
        return True
    in_a_row = max(s.suspensions, s.consecutive_errors, 1)
    longest_ms = min(s.limits.backoff_base_ms * 2 ** (in_a_row - 1), s.limits.backoff_cap_ms)
    pauses = [each.delay_ms for each in t.effects if isinstance(each, StartTimer)]
    return len(pauses) == 1 and longest_ms * (1 - s.limits.jitter) <= pauses[0] <= longest_ms


def leaves_the_pause_when_it_is_over(t: Transition) -> bool:
    """Say: nothing but the end of the pause, or of the agent, ends it."""
    paused = t.before is not None and t.before.state is State.COOLING_DOWN and t.entered is not None
    return not paused or t.after.state is State.STOPPED or isinstance(t.event, BackoffElapsed)


def says_why_it_stops(t: Transition) -> bool:
    """Say: who stops without an operator's wish reports why."""
    asked = isinstance(t.event, OperatorStop)
    return not enters(t, State.STOPPED) or asked or any(isinstance(each, LogFatal) for each in t.effects)


def asks_before_it_ends(t: Transition) -> bool:
    """Say: a session that runs is asked to end when a message interrupts it or an operator stops it, also once more."""
    runs = t.before is not None and t.before.state in {State.RUNNING, State.INTERRUPTING}
    asked = runs and isinstance(t.event, UrgentMessage | OperatorStop)
    return not asked or any(isinstance(each, CancelSession) for each in t.effects)


def kills_the_interrupted_alone(t: Transition) -> bool:
    """Say: nobody is killed but who was interrupted, and has not ended within the grace."""
    killed = any(isinstance(each, ForceStopSession) for each in t.effects)
    return not killed or (t.before is not None and t.before.state is State.INTERRUPTING)


def counts_sessions_once(t: Transition) -> bool:
    """Say: the session number rises when the agent goes on after a success, then alone, and somebody hears of it."""
    if t.before is None:
        return True
    rises = t.after.record.session_seq - t.before.record.session_seq
    goes_on = t.before.state is State.SESSION_COMPLETE and enters(t, State.BUILDING_PROMPT)
    told = [each.session_seq for each in t.effects if isinstance(each, IncrementSession)]
    return rises == goes_on and told == [t.after.record.session_seq] * goes_on


def numbers_every_attempt(t: Transition) -> bool:
    """Say: every spawn has its own number."""
    rises: int = t.after.record.attempt - (t.before.record.attempt if t.before else 0)
    return rises == enters(t, State.SPAWNING)


def starts_what_was_spawned(t: Transition) -> bool:
    """Say: a start is believed for the session that was spawned, and for no other."""
    s: Session = t.after.record
    return not isinstance(t.event, SessionStarted) or t.event.seq == s.session_seq


def completes_by_success(t: Transition) -> bool:
    """Say: only a session that ended well is complete."""
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
    always("the session of this attempt goes on while it is to, and no other", _has_its_session),
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
        "an operator's stop is taken in every state, and nothing is left then",
        lambda e: e.state is State.STOPPED and not e.running,
        given=weakly(OperatorStop),
    ),
    eventually(
        "a fatal error stops the agent in every state",
        lambda e: e.state is State.STOPPED,
        given=weakly(FatalError),
    ),
    leads_to(
        "a message that waits is not kept waiting for ever",
        lambda e: bool(e.postponed),
        lambda e: not e.postponed,
        given=weakly(RunSession),
    ),
    sometimes("a message waits for a session to start", lambda e: bool(e.postponed)),
    sometimes(
        "a session that is forced to end holds up the next one",
        lambda e: e.state is State.SPAWNING and e.find("RunSession", Phase.WAITING) is not None,
    ),
    sometimes(
        "too many errors in a row end the agent",
        lambda e: e.record.consecutive_errors >= e.record.limits.max_consecutive_errors,
    ),
    sometimes(
        "too many errors in all end the agent",
        lambda e: e.record.total_errors >= e.record.limits.max_total_errors,
    ),
    sometimes(
        "a session succeeds after an error",
        lambda e: e.state is State.SESSION_COMPLETE and e.record.total_errors > 0,
    ),
)
"""What an operator can rely on, of an agent at any time. Where a state lasts as its work does, that work is given."""

STEPS: Final = (
    always_step("an error counts once", counts_errors_once),
    always_step("an interrupted session is no error", spares_the_interrupted),
    always_step("an error counts once among all", counts_among_all),
    always_step("an error that reaches a threshold ends the agent, and says which", gives_up_at_a_threshold),
    always_step("errors in a row are forgotten with a reason only", forgets_with_a_reason),
    always_step("an error is followed by a pause or the end", pauses_or_gives_up),
    always_step("a pause is as long as the errors before it say", pauses_long_enough),
    always_step("a pause ends when it is over, or with the agent", leaves_the_pause_when_it_is_over),
    always_step("who stops unasked says why", says_why_it_stops),
    always_step("a session that runs is asked to end before it is killed", asks_before_it_ends),
    always_step("only who was interrupted is killed", kills_the_interrupted_alone),
    always_step("an interrupted session has its grace, and is then killed", gives_it_time),
    always_step("after an interruption the next prompt is written", goes_on_after_an_interruption),
    always_step("the prompt that was written is kept", keeps_the_prompt),
    always_step("a completed session counts once", counts_sessions_once),
    always_step("every attempt has its own number", numbers_every_attempt),
    always_step("a start counts for the session that was spawned", starts_what_was_spawned),
    always_step("only a success completes a session", completes_by_success),
    leads_where(
        "every event leads where the document says",
        {
            WorktreeReady: (State.BUILDING_PROMPT,),
            PromptReady: (State.SPAWNING,),
            SessionStarted: (State.RUNNING,),
            UrgentMessage: (State.INTERRUPTING,),
            GraceExceeded: (State.BUILDING_PROMPT,),
            BackoffElapsed: (State.BUILDING_PROMPT,),
            OperatorStop: (State.STOPPED,),
            FatalError: (State.STOPPED,),
        },
    ),
    accepts("a stop, and a fatal error, is heard in every state", {ANY: (OperatorStop, FatalError)}),
    accepts("however an interrupted session ends, it is heard", {State.INTERRUPTING: (SUCCESS, ERROR, TIMEOUT)}),
    asks_once(),
)
"""What an operator can rely on, of every step."""
