"""What was asked of a worker: to run, to pause, to hold, to drain, to stop. Belief and evidence stand elsewhere.

Pausing is what people ask for: sessions are interrupted, which is no error, nothing new is begun, and the worker goes
on where it was when people say so, and not before. Holding is the same for a runner that goes away for a while: the
next one lets go on who was held, and nobody who was paused. Stopping is for good: no restart of anything brings a
stopped worker back.

Draining is the stop that waits: what the worker has in hand is finished and brought home, nothing new is begun, and
then it stops. A drain is not taken back, and survives being held; a stop overrides it. Killing is the stop that does
not: a session has no grace, also one that is being stopped with grace already.
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
    """The five intents."""

    RUN = "Run"
    PAUSE = "Pause"
    HOLD = "Hold"
    DRAIN = "Drain"
    STOP = "Stop"


class PauseWanted(Event, frozen=True):
    """Start nothing new and interrupt what runs, until people say otherwise."""

    abort_reason: ClassVar = AbortReason.USER_INTERRUPT
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class ResumeWanted(Event, frozen=True):
    """Go on, whoever was paused."""


class HoldWanted(Event, frozen=True, repr_omit_defaults=True):
    """Start nothing new and interrupt what runs: the runner goes away for a while, for this reason."""

    abort_reason: AbortReason = AbortReason.SHUTDOWN_SIGNAL


class RunWanted(Event, frozen=True):
    """Go on."""


class StopWanted(Event, frozen=True):
    """Stop for good. Without an ``abort_reason`` the worker is through: no work is left."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    abort_reason: AbortReason | None = AbortReason.USER_INTERRUPT


class DrainWanted(Event, frozen=True):
    """Finish what is in hand, begin nothing new, and stop then."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Drained(Event, frozen=True):
    """Nothing is in hand any more of who is to drain."""


class KillWanted(Event, frozen=True):
    """Stop for good, without any grace."""

    abort_reason: ClassVar = AbortReason.USER_INTERRUPT
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class DesiredState(Record, frozen=True):
    """What was asked for, and why. ``drains`` stays while a worker that drains is held; ``at_once``: without grace."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.RUN
    reason: str = ""
    drains: bool = False
    at_once: bool = False


def forget(i: DesiredState, _e: ResumeWanted) -> Step[DesiredState, Never]:
    """Forget the reason of the pause."""
    return Step(replace(i, reason=""))


def explain(i: DesiredState, e: StopWanted | PauseWanted) -> Step[DesiredState, Never]:
    """Keep the reason."""
    return Step(replace(i, reason=e.reason, drains=False))


def drain(i: DesiredState, e: DrainWanted) -> Step[DesiredState, Never]:
    """Keep the reason, and that it is to drain."""
    return Step(replace(i, reason=e.reason, drains=True))


def finish(i: DesiredState, _e: Drained) -> Step[DesiredState, Never]:
    """It has drained; the reason is the one that it was told."""
    return Step(replace(i, drains=False))


def kill(i: DesiredState, e: KillWanted) -> Step[DesiredState, ForceStopSession]:
    """Keep the reason, and have the session killed, if there is one."""
    return Step(replace(i, reason=e.reason, drains=False, at_once=True), (ForceStopSession(),))


def drains(i: DesiredState, _e: RunWanted) -> bool:
    """It was told to drain before it was held, or while."""
    return i.drains


def goes_on(i: DesiredState, _e: PauseWanted) -> bool:
    """It was not told to drain."""
    return not i.drains


def may_drain(i: DesiredState, _e: DrainWanted) -> bool:
    """It was not told to drain yet."""
    return not i.drains


def has_grace(i: DesiredState, _e: KillWanted) -> bool:
    """It was not told to stop without grace."""
    return not i.at_once


def is_to_end(i: DesiredState) -> bool:
    """Tell whether the worker is to stop, at once or when it has finished what it has in hand."""
    return i.state is State.STOP or i.drains


def pause_is_for_people(step: Transition) -> bool:
    """Who was paused by people is let go on by people, and by no runner."""
    paused = step.before is not None and step.before.state is State.PAUSE
    return not paused or isinstance(step.event, ResumeWanted | StopWanted | DrainWanted | KillWanted)


