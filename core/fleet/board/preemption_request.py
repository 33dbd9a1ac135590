"""Whether a worker was asked to make room: it lets its task go for another one that comes first.

The board has one of these for every worker if its fleet preempts, and none otherwise. A worker that is asked loses its
task at once, and it takes a while until it is free: its session has to end. As long as that lasts it is known here for
whom the room is, so that nobody else need be asked for the same. If that one does not need it any more, the room goes
to the next that waits. It is used when the worker has been given something to work at, or is gone.
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
    """The two states of a room."""

    FREE = "Free"
    ASKED = "RequestedEffect"


class PreemptionRequested(Event, frozen=True):
    """The worker is to let the task ``of`` go, for ``task``."""

    task: str = "T2"
    of: str = "T1"


class RequestPassedOn(Event, frozen=True):
    """The one that it was for needs it no more: it is for ``task`` now."""

    task: str = "T3"


class RequestUsed(Event, frozen=True):
    """The worker has been given something to work at, or is gone."""


class PreemptionRequest(Record, frozen=True):
    """For which ``task`` a worker makes room, and the one ``of`` its that it had to let go for that.

    ``within_ms`` is how long its session may take to end, in milliseconds; with 0 it has its agent's grace.
    """

    opaque: ClassVar[tuple[str, ...]] = ("within_ms",)

    state: State = State.FREE
    task: str = ""
    of: str = ""
    within_ms: int = 0


def ask(r: PreemptionRequest, e: PreemptionRequested) -> Step[PreemptionRequest, Never]:
    """Remember for which task, and of which."""
    return Step(replace(r, task=e.task, of=e.of))


def pass_on(r: PreemptionRequest, e: RequestPassedOn) -> Step[PreemptionRequest, Never]:
    """Remember for which task it is now."""
    return Step(replace(r, task=e.task))


def forget(r: PreemptionRequest, _e: RequestUsed) -> Step[PreemptionRequest, Never]:
    """Forget both."""
    return Step(replace(r, task="", of=""))


def knows_for_whom(step: Transition) -> bool:
    """A room has the names that it was asked with, until it is passed on or used."""
    r: PreemptionRequest = step.after.record
    match step.event:
        case PreemptionRequested(task=task, of=of):
            return (r.task, r.of) == (task, of)
        case RequestPassedOn(task=task):
            return step.before is not None and (r.task, r.of) == (task, step.before.record.of)
        case _:
            return (r.task, r.of) == ("", "")


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("it is known for which task room is made, and which one had to go", knows_for_whom),
    always("room is made for a task, or not at all", lambda e: (e.state is State.ASKED) is bool(e.record.task)),
    leads_where(
        "who is asked makes room until that is used",
        {PreemptionRequested: (State.ASKED,), RequestPassedOn: (State.ASKED,), RequestUsed: (State.FREE,)},
    ),
    *exits_on(State.FREE, PreemptionRequested),
    accepts("room that nobody needs can be passed on", {State.ASKED: (RequestPassedOn,)}),
    *exits_on(State.ASKED, RequestUsed),
)

machine = Machine(
    "preemption_request",
    PreemptionRequest(),
    about="whether a worker was asked to make room, by letting its task go, and for which",
    rows=(
        row(State.FREE, PreemptionRequested, State.ASKED, ask),
        row(State.ASKED, RequestPassedOn, STAY, pass_on),
        row(State.ASKED, RequestUsed, State.FREE, forget),
    ),
    properties=PROPERTIES,
    rests=anywhere,
)
