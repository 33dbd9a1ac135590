"""The stall detector: evidence of a session's progress, and the ladder for a session without it.

*A live process is no evidence of progress*: a hung process is alive. The evidence is growing output of the session, or
a touched heartbeat file. Before the first of either, the start of the session counts (E31, E32). A silent session is
first *warned* of. After a longer silence it is *nudged*, if the fleet file asks for it: a signal interrupts a hung
call. In the end it is *stalled*: it is ended like a stopped session, but as an error and not as an interruption.

No timer alone takes a step of the ladder. The activity ``WatchOutput`` lasts while the session runs, and observes the
evidence. It reports ``Silent`` with the length of the silence when the next step is due. The step is taken only if the
silence is long enough (``>=``). ``Stirred`` leads back to the foot of the ladder. So each step is taken once in a
silence, in order, and a session with progress adds nothing to the log. A silence adds at most two entries that are long
enough for a warning, and one more for an answered nudge.

*An answer to a nudge is no progress*: many programs answer the signal with a line ("press Ctrl-C again to exit") and
stay hung. The first sign after a nudge makes the session *answered*. A sign at least ``Limits.answer_ms`` after the
answer leads to the foot of the ladder. A silence of that length ends the session. An answered session is not nudged
again.

A session that waits for an operator's answer is not watched (``questions``). When the answer comes, a new watch begins
at the foot of the ladder, and the silence of the wait does not count.

A watch belongs to one session. Its reports after the end of the session are stale. A session that is being interrupted
has its own grace and is not watched.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, cast

import msgspec

from lifefold.core.fleet.worker import question_model
from lifefold.core.kernel import (
    Aggregate,
    Dispatch,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always_step,
    anywhere,
    does,
    leads_to,
    row,
    rule,
    weakly,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.property_forms import asks_once, exits_on, goes_on, leads_where
from lifefold.core.lifecycles.session_profiles import Stalled
from lifefold.core.policy.ends import TIMED_OUT, Diagnosis
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import InterruptSession, WarnOfSilence, WatchOutput

REF: Final = "stall_detector"


class State(AnyLifecycleState):
    """The six states of a stall detector: no session, the steps of the ladder, and the answer to a nudge."""

    UNWATCHED = "Unwatched"
    FRESH = "Fresh"
    WARNED = "Warned"
    NUDGED = "Nudged"
    ANSWERED = "Answered"
    STALLED = "Stalled"


WATCHED: Final = (State.FRESH, State.WARNED, State.NUDGED, State.ANSWERED)
"""In these states a session is watched."""

ON_LADDER: Final = frozenset({State.WARNED, State.NUDGED, State.ANSWERED})
"""In these states a session has been silent for too long, and is not given up yet."""


class Limits(msgspec.Struct, frozen=True):
    """The silences of the ladder in milliseconds: warning, nudge and end. Without ``nudge_ms`` there is no nudge.

    The defaults are those of document 004, except for the nudge: its signal ends a program that does not expect it.
    """

    warn_ms: int = 60_000
    nudge_ms: int | None = None
    end_ms: int = 120_000

    def __post_init__(self) -> None:
        """Check that the silences are positive and grow. Raises ``ValueError``."""
        if self.warn_ms < 1 or any(later <= earlier for earlier, later in pairwise(self.steps_ms)):
            raise ValueError(f"the steps must be positive and grow, not {self.steps_ms}")

    @property
    def steps_ms(self) -> tuple[int, ...]:
        """The silences of the steps, in order."""
        return tuple(each for each in (self.warn_ms, self.nudge_ms, self.end_ms) if each is not None)

    @property
    def answer_ms(self) -> int:
        """After an answer to a nudge: the time until a sign is progress, and the silence that ends the session."""
        return self.end_ms - (self.end_ms if self.nudge_ms is None else self.nudge_ms)


class StallDetector(Record, frozen=True):
    """The progress of an agent's session."""

    state: State = State.UNWATCHED
    limits: Limits = Limits()

    @property
    def steps_taken(self) -> int:
        """The number of steps taken in this silence."""
        taken = {State.WARNED: 1, State.NUDGED: 2, State.ANSWERED: 2, State.STALLED: len(self.limits.steps_ms)}
        return taken.get(self.state, 0)


