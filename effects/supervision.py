"""What is done about agents and claims that do not behave."""

from typing import Literal

from lifefold.effects.base import Effect

Tier = Literal["warn", "usr1", "term", "kill"]
"""The steps of the escalation: a line for people, SIGUSR1, SIGTERM, SIGKILL."""


class EscalateSilence(Effect, frozen=True):
    """The agent has been silent for ``silent_ms``: take this step of the escalation, once.

    An agent may take a second signal for the next step: whoever sends one has to keep the identities of what was sent.
    """

    recognised = True

    agent: str
    tier: Tier
    silent_ms: int


class KillOverdue(Effect, frozen=True):
    """The agent has worked at its task for ``worked_ms``, which is longer than it may: end it."""

    idempotent = True

    agent: str
    worked_ms: int


class AbortSession(Effect, frozen=True):
    """End the session of ``owner``, whose work at ``task`` nobody wants any more; ``task`` is empty if it has none."""

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
