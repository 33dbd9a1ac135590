"""The intake of a fleet that is kept alive: it is open while more tasks may be added.

Only a fleet with ``--watch`` has an intake on its board. A fleet without one ends when its tasks are settled. An
operator closes the intake for good; later tasks need a new log.
"""

from typing import Any, ClassVar, Final

from lifefold.core.kernel import Aggregate, Event, Machine, Property, Record, always_step, anywhere, row
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on

REF: Final = "intake"


class State(AnyLifecycleState):
    """The two states of an intake."""

    OPEN = "Open"
    CLOSED = "Closed"


class LastTaskIn(Event, frozen=True):
    """No more tasks will come."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Intake(Record, frozen=True):
    """Whether more tasks may be added."""

    state: State = State.OPEN


def are_open(board: Aggregate) -> bool:
    """Tell whether the fleet has an open intake."""
    found = board.entities.get(REF)
    return found is not None and found.state is State.OPEN


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a closed intake is never opened again", lambda step: step.was.state is State.OPEN, on=Event),
    *exits_on(State.OPEN, LastTaskIn),
)

machine = Machine(
    "intake",
    Intake(),
    about="whether more tasks may be added to a fleet that is kept alive",
    rows=(row(State.OPEN, LastTaskIn, State.CLOSED),),
    final={State.CLOSED},
    properties=PROPERTIES,
    rests=anywhere,
)