class SessionRuns(Event, frozen=True):
    """A session runs, and is watched from now on."""


class SessionOver(Event, frozen=True):
    """The watched session no longer runs, or is being interrupted."""


class Silent(Event, frozen=True):
    """The session has shown no sign of progress for ``silent_ms``."""

    silent_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["Silent", ...]:
        """Return a silence that is long enough for every step of the usual ladder."""
        return (cls(Limits().end_ms),)

    @classmethod
    def examples_for(cls, record: StallDetector) -> tuple["Silent", ...]:
        """Return a silence for each of the steps, and one that is too short; after an answer, the limit and less."""
        limits = record.limits
        if record.state is State.ANSWERED:
            return cls(limits.answer_ms), cls(limits.answer_ms - 1)
        return tuple(cls(each) for each in (*limits.steps_ms, limits.warn_ms - 1))


class Stirred(Event, frozen=True):
    """A silent session has shown a sign. The last one came ``moved_ms`` after the present step, or after the answer."""

    moved_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["Stirred", ...]:
        """Return a sign at once, and one that is progress after an answer of the usual ladder."""
        return cls(), cls(Limits().end_ms)

    @classmethod
    def examples_for(cls, record: StallDetector) -> tuple["Stirred", ...]:
        """Return a sign at once, and, in a fleet that nudges, one that is progress after an answer."""
        return (cls(), cls(record.limits.answer_ms)) if record.limits.nudge_ms is not None else (cls(),)


def is_due_to_warn(p: StallDetector, e: Silent) -> bool:
    """The silence is long enough for a warning."""
    return e.silent_ms >= p.limits.warn_ms


def is_due_to_nudge(p: StallDetector, e: Silent) -> bool:
    """The fleet nudges, and the silence is long enough for it."""
    return p.limits.nudge_ms is not None and e.silent_ms >= p.limits.nudge_ms


def is_due_to_end(p: StallDetector, e: Silent) -> bool:
    """The silence is long enough to end the session."""
    return e.silent_ms >= p.limits.end_ms


def is_due_to_end_answered(p: StallDetector, e: Silent) -> bool:
    """The silence after an answer is long enough to end the session."""
    return e.silent_ms >= p.limits.answer_ms


def has_moved_on(p: StallDetector, e: Stirred) -> bool:
    """The sign came long enough after the answer to be progress."""
    return e.moved_ms >= p.limits.answer_ms


def warn(p: StallDetector, e: Silent) -> Step[StallDetector, WarnOfSilence]:
    """Warn the operator."""
    return Step(p, (WarnOfSilence(e.silent_ms, p.limits.end_ms),))


def nudge(p: StallDetector, e: Silent) -> Step[StallDetector, InterruptSession]:
    """Signal the process of the session once."""
    return Step(p, (InterruptSession(e.silent_ms),))


def watch(p: StallDetector) -> WatchOutput:
    """Return the activity of a watched session."""
    return WatchOutput(p.limits.steps_ms)


def due(p: StallDetector, silent_ms: int, on_step_ms: int) -> Silent | Stirred | int:
    """Return the report that is due for a watched session, or the milliseconds until one may be due.

    ``silent_ms`` is the time since the last sign, ``on_step_ms`` the time since the present step was taken. Each step
    lasts as long as the ladder says, also if several are overdue because no runner was watching. At the foot of the
    ladder, silence before the watch does not count: the session has waited for an answer meanwhile.
    """
    if p.state is State.FRESH:
        silent_ms = min(silent_ms, on_step_ms)
    steps_ms, taken, moved_ms = p.limits.steps_ms, p.steps_taken, on_step_ms - silent_ms
    if p.state is State.ANSWERED:
        left_ms = p.limits.answer_ms - silent_ms
        has_stirred = moved_ms >= p.limits.answer_ms
    else:
        since_step_ms = steps_ms[taken] - steps_ms[taken - 1] - on_step_ms if taken else 0
        left_ms = max(steps_ms[taken] - silent_ms, since_step_ms)
        has_stirred = taken > 0 and silent_ms < steps_ms[taken - 1]
    if has_stirred:
        return Stirred(max(0, moved_ms))
    return left_ms if left_ms > 0 else Silent(silent_ms)


