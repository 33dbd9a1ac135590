"""What a runner takes in: inputs on their way, what comes of them, and how much of everything there was."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from lifefold.core.kernel import Aggregate, Envelope, Reaction, Refusal
from lifefold.interpreters.simulate.scheduler import Process

Opening = Sequence[tuple[str, Envelope]]
Identity = tuple[str, int, int]
"""What an effect is known by: aggregate, version, place in the reaction."""


class Entry(NamedTuple):
    """An input that was taken, as it is on record: which aggregate has taken it."""

    aggregate: str
    envelope: Envelope


class Given(NamedTuple):
    """An input on its way; of what an activity says, the process that has said it; of what people say, its number."""

    aggregate: str
    envelope: Envelope
    process: Process | None = None
    place: int = 0
    post: int = 0


class Decided(NamedTuple):
    """An input, at the time at which it was decided, and what came of it."""

    given: Given
    outcome: Reaction | Refusal


class Counts(msgspec.Struct):
    """What a runner has done, in numbers."""

    inputs: int = 0
    refused: int = 0
    transitions: int = 0
    crashes: int = 0
    again: int = 0
    """How many effects were performed once more after a crash."""


class Taker(Protocol):
    """The runner, as those see it whom it has given something to do."""

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """What is on record."""
        ...

    @property
    def clock_ms(self) -> int:
        """What it takes for the time."""
        ...

    skew_ms: int
    """By how much its clock is wrong."""
    is_up: bool
    life: int

    def give(self, given: Sequence[Given]) -> None:
        """Let it take inputs: at once, or when what is being written is on record."""


Watcher = Callable[[str, Reaction | Refusal, Envelope], None]
"""Is told what came of an input, once that is on record: which aggregate, what, the input as it was taken."""
