"""Whether a session still moves: evidence of progress, and the ladder for whom there is none (stall detection).

*That a process is alive is no evidence.* A hung one is alive. What counts is that the session's output grows, or that
it touches its heartbeat file; before there is anything of either, its start counts (E31, E32). A session that is silent
for so long is *warned of*, after more of it *nudged* (asked by a signal to leave what it hangs in; only if the fleet
wants that), and in the end *stalled*: it is ended like one that is stopped, and that is an error, not an interruption.

Nobody's clock alone takes a step of the ladder. ``WatchOutput`` goes on while the session runs, looks at the evidence,
and says ``Silent`` when the next step is due, with the silence that it has found; the step is taken only if that is
long enough (``>=``). Whoever is on the ladder and ``Stirred`` begins at its foot again. So each step is taken once in a
silence, in its order, and a session that moves costs the log nothing: at most two entries for each silence that is long
enough for a warning, and one more if a nudge is answered.

*An answer to a nudge is no progress*: many programs answer the signal with a line ("press Ctrl-C again to exit") and
hang on. The first sign after a nudge makes the session *answered*. An answered session has to move on: a sign that
comes at least ``Limits.answer_ms`` after the answer leads to the foot of the ladder, and a silence of that length ends
the session. Between the two it is nudged no second time.

A watch belongs to one session. What it says when that is over is stale, and a session that is being interrupted has
its own grace and is not watched.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, cast

import msgspec

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
    """The six states of a pulse: nobody to watch, the steps of the ladder, and the answer to a nudge."""

    UNWATCHED = "Unwatched"
    FRESH = "Fresh"
    WARNED = "Warned"
    NUDGED = "Nudged"
    ANSWERED = "Answered"
    STALLED = "Stalled"


WATCHED: Final = (State.FRESH, State.WARNED, State.NUDGED, State.ANSWERED)
"""In these a session is watched."""

ON_LADDER: Final = frozenset({State.WARNED, State.NUDGED, State.ANSWERED})
"""In these a session has been silent for too long, and has not been given up."""


class Limits(msgspec.Struct, frozen=True):
    """For how many milliseconds of silence a session is warned of, nudged, and ended. It is not nudged if that is None.

    The defaults are document 004's, but for the nudge: a program that does not expect the signal ends by it.
    """

    warn_ms: int = 60_000
    nudge_ms: int | None = None
    end_ms: int = 120_000

    def __post_init__(self) -> None:
        """Refuse what is no ladder. Raises ``ValueError``."""
        if self.warn_ms < 1 or any(later <= earlier for earlier, later in pairwise(self.steps_ms)):
            raise ValueError(f"the steps must be positive and grow, not {self.steps_ms}")

    @property
    def steps_ms(self) -> tuple[int, ...]:
        """The silences at which a step is due, in order."""
        return tuple(each for each in (self.warn_ms, self.nudge_ms, self.end_ms) if each is not None)

    @property
    def answer_ms(self) -> int:
        """For how long a session must move on after its answer to a nudge, and at which silence it is ended then."""
        return self.end_ms - (self.end_ms if self.nudge_ms is None else self.nudge_ms)


class StallDetector(Record, frozen=True):
    """Whether the session of an agent moves."""

    state: State = State.UNWATCHED
    limits: Limits = Limits()

    @property
    def steps_taken(self) -> int:
        """How many steps of the ladder have been taken in this silence."""
        taken = {State.WARNED: 1, State.NUDGED: 2, State.ANSWERED: 2, State.STALLED: len(self.limits.steps_ms)}
        return taken.get(self.state, 0)


class SessionRuns(Event, frozen=True):
    """There is a session to watch."""


class SessionOver(Event, frozen=True):
    """The session that was watched runs no more, or is being interrupted."""


class Silent(Event, frozen=True):
    """There was no sign of progress for ``silent_ms``."""

    silent_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["Silent", ...]:
        """Return a silence that is long enough for every step of the usual ladder."""
        return (cls(Limits().end_ms),)

    @classmethod
    def examples_for(cls, record: StallDetector) -> tuple["Silent", ...]:
        """Return a silence for each of the steps, one after an answer, and one that is too short for any."""
        limits = record.limits
        answered = (limits.answer_ms,) if limits.nudge_ms is not None else ()
        return tuple(cls(each) for each in dict.fromkeys((*limits.steps_ms, *answered, limits.warn_ms - 1)))


class Stirred(Event, frozen=True):
    """A silent session has moved. Its last sign came ``moved_ms`` after it had taken its step, or had answered."""

    moved_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["Stirred", ...]:
        """Return a sign at once, and one that is progress after an answer of the usual ladder."""
        return cls(), cls(Limits().end_ms)

    @classmethod
    def examples_for(cls, record: StallDetector) -> tuple["Stirred", ...]:
        """Return a sign at once, and one that is progress after an answer, if there may be one."""
        return (cls(), cls(record.limits.answer_ms)) if record.limits.nudge_ms is not None else (cls(),)


def is_due_to_warn(p: StallDetector, e: Silent) -> bool:
    """The silence is long enough for people to be told."""
    return e.silent_ms >= p.limits.warn_ms


def is_due_to_nudge(p: StallDetector, e: Silent) -> bool:
    """The silence is long enough for a nudge, and there is to be one."""
    return p.limits.nudge_ms is not None and e.silent_ms >= p.limits.nudge_ms


def is_due_to_end(p: StallDetector, e: Silent) -> bool:
    """The silence is as long as it may be."""
    return e.silent_ms >= p.limits.end_ms


def is_due_to_end_answered(p: StallDetector, e: Silent) -> bool:
    """The silence after an answer is as long as it may be."""
    return e.silent_ms >= p.limits.answer_ms


def has_moved_on(p: StallDetector, e: Stirred) -> bool:
    """A sign came so long after the answer that it is none itself."""
    return e.moved_ms >= p.limits.answer_ms


def warn(p: StallDetector, e: Silent) -> Step[StallDetector, WarnOfSilence]:
    """Tell people."""
    return Step(p, (WarnOfSilence(e.silent_ms, p.limits.end_ms),))


def nudge(p: StallDetector, e: Silent) -> Step[StallDetector, InterruptSession]:
    """Signal the session's process, once."""
    return Step(p, (InterruptSession(e.silent_ms),))


