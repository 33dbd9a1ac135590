"""What people must know of a run: everything that they were told, and what of it still holds."""

import time
from enum import StrEnum
from typing import Final, NamedTuple

from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets


class About(StrEnum):
    """What a notice is about that holds only for a while."""

    GREETING = "what a run goes on with"
    DOWN = "an agent that has stopped by its errors, or a service that has failed"
    SILENCE = "a session that shows no sign of progress"
    QUARANTINE = "an entity that takes nothing more until it is released"
    WAITING = "something that is in the way, and is waited for"


class Notice(NamedTuple):
    """What people were told of an agent, and when: Unix time in milliseconds."""

    agent: str
    message: str
    at_ms: int


class Notices:
    """Keeps what people are told; ``told`` is all of it, agent and message, in order."""

    def __init__(self, waits: Waits | None = None, secrets: Secrets = NO_SECRETS) -> None:
        """Begin with nothing; ``waits`` is where those look for what is in the way who ask from elsewhere.

        People are told none of the ``secrets``.
        """
        self._secrets: Final = secrets
        self.waits: Final = waits or Waits()
        self.told: Final[list[tuple[str, str]]] = []
        self._standing: Final[dict[tuple[str, About | str, str], Notice]] = {}

    def tell(self, agent: str, message: str) -> None:
        """Let people know what holds from now on."""
        self._keep((agent, message, ""), message)

    def tell_while(self, about: About, agent: str, message: str, which: str = "") -> None:
        """Let people know what is so until it is over; this takes the place of what was said about the same."""
        self._keep((agent, about, which), message)

    def in_the_way(self, agent: str, what: str, why: str) -> None:
        """Let people know why an agent waits to do something: once, however often the same is in the way."""
        said = self._secrets.hidden(f"waits to {what}: {why}")
        if self.waits.seen(agent, what, said):
            self.tell_while(About.WAITING, agent, said, what)

    def out_of_the_way(self, agent: str, what: str) -> None:
        """Nothing is in the way of that any more."""
        self.waits.over(agent, what)
        self.over(About.WAITING, agent, what)

    def _keep(self, key: tuple[str, About | str, str], message: str) -> None:
        message = self._secrets.hidden(message)
        self.told.append((key[0], message))
        self._standing.pop(key, None)
        self._standing[key] = Notice(key[0], message, time.time_ns() // 1_000_000)

    def over(self, about: About, agent: str, which: str | None = None) -> None:
        """What was said about this holds no more; all about the same that was said of the agent, if not said which."""
        for key in [key for key in self._standing if key[:2] == (agent, about) and which in {None, key[2]}]:
            del self._standing[key]

    def standing(self, *gone: About) -> list[Notice]:
        """Return what holds, each once, the latest last, without what is about things that are ``gone``."""
        return [notice for (_, about, _), notice in self._standing.items() if about not in gone]
