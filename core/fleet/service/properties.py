"""The properties of a service, and those of a fleet with services."""

from typing import Final

import msgspec

from lifefold.core.fleet.board import service_slot
from lifefold.core.fleet.service import inbox, invocation, trigger
from lifefold.core.fleet.service.model import KIND, PROCESS, has_failed, is_down, is_idle, settled
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import (
    Aggregate,
    Projection,
    Property,
    SystemState,
    Transition,
    always,
    always_step,
    leads_to,
    projected,
    sometimes,
    weakly,
)
from lifefold.core.lifecycles import process
from lifefold.effects import RunSession


def runs_what_waits(service: Aggregate) -> bool:
    """An item waits only for the current run, for an operator, or for the process to be up and not suspended."""
    p: process.Process = service.record(PROCESS)
    is_held = service.record("desired_state").state is not desired_state.State.RUN or p.suspended_for is not None
    waits = bool(service.record(inbox.REF).items) and service.record(invocation.REF).state is invocation.State.IDLE
    return not waits or is_held or p.state not in {process.State.RUNNING, process.State.AWAITING}


def fails_by_its_runs(step: Transition) -> bool:
    """Only a failed run makes a service fail."""
    came_down = step.machine == PROCESS and step.entered is process.State.FAILED
    return not came_down or isinstance(step.event, process.RunFailed)


def watches_while_up(service: Aggregate) -> bool:
    """Every trigger is watched exactly while the process is up."""
    up = service.record(PROCESS).state in process.SERVING
    triggers = [each for ref, each in service.entities.items() if ref.startswith(f"{trigger.REF}:")]
    return all((each.state is trigger.State.WATCHING) is up for each in triggers)


def awaits_with_nothing_to_do(service: Aggregate) -> bool:
    """A service in AWAITING runs nothing, and a service in RUNNING has something to do, or is suspended."""
    p: process.Process = service.record(PROCESS)
    busy = not is_idle(service) or bool(service.record(inbox.REF).items)
    if p.state is process.State.AWAITING:
        return is_idle(service)
    return p.state is not process.State.RUNNING or busy or p.suspended_for is not None


def runs_nothing_when_down(service: Aggregate) -> bool:
    """The inbox is closed exactly when the service is down for good, and such a service runs nothing."""
    closed = service.record(inbox.REF).state is inbox.State.CLOSED
    return closed is is_down(service) and (not closed or is_idle(service))


def follows_its_desired_state(service: Aggregate) -> bool:
    """A stopped service is down for good, a draining one still runs, and a paused one is suspended or down."""
    p: process.Process = service.record(PROCESS)
    match service.record("desired_state").state:
        case desired_state.State.STOP:
            return is_down(service)
        case desired_state.State.DRAIN:
            return not is_idle(service)
        case desired_state.State.PAUSE:
            return is_down(service) or p.suspended_for is process.SuspendReason.MANUAL
        case desired_state.State.RUN:
            return p.suspended_for is not process.SuspendReason.MANUAL or is_down(service)
        case _:
            return True


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always(
        "the inbox has an item in progress exactly while a run lives",
        lambda service: (service.record(inbox.REF).in_hand is None) is is_idle(service),
    ),
    always("no item waits if it may run now", runs_what_waits),
    always(
        "a new service is up at once",
        lambda service: service.record(PROCESS).state not in {process.State.CREATED, process.State.STARTING},
    ),
    always_step("a service fails only by failed runs", fails_by_its_runs),
    always("triggers are watched exactly while the service is up", watches_while_up),
    always("a service awaits its triggers exactly when it has nothing to do", awaits_with_nothing_to_do),
    always("a service that is down for good runs nothing and accepts nothing", runs_nothing_when_down),
    always("a service follows its desired state", follows_its_desired_state),
    leads_to(
        "every stop or drain ends with nothing left, if the current run ends",
        lambda s: desired_state.is_to_end(s.record("desired_state")),
        settled,
        given=weakly(RunSession),
    ),
    leads_to("a service that is down for good leaves nothing behind", is_down, settled),
    sometimes("a service is down by its failures", lambda s: is_down(s) and has_failed(s.record(PROCESS))),
    sometimes("an item waits while another one runs", lambda s: bool(s.record(inbox.REF).items)),
)


class Ending(msgspec.Struct, frozen=True):
    """The services that are gone, by name, as the board or a service records it; True for a failure.

    A service that failed, and was also asked to stop, may be recorded either way.
    """

    failed: tuple[tuple[str, bool], ...] = ()
    is_board: bool = False


def ending(of: Aggregate) -> Ending:
    """Return the projection for the property that the board knows the ends of services."""
    if of.kind == KIND:
        p: process.Process = of.record(PROCESS)
        failed = (False,) if p.state is not process.State.FAILED else (True, False) if p.stop_requested else (True,)
        return Ending(tuple((of.key, each) for each in failed) if is_down(of) else ())
    service_slots = (
        (ref.partition(":")[2], each) for ref, each in of.entities.items() if ref.startswith(f"{service_slot.REF}:")
    )
    gone = ((name, each.record.failed) for name, each in service_slots if each.state is service_slot.State.GONE)
    return Ending(tuple(sorted(gone)), is_board=True)


def endings_are_known(fleet: Projection) -> bool:
    """Without messages in flight, the board knows which services are gone, and which of them failed."""
    seen = [each for each in fleet.aggregates.values() if isinstance(each, Ending)]
    known = {end for each in seen if each.is_board for end in each.failed}
    are_so = {end for each in seen if not each.is_board for end in each.failed}
    return bool(fleet.under_way) or (known <= are_so and {name for name, _ in known} == {name for name, _ in are_so})


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    ending,
    always(
        "once all messages have arrived, the board knows which services are gone and which failed", endings_are_known
    ),
)
