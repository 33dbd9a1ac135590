"""One run of a service after the other: its command is started, runs, and ends.

It is a session's process without a session's loop: there is no worktree, no prompt that is waited for, no pause and no
count of errors, for all of that is the business of the service's ``process``. A run is written down before it is
launched, so that a runner that comes after a crash finds it, or its end. Whoever is not to go on is *cancelled*: the
activity ends with the state, TERM, grace, KILL, and the next run begins only when that is confirmed (D13).
"""

from typing import Any, ClassVar, Final

from lifefold.core.kernel import (
    Event,
    Machine,
    Pattern,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always_step,
    does,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.property_forms import (
    asks_once,
    ends_confirmed,
    enters,
    exits_on,
    goes_on,
    leads_where,
)
from lifefold.core.lifecycles.session.model import SUCCESS
from lifefold.core.lifecycles.session.rules import describe
from lifefold.effects import LogFatal, RunSession, StorePrompt

REF: Final = "invocation"


class State(AnyLifecycleState):
    """The three states of a run, named as those of a session."""

    IDLE = "Idle"
    SPAWNING = "Spawning"
    RUNNING = "Running"


LIVES: Final = (State.SPAWNING, State.RUNNING)
"""In these there is a run."""


class Invoked(Event, frozen=True):
    """The command is to be run, with this to do."""

    opaque: ClassVar[tuple[str, ...]] = ("prompt",)

    prompt: str = "do it"


class Cancelled(Event, frozen=True):
    """What runs is not to go on."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "it is stopped"


class Invocation(Record, frozen=True):
    """The runs of a service. ``attempt`` counts them, and so does ``session_seq``; ``prompt`` is the last one's.

    Of the limits only the grace and the time-out count: errors are counted by the service's ``process``.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("session_seq", "attempt")
    opaque: ClassVar[tuple[str, ...]] = ("prompt",)

    state: State = State.IDLE
    name: str = ""
    session_seq: int = 0
    attempt: int = 0
    prompt: str = ""
    limits: session.Limits = session.Limits()

    @property
    def patience_ms(self) -> int:
        """How long a run may take to end when it is asked to."""
        return self.limits.grace_ms


def is_expected(i: Invocation, e: session.SessionStarted) -> bool:
    """A start counts for the run that was launched (D17)."""
    return e.seq == i.session_seq


def launch(i: Invocation, e: Invoked) -> Step[Invocation, StorePrompt]:
    """Count the run, and keep what it is told."""
    return Step(
        replace(i, prompt=e.prompt, session_seq=i.session_seq + 1, attempt=i.attempt + 1), (StorePrompt(e.prompt),)
    )


def tell_failure(i: Invocation, e: session.SessionExited) -> Step[Invocation, LogFatal]:
    """Tell people: it is not tried again."""
    return Step(i, (LogFatal(f"run {i.attempt} has failed: {describe(e.outcome)}"),))


def tell_end(i: Invocation, e: Cancelled) -> Step[Invocation, LogFatal]:
    """Tell people that the run was ended, and why."""
    return Step(i, (LogFatal(f"run {i.attempt} is ended: {e.reason}"),))


def run(i: Invocation) -> RunSession:
    """Return what goes on while there is a run."""
    return RunSession(i.prompt, i.session_seq, i.attempt, i.limits.grace_ms, i.limits.session_timeout_ms)


def rests(i: Invocation) -> bool:
    """Nothing need be run."""
    return i.state is State.IDLE


def counts_runs(step: Transition) -> bool:
    """Say: every run has a number of its own and keeps what it is told, and nothing else changes that."""
    if step.before is None:
        return True
    was: Invocation = step.before.record
    now: Invocation = step.after.record
    if not isinstance(step.event, Invoked):
        return now == replace(was, state=now.state)
    stored = [each for each in step.effects if isinstance(each, StorePrompt)] == [StorePrompt(step.event.prompt)]
    counted = (was.attempt + 1, was.session_seq + 1, step.event.prompt)
    return stored and (now.attempt, now.session_seq, now.prompt) == counted


def tells_what_went_wrong(step: Transition) -> bool:
    """Say: people are told of a run that has failed or was ended, and of no other."""
    told = any(isinstance(each, LogFatal) for each in step.effects)
    failed = isinstance(step.event, session.SessionExited) and not isinstance(step.event.outcome, session.Success)
    return told is (failed or isinstance(step.event, Cancelled))


def starts_as_expected(step: Transition) -> bool:
    """Say: a run is shown as running when it has started itself, and not another one."""
    started = enters(step, State.RUNNING)
    return not started or (
        isinstance(step.event, session.SessionStarted) and step.event.seq == step.after.record.session_seq
    )


ANY_FAILURE: Final = Pattern(session.SessionExited, "no Success", lambda e: not isinstance(e.outcome, session.Success))

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("every run has its number, and what it is told", counts_runs),
    always_step("people are told of a run that has failed or was ended", tells_what_went_wrong),
    always_step("a run is shown as running when it is the one that has started", starts_as_expected),
    accepts("a run ends whenever it ends, and can be cancelled", {LIVES: (SUCCESS, ANY_FAILURE, Cancelled)}),
    leads_where(
        "whoever is invoked is launched, whoever has started runs, and whatever ends it leaves nothing",
        {
            Invoked: (State.SPAWNING,),
            session.SessionStarted: (State.RUNNING,),
            session.SessionExited: (State.IDLE,),
            Cancelled: (State.IDLE,),
        },
    ),
    asks_once(),
    *ends_confirmed(RunSession),
    goes_on("RunSession", *LIVES),
    *exits_on(State.IDLE, Invoked),
)

machine: Machine[Any] = Machine(
    REF,
    Invocation(),
    about="one run of a service after the other: idle, spawning, running",
    rows=(
        row(State.IDLE, Invoked, State.SPAWNING, launch),
        row(State.SPAWNING, session.SessionStarted, State.RUNNING, when=is_expected),
        row(LIVES, SUCCESS, State.IDLE),
        row(LIVES, ANY_FAILURE, State.IDLE, tell_failure),
        row(LIVES, Cancelled, State.IDLE, tell_end),
    ),
    during={LIVES: does(run, yields=session.SessionStarted, last=session.SessionExited)},
    properties=PROPERTIES,
    rests=rests,
)