def after(p: StallDetector, event: Silent | Stirred) -> StallDetector:
    """Return the detector after an event that it accepts."""
    step = machine.step(p, event)
    return step.record if isinstance(step, Step) else p


def is_silent_for_its_step(step: Transition) -> bool:
    """Only a silence that is long enough takes a step of the ladder."""
    if step.after.record.steps_taken <= step.was.steps_taken:
        return True
    p: StallDetector = step.after.record
    answered = step.was.state is State.ANSWERED
    least_ms = p.limits.answer_ms if answered else p.limits.steps_ms[p.steps_taken - 1]
    return isinstance(step.event, Silent) and step.event.silent_ms >= least_ms


def each_step_has_its_effect(step: Transition) -> bool:
    """A warning step requests one warning, a nudge one signal, and no other transition requests either."""
    p: StallDetector = step.after.record
    silent_ms = step.event.silent_ms if isinstance(step.event, Silent) else 0
    asked = [each for each in step.effects if isinstance(each, WarnOfSilence | InterruptSession)]
    match step.entered if step.before is not None else None:
        case State.WARNED:
            return asked == [WarnOfSilence(silent_ms, p.limits.end_ms)]
        case State.NUDGED:
            return asked == [InterruptSession(silent_ms)]
        case _:
            return not asked


def silence_leads_up(step: Transition) -> bool:
    """Each long enough silence takes one step, and the last step gives the session up."""
    last = len(step.after.record.limits.steps_ms)
    taken: int = step.after.record.steps_taken
    return taken == step.was.steps_taken + 1 and (taken == last) == (step.after.state is State.STALLED)


def nudges_before_the_end(step: Transition) -> bool:
    """A session is nudged only in a fleet that nudges, and such a fleet gives no session up before its nudge."""
    wants: bool = step.after.record.limits.nudge_ms is not None
    was = step.before.state if step.before is not None else None
    given_up = step.entered is State.STALLED
    return wants if step.entered is State.NUDGED else not given_up or was in (AFTER_NUDGE if wants else {State.WARNED})


AFTER_NUDGE: Final = frozenset({State.NUDGED, State.ANSWERED})


def answers_are_no_progress(step: Transition) -> bool:
    """A nudged session returns to the foot of the ladder only by a sign that is late enough after its answer."""
    if step.was.state not in AFTER_NUDGE or not isinstance(step.event, Stirred):
        return True
    if step.was.state is State.NUDGED:
        return step.after.state is State.ANSWERED
    return step.after.state is State.FRESH and step.event.moved_ms >= step.after.record.limits.answer_ms


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("no step of the ladder is taken before its silence is long enough", is_silent_for_its_step, on=Event),
    always_step(
        "the steps of the ladder are taken in order, each once in a silence",
        lambda step: step.after.record.steps_taken <= step.was.steps_taken + 1,
        on=Event,
    ),
    always_step("a silence climbs one step, and the last step ends the session", silence_leads_up, on=Silent),
    always_step("each step requests its effect once", each_step_has_its_effect),
    always_step("a session is nudged before it is given up, if the fleet nudges", nudges_before_the_end),
    always_step("an answer to a nudge is no progress", answers_are_no_progress, on=Event),
    leads_where(
        "progress and a start lead to the foot of the ladder, and an end ends the watch",
        {Stirred: (State.FRESH, State.ANSWERED), SessionRuns: (State.FRESH,), SessionOver: (State.UNWATCHED,)},
    ),
    accepts(
        "progress, starts and ends of sessions are accepted on every step",
        {
            (State.WARNED, State.NUDGED, State.ANSWERED): (Stirred,),
            (State.UNWATCHED, State.STALLED): (SessionRuns,),
            WATCHED: (SessionOver,),
        },
    ),
    accepts("a silence of the limit after an answer is accepted", {State.ANSWERED: (Silent,)}),
    goes_on("WatchOutput", *WATCHED),
    asks_once(),
    *exits_on(State.FRESH, Silent),
    leads_to(
        "a silent session is given up at last",
        lambda e: e.state in ON_LADDER,
        lambda e: e.state not in ON_LADDER,
        given=weakly(Silent),
    ),
)

