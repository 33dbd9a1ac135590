"""Inputs in the queue of an engine, and the protocol through which the engine's parts see it."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import anyio
import msgspec

from lifefold.core.kernel import Envelope, Reaction, Refusal
from lifefold.interpreters.engine.clock import Clock
from lifefold.interpreters.engine.failures import Failures
from lifefold.interpreters.engine.ledger import Ledger


class Input(msgspec.Struct, eq=False):
    """An envelope in the engine's queue, and its outcome.

    ``command`` is the number of the operator command that contained it, or 0. ``done`` is set with the outcome.
    """

    aggregate: str
    envelope: Envelope
    command: int = 0
    done: anyio.Event | None = None
    outcome: Reaction | Refusal | None = None

    def settle(self, outcome: Reaction | Refusal) -> None:
        """Set the outcome, and wake the task that waits for it."""
        self.outcome = outcome
        if self.done is not None:
            self.done.set()


def abandoned(envelope: Envelope) -> Refusal:
    """Return the answer to an input that a stopped engine will not decide on."""
    return Refusal(envelope, "stopped", "the engine has stopped; the log says whether it was taken")


class Host(Protocol):
    """The part of the engine that its timers, activities and effect queues use."""

    @property
    def clock(self) -> Clock:
        """The engine's clock."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The present state of all aggregates."""
        ...

    @property
    def failures(self) -> Failures:
        """The failed attempts of handlers that the log records."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the engine accepts no more inputs."""
        ...

    def report(self, aggregate: str, envelope: Envelope) -> None:
        """Queue an input of the engine itself. Its envelope has its own timestamp."""
        ...

    async def answered(self, aggregate: str, envelope: Envelope) -> Reaction | Refusal:
        """Queue such an input, and return its outcome once that is durable."""
        ...

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
        """Run a coroutine beside the decisions, while the engine runs."""
        ...
