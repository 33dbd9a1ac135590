"""A worker: starting, working, idle, dead. The table is document 004's, six lines.

*The first heartbeat makes an agent WORKING.* Until then it is only spawned. A warm agent without a task must pass
WORKING to become IDLE (E22). Further heartbeats change nothing but ``heartbeat_at_ms``. A dead agent has no heartbeat:
a later one is refused (E23).

*Silence is measured from the last sign of life*, or from the start of an agent without one (E31, E32). The watcher
sends ``Watched`` from time to time. The answer is a ladder of steps. Each is taken once when its silence is reached
(``>=``), and all of them are possible again after a heartbeat. A task also has a time limit, which is extended while
the agent gives signs of life. Both request effects and leave the state alone. An agent is dead when its process has
ended, and not because of its silence.

*The parent is set at spawn* (E38). Aborts propagate along it; see ``abort``.

``supervised`` is the profile with timers: a launch that takes too long fails, and an idle agent is recycled. Both
request the end of the session (``AbortSession``), so that a dead agent leaves no process behind. The profile also
accepts ``Died`` in every state, over the edges of the document.
"""

from lifefold.core.lifecycles.agent.model import (
    LADDER,
    Agent,
    Died,
    Heartbeat,
    Limits,
    Recycled,
    SpawnFailed,
    SpawnOverdue,
    State,
    TaskAssigned,
    TaskFinished,
    Watched,
    silent_ms,
    spawned,
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
from lifefold.core.lifecycles.agent.table import machine, supervised

__all__ = [
    "LADDER", "PROPERTIES", "SUPERVISED_PROPERTIES", "Agent", "Died", "Heartbeat", "Limits", "Recycled", "SpawnFailed",
    "SpawnOverdue", "State", "TaskAssigned", "TaskFinished", "Watched", "assign", "die",
    "ends_with_a_reason_only_when_dead", "expire", "hear", "idle_timeout", "is_idle_without_a_task", "machine",
    "recycle", "rest", "silent_ms", "spawn_timeout", "spawned", "supervised", "watch",
]  # fmt: skip
