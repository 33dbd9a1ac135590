"""The table of an agent's coarse status as the document writes it, and the profile in which a stop may wait."""

from typing import Final

from lifefold.core.kernel import STAY, Event, Machine, Row, row
from lifefold.core.lifecycles.status.model import (
    FatalError,
    PiiDetected,
    Spawn,
    State,
    Status,
    Stop,
    TaskBegan,
    TaskEnded,
)
from lifefold.core.lifecycles.status.properties import (
    DRAINING_PROPERTIES,
    PROPERTIES,
    drains_for_something,
    failure_is_explained,
    works_only_while_running,
)
from lifefold.core.lifecycles.status.rules import (
    begin_draining,
    begin_task,
    count_pii,
    drains,
    end_task,
    fail,
    finish_draining,
    has_task,
    ignore,
    may_stop,
    record_late,
    restart,
    stop,
    takes_tasks,
    was_last_of_draining,
)

EVENTS: Final[tuple[type[Event], ...]] = (Spawn, Stop, FatalError, TaskBegan, TaskEnded, PiiDetected)

ROWS: tuple[Row[Status], ...] = (
    row(State.RUNNING, Stop, State.STOPPED, stop, when=may_stop),
    row(State.RUNNING, FatalError, State.FAILED, fail),
    row(State.STOPPED, Spawn, State.RUNNING, restart),
    *(row(State.FAILED, event, State.FAILED, ignore) for event in EVENTS),
    row(State.RUNNING, TaskBegan, STAY, begin_task, when=takes_tasks),
    row(State.RUNNING, TaskEnded, STAY, end_task, when=has_task),
    row(State.RUNNING, PiiDetected, STAY, count_pii),
    row(State.STOPPED, Stop, STAY, ignore),
    row(State.STOPPED, FatalError, STAY, record_late),
    row(State.STOPPED, TaskEnded, STAY, ignore),
    row(State.STOPPED, PiiDetected, STAY, count_pii),
)

machine = Machine(
    "status",
    Status(),
    about="an agent for operators and budgets: running, stopped, failed",
    rows=ROWS,
    final={State.FAILED},
    invariants=(works_only_while_running, drains_for_something, failure_is_explained),
    properties=PROPERTIES,
)

draining = machine.with_rows(
    row(State.RUNNING, TaskEnded, State.STOPPED, finish_draining, when=was_last_of_draining),
    row(State.RUNNING, Stop, STAY, begin_draining, when=drains),
    name="status-draining",
).with_properties(*DRAINING_PROPERTIES)
"""The profile in which a stop may wait for the active tasks: the agent stops with the last of them (B2)."""
