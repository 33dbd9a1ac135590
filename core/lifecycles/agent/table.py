"""The table of an agent as the document writes it, line by line, and the profile with timers."""

from lifefold.core.kernel import STAY, Machine, after, row
from lifefold.core.lifecycles.agent.model import (
    Agent,
    Died,
    Heartbeat,
    Recycled,
    SpawnFailed,
    SpawnOverdue,
    State,
    TaskAssigned,
    TaskFinished,
    Watched,
)
from lifefold.core.lifecycles.agent.properties import (
    PROPERTIES,
    SUPERVISED_PROPERTIES,
    ends_with_a_reason_only_when_dead,
    is_idle_without_a_task,
)
from lifefold.core.lifecycles.agent.rules import (
    assign,
    die,
    expire,
    hear,
    idle_timeout,
    recycle,
    rest,
    spawn_timeout,
    watch,
)

machine = Machine(
    "agent",
    Agent(),
    about="a worker: starting, working, idle, dead",
    rows=(
        row(State.STARTING, Heartbeat, State.WORKING, hear),
        row(State.STARTING, SpawnFailed, State.DEAD, die),
        row(State.WORKING, TaskFinished, State.IDLE, rest),
        row(State.WORKING, Died, State.DEAD, die),
        row(State.IDLE, TaskAssigned, State.WORKING, assign),
        row(State.IDLE, Recycled, State.DEAD, die),
        row((State.WORKING, State.IDLE), Heartbeat, STAY, hear),
        row(State.WORKING, Watched, STAY, watch),
    ),
    final={State.DEAD},
    invariants=(ends_with_a_reason_only_when_dead, is_idle_without_a_task),
    properties=PROPERTIES,
)


supervised = (
    machine.without_rows((State.IDLE, Recycled))
    .with_rows(
        row(State.STARTING, SpawnOverdue, State.DEAD, expire),
        row(State.IDLE, Recycled, State.DEAD, recycle),
        row((State.STARTING, State.IDLE), Died, State.DEAD, die),
        during={
            State.STARTING: after(spawn_timeout, SpawnOverdue),
            State.IDLE: after(idle_timeout, Recycled),
        },
        name="agent-supervised",
    )
    .with_properties(*SUPERVISED_PROPERTIES)
)
"""The profile with timers, in which a process may die in any state."""