def says_why(step: Transition) -> bool:
    """Whoever is to pause or to stop is told why; whoever is to run is told nothing."""
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
    """Who is to drain stops in the end, however often it is held meanwhile; nobody else does by itself."""
    was = step.before is not None and step.before.record.drains
    asked = isinstance(step.event, DrainWanted)
    return bool(step.after.record.drains == ((was or asked) and step.after.state is not State.STOP))


def kills_when_asked(step: Transition) -> bool:
    """A session is killed if somebody asks for it, and then that is remembered."""
    asked, was = isinstance(step.event, KillWanted), step.before is not None and step.before.record.at_once
    killed = any(isinstance(each, ForceStopSession) for each in step.effects)
    return killed is asked and step.after.record.at_once is (asked or was)


def drains_where_it_is(step: Transition) -> bool:
    """Who is held and told to drain is held on; everybody else drains at once."""
    if step.before is None or not isinstance(step.event, DrainWanted):
        return True
    return (step.after.state is State.HOLD) is (step.before.state is State.HOLD)


def is_killed_once(step: Transition) -> bool:
    """Who was told to stop at once is told so once."""
    return step.before is None or not isinstance(step.event, KillWanted) or not step.before.record.at_once


def stop_is_final(step: Transition) -> bool:
    """Nobody takes back that a worker is to stop."""
    return step.before is None or step.before.state is not State.STOP or step.after.state is State.STOP


def tells_apart(i: DesiredState) -> bool:
    """Only who is to stop may be without grace, and who drains says so."""
    return (i.state is State.STOP or not i.at_once) and (i.state is not State.DRAIN or i.drains)


COMMANDS: Final = (StopWanted, DrainWanted, KillWanted, PauseWanted, ResumeWanted, HoldWanted, RunWanted)
"""What people may say; that nothing is left to do (``Drained``) is for rules to say."""

WORKS: Final = frozenset({State.RUN, State.DRAIN})
"""In these what is in hand is gone on with."""

RESTS: Final = frozenset({State.PAUSE, State.HOLD})
"""In these nothing new is begun, and what runs is interrupted."""

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a wish to stop is never overridden", stop_is_final),
    leads_where(
        "what was wished for last is what is wanted",
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
    always_step("who is paused goes on when people say so, and not before", pause_is_for_people),
    always_step("whoever is to pause or to stop knows why", says_why),
    always_step("whoever is to drain stops in the end", drains_until_it_stops),
    always_step("who is held and told to drain is held on, and nobody else is", drains_where_it_is),
    always_step("a session is killed if somebody asks for it", kills_when_asked),
    always_step("who was told to stop at once is told so once", is_killed_once),
    asks_once(),
    always("who drains or is killed is told apart from who runs", lambda e: tells_apart(e.record)),
    accepts(
        "who stops with grace can be killed all the same",
        {State.STOP: (KillWanted,)},
        when=lambda e: not e.record.at_once,
    ),
    accepts(
        "whoever has not stopped can be told to drain",
        {State.HOLD: (DrainWanted,)},
        when=lambda e: not is_to_end(e.record),
    ),
    accepts("who is held can be paused", {State.HOLD: (PauseWanted,)}, when=lambda e: not e.record.drains),
    *exits_on(State.RUN, PauseWanted, HoldWanted, DrainWanted, StopWanted, KillWanted),
    *exits_on(State.PAUSE, ResumeWanted, DrainWanted, StopWanted, KillWanted),
    *exits_on(State.HOLD, RunWanted, StopWanted, KillWanted),
    *exits_on(State.DRAIN, HoldWanted, Drained, StopWanted, KillWanted),
)

machine = Machine(
    "desired_state",
    DesiredState(),
    about="what was asked of a worker: run, pause, hold, drain, stop",
    rows=(
        row(State.RUN, PauseWanted, State.PAUSE, explain),
        row(State.RUN, HoldWanted, State.HOLD),
        row(State.PAUSE, ResumeWanted, State.RUN, forget),
        row(State.HOLD, PauseWanted, State.PAUSE, explain, when=goes_on),
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