def watch(p: StallDetector) -> WatchOutput:
    """Return what goes on while a session is watched."""
    return WatchOutput(p.limits.steps_ms)


def due(p: StallDetector, silent_ms: int, on_step_ms: int) -> Silent | Stirred | int:
    """Return what a watch has to say of a session that is watched, or in how many milliseconds that may be known.

    ``silent_ms`` is how long the session has shown no sign, ``on_step_ms`` how long ago the session took its present
    step. Each step lasts as long as the ladder says, also if all of them are overdue because no runner has watched.
    """
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
    """Return a pulse as it is after an event that it has taken."""
    step = machine.step(p, event)
    return step.record if isinstance(step, Step) else p


def is_silent_for_its_step(step: Transition) -> bool:
    """Say: a step of the ladder is taken by a silence that is long enough for it, and by nothing else."""
    if step.before is None or step.after.record.steps_taken <= step.before.record.steps_taken:
        return True
    p: StallDetector = step.after.record
    answered = step.before.state is State.ANSWERED
    least_ms = p.limits.answer_ms if answered else p.limits.steps_ms[p.steps_taken - 1]
    return isinstance(step.event, Silent) and step.event.silent_ms >= least_ms


def climbs_step_by_step(step: Transition) -> bool:
    """Say: the steps are taken in their order, each once in a silence."""
    return step.before is None or step.after.record.steps_taken <= step.before.record.steps_taken + 1


def each_step_has_its_effect(step: Transition) -> bool:
    """Say: who is warned of is told about, and who is nudged is signalled, once, and nobody is for anything else."""
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
    """Say: whoever is found silent for long enough takes a step, up to the last, by which he is given up."""
    if step.before is None or not isinstance(step.event, Silent):
        return True
    last = len(step.after.record.limits.steps_ms)
    taken: int = step.after.record.steps_taken
    return taken == step.before.record.steps_taken + 1 and (taken == last) == (step.after.state is State.STALLED)


