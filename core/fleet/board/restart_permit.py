"""A permit for one restart: free, held by a worker that is about to use it, or spent until its window is over.

The board has as many of them as there may be restarts within a window: some for every worker, and some for all
together. A restart takes one of each. So how often is a matter of how many permits there are, and of each that it comes
back by time alone: one that was used is free again a whole window after the worker has said that it has used it, and
the worker has used it before it says so. Between being given and being used it is nobody else's, however long messages
take.
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
    """A worker may use it."""

    worker: str = "ann"


class Used(Event, frozen=True):
    """The worker was restarted."""


class Returned(Event, frozen=True):
    """The worker will not use it."""


class Renewed(Event, frozen=True):
    """The window since it was used is over."""


class RestartPermit(Record, frozen=True):
    """A permit, who holds it, how many milliseconds it takes to come back once it is used, and how often it was."""

    opaque: ClassVar[tuple[str, ...]] = ("window_ms",)

    state: State = State.FREE
    worker: str = ""
    window_ms: int = 3_600_000
    used: int = 0


def hold(p: RestartPermit, e: Reserved) -> Step[RestartPermit, Never]:
    """Remember who holds it."""
    return Step(replace(p, worker=e.worker))


def use(p: RestartPermit, _e: Used) -> Step[RestartPermit, Never]:
    """Count the use, and forget who has held it."""
    return Step(replace(p, worker="", used=p.used + 1))


def let_go(p: RestartPermit, _e: Returned) -> Step[RestartPermit, Never]:
    """Forget who has held it."""
    return Step(replace(p, worker=""))


def window(p: RestartPermit) -> int:
    """Return how long it stays spent, in milliseconds."""
    return p.window_ms


def comes_back_by_time(step: Transition) -> bool:
    """What was used is free again when its window is over, and by nothing else."""
    spent = step.before is not None and step.before.state is State.SPENT
    return not spent or isinstance(step.event, Renewed)


def is_held_by_whom_it_was_given(step: Transition) -> bool:
    """A permit has the name of whoever holds it, as long as that is so."""
    return bool(step.after.record.worker == (step.event.worker if isinstance(step.event, Reserved) else ""))


def counts_its_uses(step: Transition) -> bool:
    """Every use is counted, once, and nothing else is."""
    before: int = step.before.record.used if step.before else 0
    return bool(step.after.record.used == before + isinstance(step.event, Used))


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a permit that was used comes back by time alone", comes_back_by_time),
    always_step("a permit is held by whom it was given to", is_held_by_whom_it_was_given),
    always_step("every use of a permit is counted", counts_its_uses),
    always("a permit is held by somebody", lambda e: (e.state is State.HELD) is bool(e.record.worker)),
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
