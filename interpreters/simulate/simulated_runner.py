"""What a simulation knows of the runner that it watches: one of its own, or a real engine."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from lifefold.core.kernel import Aggregate, Envelope, Input, System, World
from lifefold.interpreters.simulate.activities import Activities
from lifefold.interpreters.simulate.environment import Chance
from lifefold.interpreters.simulate.inputs import Counts, Opening, Watcher
from lifefold.interpreters.simulate.scheduler import Agenda


class SimulatedRunner(Protocol):
    """Decides, persists, performs and records, in virtual time."""

    @property
    def opening(self) -> Opening:
        """The first input of each aggregate."""
        ...

    @property
    def recovery_ms(self) -> list[int]:
        """The duration of each time without a runner."""
        ...

    @property
    def activities(self) -> Activities:
        """The running activities."""
        ...

    @property
    def skew_ms(self) -> int:
        """The error of its clock."""
        ...

    @property
    def is_up(self) -> bool:
        """Whether a runner is at work."""
        ...

    @property
    def rests_within_ms(self) -> int:
        """The time after which an idle runner has nothing left to do; 0 if that is not checked."""
        ...

    @property
    def entries(self) -> list[Input]:
        """The accepted inputs, as the log has them."""
        ...

    @property
    def world(self) -> World:
        """The world that the log folds to."""
        ...

    @property
    def counts(self) -> Counts:
        """The counts."""
        ...

    @property
    def clock_ms(self) -> int:
        """The time by its clock."""
        ...

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The state in the log."""
        ...

    def start(self) -> None:
        """Start a runner, if there is none."""
        ...

    def submit(self, name: str, envelope: Envelope) -> None:
        """Give an operator command; without a runner, the next one gets it."""
        ...

    def set_clock(self, by_ms: int) -> None:
        """Let the clock jump."""
        ...

    def come_back(self) -> None:
        """Start a runner, if there is none, in spite of any fault."""
        ...

    def must_have_come_to_rest(self) -> None:
        """Raise ``Violation`` if something is left undone although everything was healed long ago."""
        ...

    def close(self) -> None:
        """Discard the runner at the end of the run."""
        ...


RunnerType: TypeAlias = Callable[[System, Opening, Chance, Agenda, Watcher], SimulatedRunner]
"""Makes the runner of a run."""
