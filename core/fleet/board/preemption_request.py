"""A preemption request: the board asks one worker to give its task back for a task of higher priority.

The board has one request for each worker if its fleet preempts, and none otherwise. The worker loses its task at once,
but is free only when its session has ended. Until then the request names the task it is for, so that the board asks no
second worker for the same task. If that task no longer needs the worker, the request passes to the next waiting task.
The request is used when the worker gets a task, or is gone.
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
    anywhere,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on, leads_where


class State(AnyLifecycleState):
    """The two states of a preemption request: none, or pending."""

    FREE = "Free"
    ASKED = "Asked"


class PreemptionRequested(Event, frozen=True):
    """The worker is to give the task ``of`` back, for ``task``."""

    task: str = "T2"
    of: str = "T1"


class RequestPassedOn(Event, frozen=True):
    """The first task no longer needs the worker: the request is for ``task`` now."""

    task: str = "T3"


class RequestUsed(Event, frozen=True):
    """The worker was given a task, or is gone."""


class PreemptionRequest(Record, frozen=True):
    """The request to one worker: it is for ``task``, and preempts the worker's task ``of``.

    ``within_ms`` is how long the session may take to end, in milliseconds; 0 is the grace of its agent.
    """

    opaque: ClassVar[tuple[str, ...]] = ("within_ms",)

    state: State = State.FREE
    task: str = ""
    of: str = ""
    within_ms: int = 0


def ask(r: PreemptionRequest, e: PreemptionRequested) -> Step[PreemptionRequest, Never]:
    """Record both tasks."""
    return Step(replace(r, task=e.task, of=e.of))


def pass_on(r: PreemptionRequest, e: RequestPassedOn) -> Step[PreemptionRequest, Never]:
    """Record the task that the request is for now."""
    return Step(replace(r, task=e.task))


def forget(r: PreemptionRequest, _e: RequestUsed) -> Step[PreemptionRequest, Never]:
    """Clear both tasks."""
    return Step(replace(r, task="", of=""))


def knows_both_tasks(step: Transition) -> bool:
    """A request keeps the tasks that it was made with, until it is passed on or used."""
    r: PreemptionRequest = step.after.record
    match step.event:
        case PreemptionRequested(task=task, of=of):
            return (r.task, r.of) == (task, of)
        case RequestPassedOn(task=task):
            return step.before is not None and (r.task, r.of) == (task, step.before.record.of)
        case _:
            return (r.task, r.of) == ("", "")


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a preemption request knows the task it is for and the task it preempts", knows_both_tasks),
    always(
        "a preemption request has a task exactly while it is pending",
        lambda e: (e.state is State.ASKED) is bool(e.record.task),
    ),
    leads_where(
        "a preemption request is pending until it is used",
        {PreemptionRequested: (State.ASKED,), RequestPassedOn: (State.ASKED,), RequestUsed: (State.FREE,)},
    ),
    *exits_on(State.FREE, PreemptionRequested),
    accepts("a pending preemption request can be passed on", {State.ASKED: (RequestPassedOn,)}),
    *exits_on(State.ASKED, RequestUsed),
)

machine = Machine(
    "preemption_request",
    PreemptionRequest(),
    about="whether the board asked a worker to give its task back, and for which task",
    rows=(
        row(State.FREE, PreemptionRequested, State.ASKED, ask),
        row(State.ASKED, RequestPassedOn, STAY, pass_on),
        row(State.ASKED, RequestUsed, State.FREE, forget),
    ),
    properties=PROPERTIES,
    rests=anywhere,
)
