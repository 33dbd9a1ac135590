"""The inputs of a runner: inputs on their way, their outcomes, and counts."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from lifefold.core.kernel import Aggregate, Envelope, Input, Reaction, Refusal, World
from lifefold.interpreters.simulate.scheduler import Process

Opening = Sequence[tuple[str, Envelope]]
Identity = tuple[str, int, int]
"""The identity of an effect: aggregate, version, index in the reaction."""


class Given(NamedTuple):
    """An input on its way; with its process for a report, and its number for an operator command."""

    aggregate: str
    envelope: Envelope
    process: Process | None = None
    place: int = 0
    command: int = 0

    @property
    def input(self) -> Input:
        """The input alone."""
        return Input(self.aggregate, self.envelope)


class Decided(NamedTuple):
    """An input with its outcome, and the world after it."""

    given: Given
    outcome: Reaction | Refusal
    world: World


class Counts(msgspec.Struct):
    """The counts of a runner."""

    inputs: int = 0
    refused: int = 0
    transitions: int = 0
    crashes: int = 0
    again: int = 0
    """The number of effects that were performed again after a crash."""


class Taker(Protocol):
    """The runner as its processes see it."""

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The state in the log."""
        ...

    @property
    def clock_ms(self) -> int:
        """The time by its clock."""
        ...

    skew_ms: int
    """The error of its clock."""
    is_up: bool
    life: int

    def give(self, given: Sequence[Given]) -> None:
        """Accept inputs: at once, or when the present write is durable."""


Watcher = Callable[[str, Reaction | Refusal, Envelope], None]
"""Called with the outcome of an input, once it is durable: the aggregate, the outcome, the input."""
