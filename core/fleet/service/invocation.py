"""The runs of a service, one after the other: its command is started, runs and ends.

An invocation is the process of a session without its loop. It has no worktree, no wait for a prompt, no pause and no
count of errors: the service's ``process`` has these. A run is in the log before its launch, so that a runner finds the
run or its end after a crash. A run that must not continue is *cancelled*: leaving its state ends the process with TERM,
grace and KILL. The next run begins only when that end is confirmed (D13).
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
from lifefold.core.lifecycles.property_forms import asks_once, ends_confirmed, enters, exits_on, goes_on, leads_where
from lifefold.core.lifecycles.session import describe
from lifefold.core.lifecycles.session_model import SUCCESS
from lifefold.effects import LogFatal, RunSession, StorePrompt

REF: Final = "invocation"


class State(AnyLifecycleState):
    """The three states of a run, named as those of a session."""

    IDLE = "Idle"
    SPAWNING = "Spawning"
    RUNNING = "Running"


LIVES: Final = (State.SPAWNING, State.RUNNING)
"""In these states there is a run."""


class Invoked(Event, frozen=True):
    """The command is to be run with this prompt."""

    opaque: ClassVar[tuple[str, ...]] = ("prompt",)

    prompt: str = "do it"


class Cancelled(Event, frozen=True):
    """The current run must end."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "it is stopped"


class Invocation(Record, frozen=True):
    """The runs of a service. ``attempt`` and ``session_seq`` both count them; ``prompt`` is that of the last run.

    Only the grace and the time-out of ``limits`` are used: the service's ``process`` counts errors.
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
    def present_grace_ms(self) -> int:
        """The grace of a run: how long its end may take after a request, in milliseconds."""
        return self.limits.grace_ms


def is_expected(i: Invocation, e: session.SessionStarted) -> bool:
    """The start is of the launched run (D17)."""
    return e.seq == i.session_seq


def launch(i: Invocation, e: Invoked) -> Step[Invocation, StorePrompt]:
    """Count the run, and store its prompt."""
    return Step(
        replace(i, prompt=e.prompt, session_seq=i.session_seq + 1, attempt=i.attempt + 1), (StorePrompt(e.prompt),)
    )


def report_failure(i: Invocation, e: session.SessionExited) -> Step[Invocation, LogFatal]:
    """Tell the operator of the failure: the run is not retried."""
    return Step(i, (LogFatal(f"run {i.attempt} has failed: {describe(e.outcome)}"),))


def report_end(i: Invocation, e: Cancelled) -> Step[Invocation, LogFatal]:
    """Tell the operator that the run was ended, with the reason."""
    return Step(i, (LogFatal(f"run {i.attempt} is ended: {e.reason}"),))


def run(i: Invocation) -> RunSession:
    """Return the activity of a run."""
    return RunSession(i.prompt, i.session_seq, i.attempt, i.limits.grace_ms, i.limits.session_timeout_ms)


def rests(i: Invocation) -> bool:
    """There is no run."""
    return i.state is State.IDLE


def counts_runs(step: Transition) -> bool:
    """Every run gets the next number and stores its prompt, and nothing else changes either."""
    was: Invocation = step.was
    now: Invocation = step.after.record
    if not isinstance(step.event, Invoked):
        return now == replace(was, state=now.state)
    stored = [each for each in step.effects if isinstance(each, StorePrompt)] == [StorePrompt(step.event.prompt)]
    counted = (was.attempt + 1, was.session_seq + 1, step.event.prompt)
    return stored and (now.attempt, now.session_seq, now.prompt) == counted


def reports_failed_runs(step: Transition) -> bool:
    """The operator is told exactly of failed and cancelled runs."""
    reported = any(isinstance(each, LogFatal) for each in step.effects)
    failed = isinstance(step.event, session.SessionExited) and not isinstance(step.event.outcome, session.Success)
    return reported is (failed or isinstance(step.event, Cancelled))


def starts_as_expected(step: Transition) -> bool:
    """A run is RUNNING only after its own start."""
    started = enters(step, State.RUNNING)
    return not started or (
        isinstance(step.event, session.SessionStarted) and step.event.seq == step.after.record.session_seq
    )


ANY_FAILURE: Final = Pattern(session.SessionExited, "no Success", lambda e: not isinstance(e.outcome, session.Success))

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("every run has its number and its prompt", counts_runs, on=Event),
    always_step("the operator is told of each failed or cancelled run", reports_failed_runs),
    always_step("a run is RUNNING only after its own start", starts_as_expected),
    accepts("a live run can end and can be cancelled", {LIVES: (SUCCESS, ANY_FAILURE, Cancelled)}),
    leads_where(
        "an invocation spawns, runs and returns to idle",
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
    about="the runs of a service, one after the other: idle, spawning, running",
    rows=(
        row(State.IDLE, Invoked, State.SPAWNING, launch),
        row(State.SPAWNING, session.SessionStarted, State.RUNNING, when=is_expected),
        row(LIVES, SUCCESS, State.IDLE),
        row(LIVES, ANY_FAILURE, State.IDLE, report_failure),
        row(LIVES, Cancelled, State.IDLE, report_end),
    ),
    during={LIVES: does(run, yields=session.SessionStarted, last=session.SessionExited, outlives=True)},
    properties=PROPERTIES,
    rests=rests,
)