def nudges_if_it_is_to(step: Transition) -> bool:
    """Say: who comes to be nudged is of a fleet that wants that, and of such a fleet nobody is given up before."""
    wants: bool = step.after.record.limits.nudge_ms is not None
    was = step.before.state if step.before is not None else None
    given_up = step.entered is State.STALLED
    return wants if step.entered is State.NUDGED else not given_up or was in (AFTER_NUDGE if wants else {State.WARNED})


AFTER_NUDGE: Final = frozenset({State.NUDGED, State.ANSWERED})


def answers_are_no_progress(step: Transition) -> bool:
    """Say: what is nudged comes to the foot of the ladder by a sign that is long enough after its answer only."""
    if step.before is None or step.before.state not in AFTER_NUDGE or not isinstance(step.event, Stirred):
        return True
    if step.before.state is State.NUDGED:
        return step.after.state is State.ANSWERED
    return step.after.state is State.FRESH and step.event.moved_ms >= step.after.record.limits.answer_ms


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("no step is taken before its silence", is_silent_for_its_step),
    always_step("the steps are taken in their order, each once in a silence", climbs_step_by_step),
    always_step("a silence leads one step up, and the last step ends it", silence_leads_up),
    always_step("each step has its effect, once", each_step_has_its_effect),
    always_step("whoever is to be nudged is, before he is given up", nudges_if_it_is_to),
    always_step("an answer to a nudge is no progress", answers_are_no_progress),
    leads_where(
        "whoever moves, and whoever begins, is at the foot of the ladder; who is gone is not watched",
        {
            Stirred: (State.FRESH, State.ANSWERED),
            SessionRuns: (State.FRESH,),
            SessionOver: (State.UNWATCHED,),
        },
    ),
    accepts(
        "a sign of progress is heard on every step, and so are a beginning and an end",
        {
            (State.WARNED, State.NUDGED, State.ANSWERED): (Stirred,),
            (State.UNWATCHED, State.STALLED): (SessionRuns,),
            WATCHED: (SessionOver,),
        },
    ),
    goes_on("WatchOutput", *WATCHED),
    asks_once(),
    *exits_on(State.FRESH, Silent),
    leads_to(
        "whoever stays silent is given up at last",
        lambda e: e.state in ON_LADDER,
        lambda e: e.state not in ON_LADDER,
        given=weakly(Silent),
    ),
)

machine: Machine[Any] = Machine(
    REF,
    StallDetector(),
    about="whether a session moves, and what is done about one that does not: warn, nudge, end",
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


def keep_watch(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """A session is watched as long as it runs, if the fleet wants that."""
    if REF not in worker.entities:
        return
    runs = worker.record("session").state is session.State.RUNNING
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


def told_with(worker: Aggregate, by: Event, reason: str) -> str:
    """Return why a session has failed, with its silence, if it was asked by a signal to leave what it hung in.

    Also one that has stalled was asked before, where the ladder has that step.
    """
    p: StallDetector | None = worker.record(REF) if REF in worker.entities else None
    if not reason or p is None or p.limits.nudge_ms is None:
        return reason
    if p.state not in AFTER_NUDGE and not isinstance(by, Stalled):
        return reason
    return f"{reason} (interrupted after {p.limits.nudge_ms // 1_000} s of silence)"


def judged_with(worker: Aggregate, found: Diagnosis) -> Diagnosis:
    """Return why a session has ended: one that ends by the SIGINT of a nudge was silent for too long (E39)."""
    p: StallDetector | None = worker.record(REF) if REF in worker.entities else None
    nudged = p is not None and p.state in AFTER_NUDGE
    return TIMED_OUT if nudged and found.abort_reason is AbortReason.USER_INTERRUPT else found


def watches_who_runs(worker: Aggregate) -> bool:
    """A session is watched exactly while it runs: so no step is taken of one that has ended."""
    if REF not in worker.entities:
        return True
    runs = worker.record("session").state is session.State.RUNNING
    return runs == (worker.record(REF).state in WATCHED)
