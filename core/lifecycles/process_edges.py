"""The edges of a process as the document draws them, and the events that lead along them."""

from collections.abc import Mapping
from typing import Any, Final

from lifefold.core.kernel import Event, Pattern, Transition
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.kernel.row import Source
from lifefold.core.lifecycles.process_model import (
    SERVING,
    BackoffElapsed,
    Crashed,
    Drained,
    DrainElapsed,
    IdleElapsed,
    LifetimeElapsed,
    MoveRequested,
    Orphaned,
    Process,
    QueueEmptied,
    ResumeRequested,
    RunFailed,
    StartFailed,
    StartRequested,
    StartSucceeded,
    State,
    StopRequested,
    SuspendDue,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
)
from lifefold.core.lifecycles.process_restart import Comeback

EDGES: Final[Mapping[AnyLifecycleState, frozenset[State]]] = {
    State.CREATED: frozenset({State.STARTING, State.STOPPED}),
    State.STARTING: frozenset({State.RUNNING, State.FAILED, State.STOPPING}),
    State.RUNNING: frozenset({State.SUSPENDED, State.STOPPING, State.FAILED, State.AWAITING}),
    State.SUSPENDED: frozenset({State.RUNNING, State.STOPPING, State.FAILED}),
    State.AWAITING: frozenset({State.RUNNING, State.STOPPING, State.FAILED}),
    State.STOPPING: frozenset({State.STOPPED, State.FAILED}),
    State.STOPPED: frozenset({State.STARTING}),
    State.FAILED: frozenset({State.STARTING, State.STOPPING}),
}
"""The edges as the document draws them; the stop of a failed process belongs to a profile (C3)."""


def _to(target: State) -> Pattern[MoveRequested]:
    return Pattern(MoveRequested, target.value, lambda e: e.target is target)


MOVES: Final[Mapping[Source, tuple[Pattern[Any], ...]]] = {
    source: tuple(_to(target) for target in sorted(targets) if (source, target) != (State.FAILED, State.STOPPING))
    for source, targets in EDGES.items()
}
"""The moves that can be requested in each state."""


def follows_the_edges(t: Transition) -> bool:
    """A process moves along the edges of the document, and as requested, if its state is the expected one."""
    if t.before is None:
        return True
    if isinstance(t.event, MoveRequested):
        expected = t.event.expected_from in {None, t.before.state}
        return expected and t.entered is t.event.target and t.entered in EDGES[t.before.state]
    return t.entered is None or t.entered in EDGES[t.before.state]


def goes_where_it_is_driven(t: Transition) -> bool:
    """Each event leads to one state, which depends on the present state and the plans of the process."""
    requested = isinstance(t.event, MoveRequested)
    return requested or t.before is None or t.after.state in _targets(t.before.record, t.event)


def stops_a_failed_process(t: Transition) -> bool:
    """A failed process that is asked to stop does so (C3)."""
    failed = t.before is not None and t.before.state is State.FAILED
    return not (failed and isinstance(t.event, StopRequested)) or t.entered is State.STOPPING


def _targets(p: Process, event: Event) -> tuple[State, ...]:
    """Return the possible targets of an event."""
    going = p.suspended_for is None
    match event:
        case StopRequested():
            return _STOPS.get(p.state, (State.STOPPING,))
        case TriggerArrived() if p.state is not State.SUSPENDED or p.suspended_for is SuspendReason.IDLE:
            to = State.RUNNING
        case QueueEmptied() if going and p.state is State.RUNNING:
            to = State.AWAITING
        case RunFailed() if p.state in SERVING and p.consecutive_failures + 1 >= p.limits.max_consecutive_failures:
            to = State.FAILED
        case SuspendRequested():
            to = {State.RUNNING: State.SUSPENDED, State.AWAITING: State.RUNNING}.get(p.state, p.state)
        case SuspendDue() if not going:
            to = State.SUSPENDED
        case ResumeRequested() if p.state is State.SUSPENDED:
            to = State.RUNNING
        case BackoffElapsed() if p.comeback is not Comeback.NONE:
            to = State.STARTING
        case _:
            to = _ALWAYS.get(type(event), p.state)
    return (to,)


_STOPS: Final = {
    State.CREATED: (State.STOPPED,),
    State.STOPPING: (State.STOPPING,),
    State.STOPPED: (State.STOPPED,),
    State.FAILED: (State.FAILED, State.STOPPING),
}
"""The targets of a stop of a process that is not up."""

_ALWAYS: Final[Mapping[type[Event], State]] = {
    StartRequested: State.STARTING,
    StartSucceeded: State.RUNNING,
    StartFailed: State.FAILED,
    IdleElapsed: State.RUNNING,
    LifetimeElapsed: State.STOPPING,
    Crashed: State.FAILED,
    Orphaned: State.FAILED,
    Drained: State.STOPPED,
    DrainElapsed: State.STOPPED,
}
"""The targets of these events from any state; all other events lead nowhere."""
