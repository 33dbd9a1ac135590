"""The effects on agents and claims that misbehave."""

from typing import Literal

from lifefold.effects.base import Effect

Tier = Literal["warn", "usr1", "term", "kill"]
"""The steps of the escalation: a line for the operator, SIGUSR1, SIGTERM, SIGKILL."""


class EscalateSilence(Effect, frozen=True):
    """Take this step of the escalation, once: the agent has been silent for ``silent_ms``.

    An agent may take a second signal for the next step. So the sender must keep the identities of the signals it sent.
    """

    recognised = True

    agent: str
    tier: Tier
    silent_ms: int


class KillOverdue(Effect, frozen=True):
    """End the agent: it has worked at its task for ``worked_ms``, longer than allowed."""

    idempotent = True

    agent: str
    worked_ms: int


class AbortSession(Effect, frozen=True):
    """End the session of ``owner``, whose work at ``task`` is not wanted any more; ``task`` is empty if it has none."""

    idempotent = True

    owner: str
    task: str


class KeepDeadLetter(Effect, frozen=True):
    """Keep a report that came too late: of claim ``epoch`` of ``task``, when ``current`` was the last one."""

    idempotent = True

    task: str
    report: str
    epoch: int
    current: int
