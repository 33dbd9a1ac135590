"""Whether more tasks may come: a fleet that is kept alive waits for them, until somebody says that there are no more.

Only such a fleet has one of these on its board; without, a fleet is over when the tasks that it has are settled. It is
closed for good: whoever wants more afterwards begins another log.
"""

from typing import Any, ClassVar, Final

from lifefold.core.kernel import Aggregate, Event, Machine, Property, Record, Transition, always_step, anywhere, row
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on

REF: Final = "intake"


class State(AnyLifecycleState):
    """The two states of the doors."""

    OPEN = "Open"
    CLOSED = "Closed"


class LastTaskIn(Event, frozen=True):
    """No more tasks will come."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Intake(Record, frozen=True):
    """Whether more tasks may come."""

    state: State = State.OPEN


def are_open(board: Aggregate) -> bool:
    """Tell whether the fleet waits for more tasks."""
    found = board.entities.get(REF)
    return found is not None and found.state is State.OPEN


def stay_closed(step: Transition) -> bool:
    """What is closed is not opened again."""
    return step.before is None or step.before.state is State.OPEN


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a fleet that takes no more tasks takes none again", stay_closed),
    *exits_on(State.OPEN, LastTaskIn),
)

machine = Machine(
    "intake",
    Intake(),
    about="whether more tasks may come to a fleet that is kept alive",
    rows=(row(State.OPEN, LastTaskIn, State.CLOSED),),
    final={State.CLOSED},
    properties=PROPERTIES,
    rests=anywhere,
)
