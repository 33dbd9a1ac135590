"""The answers of a reducer: the step it took, or the reason for none."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from lifefold.core.kernel.record import Event, Record, State
from lifefold.effects import Effect

R_co = TypeVar("R_co", bound=Record, covariant=True)
E_co = TypeVar("E_co", bound=Effect, covariant=True)


class Step(msgspec.Struct, Generic[R_co, E_co], frozen=True, gc=False):
    """The record after a transition and its effects, in order. Unpacks as ``record, effects = step``.

    >>> from lifefold import Step
    >>> from lifefold.core.fleet.board.intake import Intake
    >>> record, effects = Step(Intake())
    >>> effects
    ()
    """

    record: R_co
    effects: tuple[E_co, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        """Yield the record, then the effects."""
        yield self.record
        yield self.effects


class IllegalTransition(msgspec.Struct, frozen=True):
    """An event that the state does not accept. Nothing has changed; ``allowed`` names the accepted events."""

    machine: str
    state: State
    event: Event
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        """Return what was refused, where, and why: a guard is false, or the state accepts other events."""
        name = type(self.event).__name__
        refused = f"{self.machine}: {name} is not possible in {self.state}"
        if name in self.allowed:
            return f"{refused}: its condition does not hold"
        return f"{refused} (possible: {', '.join(self.allowed) or 'nothing'})"
