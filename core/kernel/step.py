"""What a reducer answers: the step it took, or why it took none."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from lifefold.core.kernel.record import Event, Record, State
from lifefold.effects import Effect

R_co = TypeVar("R_co", bound=Record, covariant=True)
E_co = TypeVar("E_co", bound=Effect, covariant=True)


class Step(msgspec.Struct, Generic[R_co, E_co], frozen=True, gc=False):
    """The record after a transition and the effects it asks for, in order. Unpacks as ``record, effects = step``."""

    record: R_co
    effects: tuple[E_co, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        """Yield the record, then the effects."""
        yield self.record
        yield self.effects


class IllegalTransition(msgspec.Struct, frozen=True):
    """An event that the state does not take. Nothing has changed; ``allowed`` names the events that it would take."""

    machine: str
    state: State
    event: Event
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        """Say what was refused, where, and why: a condition does not hold, or something else is accepted."""
        name = type(self.event).__name__
        refused = f"{self.machine}: {name} is not possible in {self.state}"
        if name in self.allowed:
            return f"{refused}: its condition does not hold"
        return f"{refused} (possible: {', '.join(self.allowed) or 'nothing'})"
