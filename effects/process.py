"""The effects of a long-lived process: the work of its states, and its news."""

from typing import Literal

from lifefold.effects.base import Activity, Effect

ProcessNews = Literal["started", "stopped", "failed", "restarted", "restart_exhausted", "suspended", "resumed"]
"""The news of a process; with ``process.`` before it, the name that it is published under."""


class NotifyProcess(Effect, frozen=True):
    """Publish a change of a process, and its reason.

    ``restart_count`` is the number of restarts since its last successful run.
    """

    idempotent = True

    kind: ProcessNews
    reason: str = ""
    restart_count: int = 0


class PauseTriggers(Effect, frozen=True):
    """Begin no more runs. One in flight continues to its end; triggers are queued in order, and still reported."""

    idempotent = True


class ResumeTriggers(Effect, frozen=True):
    """Begin runs again with the queue; report an empty queue."""

    idempotent = True


class StartProcess(Activity, frozen=True):
    """Build the agent and connect its resources. ``restart_count`` is 0 for the first try."""

    restart_count: int = 0


class ServeTriggers(Activity, frozen=True):
    """Take triggers into a queue of at most ``queue_limit`` and run the agent on them, ``concurrency`` at a time.

    With ``paused``, begin as after ``PauseTriggers``. Ending it stops the intake of triggers. A run in flight is left
    to ``DrainProcess`` if that begins with the same transition, and cancelled otherwise.
    """

    concurrency: int = 1
    queue_limit: int = 1_000
    paused: bool = False


class DrainProcess(Activity, frozen=True):
    """Let the runs in flight end, and return the queued triggers as undelivered.

    Ending it early cancels those runs and reports each as interrupted.
    """
