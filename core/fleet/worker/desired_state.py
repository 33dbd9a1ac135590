"""The desired state of a worker: run, pause, hold, drain or stop. Beliefs and evidence are kept elsewhere.

- *Pause*: an operator interrupts the session, which is no error. The worker begins nothing, and continues where it was
  when an operator resumes it.
- *Hold*: the same for a runner that goes away for a while. The next runner releases held workers, and no paused one.
- *Stop*: for good. No restart of an agent or a runner brings a stopped worker back.
- *Drain*: the worker finishes and merges its current task, begins nothing new, and then stops. A drain is never
  withdrawn and survives a hold; a stop overrides it.
- *Kill*: a stop without grace, also for a session that is already being stopped with grace.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always,
    always_step,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import asks_once, exits_on, leads_where
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import ForceStopSession


class State(AnyLifecycleState):
    """The five desired states."""

    RUN = "Run"
    PAUSE = "Pause"
    HOLD = "Hold"
    DRAIN = "Drain"
    STOP = "Stop"


class PauseWanted(Event, frozen=True):
    """Interrupt the session, and begin nothing until an operator resumes the worker."""

    abort_reason: ClassVar = AbortReason.USER_INTERRUPT
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class ResumeWanted(Event, frozen=True):
    """Continue after a pause."""


class HoldWanted(Event, frozen=True, repr_omit_defaults=True):
    """Interrupt the session, and begin nothing: the runner goes away for a while, for ``abort_reason``."""

    abort_reason: AbortReason = AbortReason.SHUTDOWN_SIGNAL


class RunWanted(Event, frozen=True):
    """Continue after a hold."""


class StopWanted(Event, frozen=True):
    """Stop for good. Without an ``abort_reason`` the worker stops because no work is left."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    abort_reason: AbortReason | None = AbortReason.USER_INTERRUPT


class DrainWanted(Event, frozen=True):
    """Finish the current task, begin nothing new, and then stop."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Drained(Event, frozen=True):
    """A draining worker has finished its task."""


class KillWanted(Event, frozen=True):
    """Stop for good, without any grace."""

    abort_reason: ClassVar = AbortReason.USER_INTERRUPT
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class DesiredState(Record, frozen=True):
    """The desired state and its reason. A held worker keeps ``drains``; ``at_once``: it stops without grace."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.RUN
    reason: str = ""
    drains: bool = False
    at_once: bool = False


def forget(i: DesiredState, _e: ResumeWanted) -> Step[DesiredState, Never]:
    """Clear the reason of the pause."""
    return Step(replace(i, reason=""))


def explain(i: DesiredState, e: StopWanted | PauseWanted) -> Step[DesiredState, Never]:
    """Record the reason."""
    return Step(replace(i, reason=e.reason, drains=False))


def drain(i: DesiredState, e: DrainWanted) -> Step[DesiredState, Never]:
    """Record the reason and the drain."""
    return Step(replace(i, reason=e.reason, drains=True))


def finish(i: DesiredState, _e: Drained) -> Step[DesiredState, Never]:
    """End the drain, and keep its reason."""
    return Step(replace(i, drains=False))


def kill(i: DesiredState, e: KillWanted) -> Step[DesiredState, ForceStopSession]:
    """Record the reason, and kill the session, if there is one."""
    return Step(replace(i, reason=e.reason, drains=False, at_once=True), (ForceStopSession(),))


def drains(i: DesiredState, _e: RunWanted) -> bool:
    """The worker was drained, before its hold or during it."""
    return i.drains


def is_not_drained(i: DesiredState, _e: PauseWanted) -> bool:
    """The worker was not drained."""
    return not i.drains


def may_drain(i: DesiredState, _e: DrainWanted) -> bool:
    """The worker was not drained yet."""
    return not i.drains


def has_grace(i: DesiredState, _e: KillWanted) -> bool:
    """The worker was not killed yet."""
    return not i.at_once


def is_to_end(i: DesiredState) -> bool:
    """Tell whether the worker stops for good, now or after its current task."""
    return i.state is State.STOP or i.drains


def pause_is_for_operators(step: Transition) -> bool:
    """Only a command of an operator ends a pause, and no runner does."""
    paused = step.before is not None and step.before.state is State.PAUSE
    return not paused or isinstance(step.event, ResumeWanted | StopWanted | DrainWanted | KillWanted)


def has_its_reason(step: Transition) -> bool:
    """A pause, a drain or a stop has its reason, and a running worker has none."""
    i: DesiredState = step.after.record
    match step.event:
        case PauseWanted(reason=reason) | StopWanted(reason=reason):
            return i.reason == reason
        case DrainWanted(reason=reason) | KillWanted(reason=reason):
            return i.reason == reason
        case _ if step.before is not None and step.before.record.drains:
            return bool(i.reason == step.before.record.reason)
        case _:
            return not i.reason


