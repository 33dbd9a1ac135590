"""The parts of a service, and the predicates that its rules share."""

from typing import Final

from lifefold.core.fleet.service import invocation
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Phase
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process_restart import Comeback
from lifefold.effects import RunSession

KIND: Final = "service"

PROCESS: Final = process.machine.name

life = process.machine.serving("StartProcess", "ServeTriggers", "DrainProcess")
"""The process of a service: rules serve its activities."""


def is_idle(service: Aggregate) -> bool:
    """Tell whether no run of the service is live."""
    return service.record(invocation.REF).state is invocation.State.IDLE


def is_down(service: Aggregate) -> bool:
    """Tell whether the process is down, and is not restarted by itself."""
    p: process.Process = service.record(PROCESS)
    return p.state in process.DOWN and p.comeback is Comeback.NONE


def may_begin(service: Aggregate) -> bool:
    """Tell whether a waiting item may be run now."""
    p: process.Process = service.record(PROCESS)
    up = p.state in {process.State.RUNNING, process.State.AWAITING} and p.suspended_for is None
    return up and service.record("desired_state").state is desired_state.State.RUN and is_idle(service)


def reason_of(p: process.Process) -> str:
    """Return the reason why a process is down."""
    return (p.failure or "it has failed") if has_failed(p) else (p.stop_reason or "it has stopped")


def has_failed(p: process.Process) -> bool:
    """Tell whether a process has failed without a request to stop."""
    return p.state is process.State.FAILED and not p.stop_requested


def settled(service: Aggregate) -> bool:
    """The service is down for good, and has no running activity."""
    served = life.served
    parts = [part for each in service.entities.values() for part in each.running if part.slot not in served]
    return is_down(service) and not parts


def quiet(service: Aggregate) -> bool:
    """No run of the service is live or ending, and none begins during a hold."""
    return service.entities[invocation.REF].find(RunSession.__name__, Phase.ENDING) is None and is_idle(service)