machine: Machine[Any] = Machine(
    REF,
    StallDetector(),
    about="the progress of a session, and the ladder for one without it: warn, nudge, end",
    rows=(
        row((State.UNWATCHED, State.STALLED), SessionRuns, State.FRESH),
        row(State.FRESH, Silent, State.WARNED, warn, when=is_due_to_warn),
        row(State.WARNED, Silent, State.NUDGED, nudge, when=is_due_to_nudge),
        row((State.WARNED, State.NUDGED), Silent, State.STALLED, when=is_due_to_end),
        row(State.ANSWERED, Silent, State.STALLED, when=is_due_to_end_answered),
        row(State.WARNED, Stirred, State.FRESH),
        row(State.NUDGED, Stirred, State.ANSWERED),
        row(State.ANSWERED, Stirred, State.FRESH, when=has_moved_on),
        row(WATCHED, SessionOver, State.UNWATCHED),
    ),
    during={WATCHED: does(watch, yields=(Stirred, Silent))},
    properties=PROPERTIES,
    rests=anywhere,
)


def _is_to_be_watched(worker: Aggregate) -> bool:
    """Tell whether a session runs, and waits for no operator."""
    return worker.record("session").state is session.State.RUNNING and not question_model.waits(worker)


def keep_watch(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """A session is watched as long as it runs and waits for no answer."""
    runs = _is_to_be_watched(worker)
    watched = worker.record(REF).state in WATCHED
    if runs and not watched:
        yield Dispatch(REF, SessionRuns())
    elif watched and not runs:
        yield Dispatch(REF, SessionOver())


@rule(on=machine, event=Silent, enters=State.STALLED)
def give_up(_worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A session that has stalled is ended, and that is an error."""
    silent = cast("Silent", transition.event)
    yield Dispatch("session", Stalled(silent.silent_ms))


def has_nudged(worker: Aggregate) -> bool:
    """Tell whether the running session was nudged, and has shown no sign since."""
    found = worker.entities.get(REF)
    return found is not None and found.state is State.NUDGED


def nudged_reason(worker: Aggregate, by: Event, reason: str) -> str:
    """Return the reason of a session's failure, with the silence before its nudge, if it was nudged.

    A stalled session was nudged before, if the fleet nudges.
    """
    p: StallDetector | None = worker.record(REF) if REF in worker.entities else None
    if not reason or p is None or p.limits.nudge_ms is None:
        return reason
    if p.state not in AFTER_NUDGE and not isinstance(by, Stalled):
        return reason
    return f"{reason} (interrupted after {p.limits.nudge_ms // 1_000} s of silence)"


def nudged_diagnosis(worker: Aggregate, found: Diagnosis) -> Diagnosis:
    """Return the diagnosis of a session's end: the SIGINT of a nudge means that it timed out (E39)."""
    p: StallDetector | None = worker.record(REF) if REF in worker.entities else None
    nudged = p is not None and p.state in AFTER_NUDGE
    return TIMED_OUT if nudged and found.abort_reason is AbortReason.USER_INTERRUPT else found


def watches_running_sessions(worker: Aggregate) -> bool:
    """A session is watched exactly while it runs and waits for no answer, so no step follows its end."""
    if REF not in worker.entities:
        return True
    return _is_to_be_watched(worker) == (worker.record(REF).state in WATCHED)
