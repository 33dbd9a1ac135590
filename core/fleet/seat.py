"""What the board knows of a worker: whether it wants work, has work, or is gone. One seat per worker, on the board."""

from typing import Never

from lifefold.core.kernel import Event, Machine, Record, Step, replace, row
from lifefold.core.kernel import State as AnyLifecycleState


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

    reason: str = ""


class Seat(Record, frozen=True):
    """A worker, as the board sees it. ``task`` is the one it was given last."""

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
)
