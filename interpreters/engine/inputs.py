"""An engine's inputs on their way, and the engine as those see it that give it inputs."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from lifefold.core.kernel import Envelope, Reaction, Refusal
from lifefold.interpreters.engine.clock import Clock
from lifefold.interpreters.engine.ledger import Ledger

if TYPE_CHECKING:
    from lifefold.interpreters.engine.retrying import Failures


class Input:
    """An envelope on its way through the engine, and what came of it."""

    __slots__ = ("aggregate", "done", "envelope", "outcome", "post")

    def __init__(self, aggregate: str, envelope: Envelope, post: int = 0, *, awaited: bool = False) -> None:
        """Address an envelope; ``post`` is the number of the operator's post it came in, if it did."""
        self.aggregate = aggregate
        self.envelope = envelope
        self.post = post
        self.done = anyio.Event() if awaited else None
        self.outcome: Reaction | Refusal | None = None

    def settle(self, outcome: Reaction | Refusal) -> None:
        """Let the task that waits for it know what came of it."""
        self.outcome = outcome
        if self.done is not None:
            self.done.set()


def abandoned(envelope: Envelope) -> Refusal:
    """Return the answer to an input of which the engine will say nothing any more."""
    return Refusal(envelope, "stopped", "the engine has stopped; the log says whether it was taken")


class Host(Protocol):
    """The engine, as its timers, activities and effects see it."""

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Its aggregates."""
        ...

    @property
    def failures(self) -> "Failures":
        """How often handlers have failed, as the log has it."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it takes no more inputs."""
        ...

    def report(self, aggregate: str, envelope: Envelope) -> None:
        """Take an input of the engine's own, which has the time at which it came about."""
        ...

    async def answered(self, aggregate: str, envelope: Envelope) -> Reaction | Refusal:
        """Take such an input; return what came of it, once that is durable."""
        ...

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
        """Do something beside the decisions; the engine is running."""
        ...
