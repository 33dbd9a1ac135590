"""What the board knows of a worker: whether it wants work, has work, or is gone. One seat per worker, on the board."""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import Event, Machine, Property, Record, Step, Transition, always_step, replace, row
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.promises import is_over_with, leads_where


class State(AnyLifecycleState):
    """The four states of a seat."""

    AWAY = "Away"
    WAITING = "Waiting"
    WORKING = "Working"
    GONE = "Gone"


class WorkWanted(Event, frozen=True):
    """The worker has nothing to do."""


class Seated(Event, frozen=True):
    """The worker was given a task."""

    task: str = "T1"


class WorkerGone(Event, frozen=True):
    """The worker has stopped for good."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Seat(Record, frozen=True):
    """A worker, as the board sees it. ``task`` is the one it was given last."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.AWAY
    task: str = ""
    reason: str = ""


def give(s: Seat, e: Seated) -> Step[Seat, Never]:
    """Remember the task."""
    return Step(replace(s, task=e.task))


def empty(s: Seat, _e: WorkWanted) -> Step[Seat, Never]:
    """Forget the task: the worker is done with it."""
    return Step(replace(s, task=""))


def leave(s: Seat, e: WorkerGone) -> Step[Seat, Never]:
    """Remember why."""
    return Step(replace(s, task="", reason=e.reason))


def knows_the_task(step: Transition) -> bool:
    """A seat has the task that was given to its worker as long as the worker is at it, and why the worker has gone."""
    s: Seat = step.after.record
    match step.event:
        case Seated(task=task):
            return s.task == task
        case WorkerGone(reason=reason):
            return (s.task, s.reason) == ("", reason)
        case _:
            return not s.task


PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("the board knows who is at which task, and why somebody has gone", knows_the_task),
    leads_where(
        "whoever wants work waits, whoever has a task works, and whoever goes is gone",
        {WorkWanted: (State.WAITING,), Seated: (State.WORKING,), WorkerGone: (State.GONE,)},
    ),
    *is_over_with(State.AWAY, WorkWanted, WorkerGone),
    *is_over_with(State.WAITING, Seated, WorkerGone),
    *is_over_with(State.WORKING, WorkWanted, WorkerGone),
)

machine = Machine(
    "seat",
    Seat(),
    about="the board's view of a worker: away, waiting for work, working, gone",
    rows=(
        row(State.AWAY, WorkWanted, State.WAITING),
        row(State.WAITING, Seated, State.WORKING, give),
        row(State.WORKING, WorkWanted, State.WAITING, empty),
        row((State.AWAY, State.WAITING, State.WORKING), WorkerGone, State.GONE, leave),
    ),
    final={State.GONE},
    properties=PROMISES,
)
