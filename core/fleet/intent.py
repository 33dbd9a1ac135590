"""What was asked of a worker: to run, to hold, to stop. Belief and evidence stand elsewhere.

Holding is for a runner that goes away for a while: sessions are interrupted, which is no error, and the worker goes on
where it was when it is resumed. Stopping is for good: no restart of anything brings a stopped worker back.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import Event, Machine, Property, Record, Step, Transition, always_step, replace, row
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.promises import is_over_with, leads_where


class State(AnyLifecycleState):
    """The three intents."""

    RUN = "Run"
    HOLD = "Hold"
    STOP = "Stop"


class HoldWanted(Event, frozen=True):
    """Start nothing new and interrupt what runs."""


class RunWanted(Event, frozen=True):
    """Go on."""


class StopWanted(Event, frozen=True):
    """Stop for good."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Intent(Record, frozen=True):
    """What was asked for, and why."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.RUN
    reason: str = ""


def explain(i: Intent, e: StopWanted) -> Step[Intent, Never]:
    """Keep the reason."""
    return Step(replace(i, reason=e.reason))


def stop_is_final(step: Transition) -> bool:
    """Nobody takes back that a worker is to stop."""
    return step.before is None or step.before.state is not State.STOP


PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("a wish to stop is never overridden", stop_is_final),
    leads_where(
        "what was wished for last is what is wanted",
        {HoldWanted: (State.HOLD,), RunWanted: (State.RUN,), StopWanted: (State.STOP,)},
    ),
    *is_over_with(State.RUN, HoldWanted, StopWanted),
    *is_over_with(State.HOLD, RunWanted, StopWanted),
)

machine = Machine(
    "intent",
    Intent(),
    about="what was asked of a worker: run, hold, stop",
    rows=(
        row(State.RUN, HoldWanted, State.HOLD),
        row(State.HOLD, RunWanted, State.RUN),
        row((State.RUN, State.HOLD), StopWanted, State.STOP, explain),
    ),
    final={State.STOP},
    properties=PROMISES,
)
