"""What a long-lived process asks of the world: the work that its states stand for, and the news of it."""

from typing import Literal

from lifefold.effects.base import Activity, Effect

ProcessNews = Literal["started", "stopped", "failed", "restarted", "restart_exhausted", "suspended", "resumed"]
"""What may be told of a process; with ``process.`` before it, the name that it is published under."""


class NotifyProcess(Effect, frozen=True):
    """Tell whoever listens what became of a process, and why.

    ``restart_count`` says how often it was restarted since its last successful run.
    """

    idempotent = True

    kind: ProcessNews
    reason: str = ""
    restart_count: int = 0


class PauseTriggers(Effect, frozen=True):
    """Begin no more runs. One in flight goes on to its end; triggers are queued in order, and still reported."""

    idempotent = True


class ResumeTriggers(Effect, frozen=True):
    """Begin runs again with what is queued; if nothing is, report that."""

    idempotent = True


class StartProcess(Activity, frozen=True):
    """Build the agent and connect what it needs. ``restart_count`` is 0 for the first try."""

    restart_count: int = 0


class ServeTriggers(Activity, frozen=True):
    """Take triggers into a queue of at most ``queue_limit`` and run the agent on them, ``concurrency`` at a time.

    With ``paused``, begin as after ``PauseTriggers``. To end it is to take no more triggers; a run in flight is left to
    ``DrainProcess`` if that begins with the same transition, and cancelled otherwise.
    """

    concurrency: int = 1
    queue_limit: int = 1_000
    paused: bool = False


class DrainProcess(Activity, frozen=True):
    """Let the runs in flight come to their ends, and give back what is queued as undelivered.

    To end it before it is over is to cancel those runs and to say of each that it was interrupted.
    """
