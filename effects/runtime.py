"""The effects of a cooperative agent's runtime, beside calls of the agent's hooks."""

from lifefold.effects.base import Effect


class LogFailure(Effect, frozen=True):
    """Log a failure that no call of the agent announced: a state lasted too long, or preemption was forced (A6, A17).

    ``error_code`` is for programs, ``reason`` for people.
    """

    idempotent = True

    error_code: str
    reason: str


class ReportStuck(Effect, frozen=True):
    """Tell an operator that an agent has been in ``state`` for ``after_ms`` and cannot leave it by itself (A8, A26)."""

    idempotent = True

    state: str
    after_ms: int


class ReportTaskFailed(Effect, frozen=True):
    """Tell the owner of this task that the agent has lost it (A23)."""

    idempotent = True

    task_id: str
    reason: str
    error_code: str = ""


class SignalPreemption(Effect, frozen=True):
    """Tell the agent that it is overdue: it fails unless it yields within ``grace_ms`` (A17)."""

    idempotent = True

    reason: str
    grace_ms: int
