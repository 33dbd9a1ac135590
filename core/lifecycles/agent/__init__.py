"""A worker: starting, working, idle, dead. The table is document 004's, six lines.

*The first heartbeat is what makes an agent work.* Until then it is only spawned; an agent that is warm but has no task
must pass WORKING to become IDLE (E22). Further heartbeats change nothing but ``heartbeat_at_ms``. A dead agent has no
heartbeat: what claims to be one is refused (E23).

*Silence is measured from the last sign of life*, which is the start for an agent that never gave one (E31, E32). Who
watches says ``Watched`` now and then. The answer is a ladder of steps, each taken once when its silence is reached
(``>=``) and all of them possible again after a heartbeat; and a limit to the time that one task may take, which is
extended while the agent is heard of. Both ask for effects and leave the state alone: an agent is dead when its process
has ended, and not because somebody has lost patience.

*The parent is set at spawn* (E38), and is what an abort is propagated along; see ``abort``.

``supervised`` is the profile that keeps time by itself: a launch that takes too long fails, and an idle agent is
recycled. Both ask for the end of the session (``AbortSession``), so that no process is left behind an agent that is
dead. It also takes ``Died`` in every state, over the edges that the document has.
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
