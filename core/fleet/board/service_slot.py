"""What the board knows of a service: whether it is on duty or gone. One duty per service, on the board.

A service takes no tasks. It stays as long as there is something to do: until nothing is left and no more tasks will
come, or nobody is left who could do them. Then it is told to drain: what it runs ends first. A fleet that has nothing
but services has nothing to do by itself; it is kept alive by its doors (``--watch``), and is over when all have gone.
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
    """The two states of a duty."""

    ON = "On"
    GONE = "Gone"


class ServiceGone(Event, frozen=True):
    """The service has stopped for good; ``failed``: not because somebody wanted that."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    failed: bool = False


class ServiceSlot(Record, frozen=True):
    """A service, as the board sees it."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.ON
    reason: str = ""
    failed: bool = False


def leave(d: ServiceSlot, e: ServiceGone) -> Step[ServiceSlot, Never]:
    """Remember why."""
    return Step(replace(d, reason=e.reason, failed=e.failed))


def service_slots(board: Aggregate) -> Iterator[tuple[str, Entity[ServiceSlot]]]:
    """Yield the services that a board has, by their names."""
    for ref in sorted(board.entities):
        if ref.startswith(f"{REF}:"):
            yield ref.partition(":")[2], board.entities[ref]


def is_kept(board: Aggregate) -> bool:
    """Tell whether there are services on duty, and never was anybody else: such a fleet lives on without workers."""
    serves = any(each.state is State.ON for _, each in service_slots(board))
    return serves and not any(ref.startswith("worker_slot:") for ref in board.entities)


def knows_why(step: Transition) -> bool:
    """Say: who is gone has said why, and whether that was wanted."""
    d: ServiceSlot = step.after.record
    if not isinstance(step.event, ServiceGone):
        return True
    return d.state is State.GONE and (d.reason, d.failed) == (step.event.reason, step.event.failed)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("who is gone has said why", knows_why),
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