def drains_until_it_stops(step: Transition) -> bool:
    """A drain lasts, through every hold, until the worker stops; only a command begins one."""
    was = step.before is not None and step.before.record.drains
    asked = isinstance(step.event, DrainWanted)
    return bool(step.after.record.drains == ((was or asked) and step.after.state is not State.STOP))


def kills_when_asked(step: Transition) -> bool:
    """A session is killed exactly when an operator asks for it, and the kill is recorded."""
    asked, was = isinstance(step.event, KillWanted), step.before is not None and step.before.record.at_once
    killed = any(isinstance(each, ForceStopSession) for each in step.effects)
    return killed is asked and step.after.record.at_once is (asked or was)


def is_consistent(i: DesiredState) -> bool:
    """Only a stopped worker is without grace, and a draining worker has ``drains``."""
    return (i.state is State.STOP or not i.at_once) and (i.state is not State.DRAIN or i.drains)


COMMANDS: Final = (StopWanted, DrainWanted, KillWanted, PauseWanted, ResumeWanted, HoldWanted, RunWanted)
"""The commands of operators. ``Drained`` is no command: a rule reports it."""

WORKS: Final = frozenset({State.RUN, State.DRAIN})
"""In these states the worker continues its task."""

RESTS: Final = frozenset({State.PAUSE, State.HOLD})
"""In these states the worker begins nothing, and its session is interrupted."""

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step(
        "a stop is never overridden",
        lambda step: step.was.state is not State.STOP or step.after.state is State.STOP,
        on=Event,
    ),
    leads_where(
        "each command leads to its desired state",
        {
            PauseWanted: (State.PAUSE,),
            ResumeWanted: (State.RUN,),
            HoldWanted: (State.HOLD,),
            RunWanted: (State.RUN, State.DRAIN),
            StopWanted: (State.STOP,),
            KillWanted: (State.STOP,),
            DrainWanted: (State.DRAIN, State.HOLD),
            Drained: (State.STOP,),
        },
    ),
    always_step("a paused worker continues only by an operator's command", pause_is_for_operators),
    always_step("a pause or a stop has its reason", has_its_reason),
    always_step("a draining worker stays draining until it stops", drains_until_it_stops),
    always_step(
        "a drain keeps a held worker held, and no other worker",
        lambda step: (step.after.state is State.HOLD) is (step.was.state is State.HOLD),
        on=DrainWanted,
    ),
    always_step("a session is killed exactly when an operator asks for it", kills_when_asked),
    always_step("a worker is killed at most once", lambda step: not step.was.at_once, on=KillWanted),
    asks_once(),
    always("only a stopped worker is killed, and a draining worker is marked", lambda e: is_consistent(e.record)),
    accepts(
        "a worker that stops with grace can be killed", {State.STOP: (KillWanted,)}, when=lambda e: not e.record.at_once
    ),
    accepts("a held worker can be drained", {State.HOLD: (DrainWanted,)}, when=lambda e: not is_to_end(e.record)),
    accepts("a held worker can be paused", {State.HOLD: (PauseWanted,)}, when=lambda e: not e.record.drains),
    *exits_on(State.RUN, PauseWanted, HoldWanted, DrainWanted, StopWanted, KillWanted),
    *exits_on(State.PAUSE, ResumeWanted, DrainWanted, StopWanted, KillWanted),
    *exits_on(State.HOLD, RunWanted, StopWanted, KillWanted),
    *exits_on(State.DRAIN, HoldWanted, Drained, StopWanted, KillWanted),
)

machine = Machine(
    "desired_state",
    DesiredState(),
    about="the desired state of a worker, as operators ask for it: run, pause, hold, drain, stop",
    rows=(
        row(State.RUN, PauseWanted, State.PAUSE, explain),
        row(State.RUN, HoldWanted, State.HOLD),
        row(State.PAUSE, ResumeWanted, State.RUN, forget),
        row(State.HOLD, PauseWanted, State.PAUSE, explain, when=is_not_drained),
        row(State.HOLD, RunWanted, State.DRAIN, when=drains),
        row(State.HOLD, RunWanted, State.RUN),
        row((State.RUN, State.PAUSE), DrainWanted, State.DRAIN, drain),
        row(State.HOLD, DrainWanted, STAY, drain, when=may_drain),
        row(State.DRAIN, HoldWanted, State.HOLD),
        row(State.DRAIN, Drained, State.STOP, finish),
        row((State.RUN, State.PAUSE, State.HOLD, State.DRAIN), StopWanted, State.STOP, explain),
        row((State.RUN, State.PAUSE, State.HOLD, State.DRAIN), KillWanted, State.STOP, kill),
        row(State.STOP, KillWanted, STAY, kill, when=has_grace),
    ),
    final={State.STOP},
    properties=PROPERTIES,
)
