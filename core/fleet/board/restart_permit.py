"""A permit for one restart: free, held by a worker that is about to use it, or spent until its window is over.

The board has one permit for each restart that a window allows: some for every worker, and some for the whole fleet. A
restart takes one permit of each kind. So the number of permits limits the restarts within a window (OTP's restart
intensity). A used permit becomes free by time alone: one window after the worker has reported its use. The worker uses
it before it reports so. A held permit belongs to one worker, however long messages take.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    after,
    always,
    always_step,
    anywhere,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on, is_transient, keeps_time, leads_where


class State(AnyLifecycleState):
    """The three states of a permit."""

    FREE = "Free"
    HELD = "Held"
    SPENT = "Spent"


class Reserved(Event, frozen=True):
    """The board gives the permit to a worker."""

    worker: str = "ann"


class Used(Event, frozen=True):
    """The worker was restarted."""


class Returned(Event, frozen=True):
    """The worker returns the permit unused."""


class Renewed(Event, frozen=True):
    """The window since the last use is over."""


class RestartPermit(Record, frozen=True):
    """A permit: its holder, how many milliseconds it stays spent after a use, and the number of its uses."""

    opaque: ClassVar[tuple[str, ...]] = ("window_ms",)

    state: State = State.FREE
    worker: str = ""
    window_ms: int = 3_600_000
    used: int = 0


def hold(p: RestartPermit, e: Reserved) -> Step[RestartPermit, Never]:
    """Record the holder."""
    return Step(replace(p, worker=e.worker))


def use(p: RestartPermit, _e: Used) -> Step[RestartPermit, Never]:
    """Count the use, and clear the holder."""
    return Step(replace(p, worker="", used=p.used + 1))


def let_go(p: RestartPermit, _e: Returned) -> Step[RestartPermit, Never]:
    """Clear the holder."""
    return Step(replace(p, worker=""))


def window(p: RestartPermit) -> int:
    """Return how long a permit stays spent, in milliseconds."""
    return p.window_ms


def comes_back_by_time(step: Transition) -> bool:
    """Only the end of its window makes a spent permit free."""
    spent = step.before is not None and step.before.state is State.SPENT
    return not spent or isinstance(step.event, Renewed)


def is_held_by_one_worker(step: Transition) -> bool:
    """A held permit has the name of the worker that it was given to, and no other permit has a name."""
    return bool(step.after.record.worker == (step.event.worker if isinstance(step.event, Reserved) else ""))


def counts_its_uses(step: Transition) -> bool:
    """Every use is counted once, and nothing else is."""
    before: int = step.before.record.used if step.before else 0
    return bool(step.after.record.used == before + isinstance(step.event, Used))


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a used permit becomes free by time alone", comes_back_by_time),
    always_step("a permit is held by the worker it was given to", is_held_by_one_worker),
    always_step("every use of a permit is counted", counts_its_uses),
    always("a held permit names its worker", lambda e: (e.state is State.HELD) is bool(e.record.worker)),
    leads_where(
        "a permit is given, used, and given again",
        {Reserved: (State.HELD,), Used: (State.SPENT,), Returned: (State.FREE,), Renewed: (State.FREE,)},
    ),
    *keeps_time({Renewed: ((State.SPENT,), window)}),
    *exits_on(State.FREE, Reserved),
    *exits_on(State.HELD, Used, Returned),
    is_transient(State.SPENT),
)

machine = Machine(
    "restart_permit",
    RestartPermit(),
    about="a permit for one restart: free, held by a worker, or spent until its window is over",
    rows=(
        row(State.FREE, Reserved, State.HELD, hold),
        row(State.HELD, Used, State.SPENT, use),
        row(State.HELD, Returned, State.FREE, let_go),
        row(State.SPENT, Renewed, State.FREE),
    ),
    during={State.SPENT: after(window, Renewed)},
    properties=PROPERTIES,
    rests=anywhere,
)
