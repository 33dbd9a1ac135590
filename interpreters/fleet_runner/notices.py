"""The notices of a run for its operator: all of them, and those that still hold."""

import time
from enum import StrEnum
from typing import Final, NamedTuple

from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets


class About(StrEnum):
    """The subject of a notice that holds for a limited time."""

    GREETING = "the sessions and tasks that a run continues"
    DOWN = "an agent that its errors have stopped, or a service that has failed"
    SILENCE = "a session without a sign of progress"
    QUARANTINE = "an entity that accepts no input until its release"
    WAITING = "an obstacle that an agent waits for"
    NAME = "the name of a host, which another process has, too"


class Notice(NamedTuple):
    """A sentence about an agent, with its time in Unix milliseconds."""

    agent: str
    message: str
    at_ms: int


class Notices:
    """The notices of a run; ``history`` has all of them in order, as agent and message."""

    def __init__(self, waits: Waits | None = None, secrets: Secrets = NO_SECRETS) -> None:
        """Begin without notices; ``waits`` keeps the waits for commands in other terminals.

        Notices contain none of the ``secrets``.
        """
        self.secrets: Final = secrets
        self.waits: Final = waits or Waits()
        self.history: Final[list[tuple[str, str]]] = []
        self._standing: Final[dict[tuple[str, About | str, str], Notice]] = {}

    def tell(self, agent: str, message: str) -> None:
        """Add a notice that holds until the end of the run."""
        self._keep((agent, message, ""), message)

    def tell_while(self, about: About, agent: str, message: str, which: str = "") -> None:
        """Add a notice that holds until ``over``; it replaces the notice about the same subject."""
        self._keep((agent, about, which), message)

    def in_the_way(self, agent: str, what: str, why: str) -> None:
        """Add a notice that an agent waits, and why; repetitions of the same wait are not added."""
        said = self.secrets.hidden(f"waits to {what}: {why}")
        if self.waits.seen(agent, what, said):
            self.tell_while(About.WAITING, agent, said, what)

    def out_of_the_way(self, agent: str, what: str) -> None:
        """End the notice of a wait."""
        self.waits.over(agent, what)
        self.over(About.WAITING, agent, what)

    def _keep(self, key: tuple[str, About | str, str], message: str) -> None:
        message = self.secrets.hidden(message)
        self.history.append((key[0], message))
        self._standing.pop(key, None)
        self._standing[key] = Notice(key[0], message, time.time_ns() // 1_000_000)

    def over(self, about: About, agent: str, which: str | None = None) -> None:
        """End the notices of an agent about a subject: the one for ``which``, or all if it is None."""
        for key in [key for key in self._standing if key[:2] == (agent, about) and which in {None, key[2]}]:
            del self._standing[key]

    def standing(self, *gone: About) -> list[Notice]:
        """Return the notices that hold, the latest last, without those about the subjects ``gone``."""
        return [notice for (_, about, _), notice in self._standing.items() if about not in gone]
