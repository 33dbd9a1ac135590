"""The board's view of a service: on, or gone. The board has one slot for each service.

A service takes no tasks. It stays until all tasks are settled and none can be added, or until no worker is left. Then
the board drains it: its current run ends first. A fleet of services alone is kept alive by its intake (``--watch``),
and is over when all services are gone.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    Aggregate,
    Entity,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    always_step,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on

REF: Final = "service_slot"


class State(AnyLifecycleState):
    """The two states of a service slot."""

    ON = "On"
    GONE = "Gone"


class ServiceGone(Event, frozen=True):
    """The service has stopped for good; ``failed`` if its own failures stopped it, and no command."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    failed: bool = False


class ServiceSlot(Record, frozen=True):
    """The board's view of a service."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.ON
    reason: str = ""
    failed: bool = False


def leave(s: ServiceSlot, e: ServiceGone) -> Step[ServiceSlot, Never]:
    """Record the reason."""
    return Step(replace(s, reason=e.reason, failed=e.failed))


def service_slots(board: Aggregate) -> Iterator[tuple[str, Entity[ServiceSlot]]]:
    """Yield the service slots of a board with their names, in order."""
    for ref in sorted(board.entities):
        if ref.startswith(f"{REF}:"):
            yield ref.partition(":")[2], board.entities[ref]


def is_kept(board: Aggregate) -> bool:
    """Tell whether a service is on and the fleet never had a worker: such a fleet lives on without workers."""
    serves = any(each.state is State.ON for _, each in service_slots(board))
    return serves and not any(ref.startswith("worker_slot:") for ref in board.entities)


def knows_why(step: Transition) -> bool:
    """A service that is gone has reported its reason, and whether it failed."""
    s: ServiceSlot = step.after.record
    if not isinstance(step.event, ServiceGone):
        return True
    return s.state is State.GONE and (s.reason, s.failed) == (step.event.reason, step.event.failed)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a service that is gone has its reason on the board", knows_why),
    *exits_on(State.ON, ServiceGone),
)

machine: Machine[Any] = Machine(
    REF,
    ServiceSlot(),
    about="the board's view of a service: on duty, gone",
    rows=(row(State.ON, ServiceGone, State.GONE, leave),),
    final={State.GONE},
    properties=PROPERTIES,
)
