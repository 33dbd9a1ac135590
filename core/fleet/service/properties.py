"""What a service promises, and what a fleet properties of its services."""

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


def hand_is_full(service: Aggregate) -> bool:
    """Something is in hand exactly while it is being run."""
    return (service.record(inbox.REF).in_hand is None) is is_idle(service)


def runs_what_waits(service: Aggregate) -> bool:
    """Nothing waits but behind what is being run, for a person, or for the process to be up and allowed to go on."""
    p: process.Process = service.record(PROCESS)
    is_held = service.record("desired_state").state is not desired_state.State.RUN or p.suspended_for is not None
    waits = bool(service.record(inbox.REF).items) and service.record(invocation.REF).state is invocation.State.IDLE
    return not waits or is_held or p.state not in {process.State.RUNNING, process.State.AWAITING}


def is_up_at_once(service: Aggregate) -> bool:
    """No service is on its way up: there is nothing that this could wait for."""
    return service.record(PROCESS).state not in {process.State.CREATED, process.State.STARTING}


def fails_by_its_runs(step: Transition) -> bool:
    """Nothing but a run that has failed says that a service fails."""
    came_down = step.machine == PROCESS and step.entered is process.State.FAILED
    return not came_down or isinstance(step.event, process.RunFailed)


def watches_while_up(service: Aggregate) -> bool:
    """Every trigger is waited for exactly while the process is up."""
    up = service.record(PROCESS).state in process.SERVING
    triggers = [each for ref, each in service.entities.items() if ref.startswith(f"{trigger.REF}:")]
    return all((each.state is trigger.State.WATCHING) is up for each in triggers)


def awaits_with_nothing_to_do(service: Aggregate) -> bool:
    """Whoever awaits its triggers runs nothing, and who is up and has something to do does not."""
    p: process.Process = service.record(PROCESS)
    busy = not is_idle(service) or bool(service.record(inbox.REF).items)
    if p.state is process.State.AWAITING:
        return is_idle(service)
    return p.state is not process.State.RUNNING or busy or p.suspended_for is not None


def gone_takes_nothing(service: Aggregate) -> bool:
    """Whoever is down for good runs nothing and takes nothing more, and only he."""
    closed = service.record(inbox.REF).state is inbox.State.CLOSED
    return closed is is_down(service) and (not closed or is_idle(service))


def wishes_are_obeyed(service: Aggregate) -> bool:
    """Who is to stop is down for good, who is to drain runs something, and who is paused is suspended, or will be."""
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
    always("what is in hand is what is being run, and that alone", hand_is_full),
    always("nothing waits that may be run", runs_what_waits),
    always("a service that begins is up at once", is_up_at_once),
    always_step("a service fails by its runs, and by nothing else", fails_by_its_runs),
    always("triggers are waited for exactly while the service is up", watches_while_up),
    always("a service awaits its triggers when it has nothing to do", awaits_with_nothing_to_do),
    always("who is down for good runs nothing and takes nothing", gone_takes_nothing),
    always("a service that is to stop is down, and one that is paused begins nothing", wishes_are_obeyed),
    leads_to(
        "every wish to stop or to drain ends with nothing left, if what is being run ends",
        lambda s: desired_state.is_to_end(s.record("desired_state")),
        settled,
        given=weakly(RunSession),
    ),
    leads_to(
        "whoever is down for good leaves nothing behind",
        is_down,
        settled,
    ),
    sometimes("a service is down by its failures", lambda s: is_down(s) and has_failed(s.record(PROCESS))),
    sometimes("something waits while something is being run", lambda s: bool(s.record(inbox.REF).items)),
)


class Ending(msgspec.Struct, frozen=True):
    """How services have ended, by their names, as a board has it, or a service itself; True of one that has failed.

    Of one that had failed before it was told to stop, or has come down when it was, either may be said.
    """

    failed: tuple[tuple[str, bool], ...] = ()
    is_board: bool = False


def ending(of: Aggregate) -> Ending:
    """Return what is looked at to see that the board knows how services have ended."""
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
    """When nothing is under way, the board knows which services are gone, and which of them have failed."""
    seen = [each for each in fleet.aggregates.values() if isinstance(each, Ending)]
    known = {end for each in seen if each.is_board for end in each.failed}
    are_so = {end for each in seen if not each.is_board for end in each.failed}
    return bool(fleet.under_way) or (known <= are_so and {name for name, _ in known} == {name for name, _ in are_so})


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    ending,
    always(
        "when every message has arrived, it is known which services are gone, and which have failed", endings_are_known
    ),
)
