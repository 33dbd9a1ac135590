"""What a service is, and what its rules look at."""

from typing import Final

from lifefold.core.fleet.service import invocation
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Phase
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process.restart import Comeback
from lifefold.effects import RunSession

KIND: Final = "service"

PROCESS: Final = process.machine.name

life = process.machine.serving("StartProcess", "ServeTriggers", "DrainProcess")
"""The process as a service lives it: what its states stand for is done by rules."""


def is_idle(service: Aggregate) -> bool:
    """Tell whether nothing is being run."""
    return service.record(invocation.REF).state is invocation.State.IDLE


def is_down(service: Aggregate) -> bool:
    """Tell whether the process is down, and will not come back by itself."""
    p: process.Process = service.record(PROCESS)
    return p.state in process.DOWN and p.comeback is Comeback.NONE


def may_begin(service: Aggregate) -> bool:
    """Tell whether something may be run now, if anything waits."""
    p: process.Process = service.record(PROCESS)
    up = p.state in {process.State.RUNNING, process.State.AWAITING} and p.suspended_for is None
    return up and service.record("desired_state").state is desired_state.State.RUN and is_idle(service)


def reason_of(p: process.Process) -> str:
    """Say why a process is down."""
    return (p.failure or "it has failed") if has_failed(p) else (p.stop_reason or "it has stopped")


def has_failed(p: process.Process) -> bool:
    """Tell whether a process has come down by itself, and nobody wanted that."""
    return p.state is process.State.FAILED and not p.stop_requested


def settled(service: Aggregate) -> bool:
    """The service is gone and nothing of it is left."""
    served = life.served
    parts = [part for each in service.entities.values() for part in each.running if part.slot not in served]
    return is_down(service) and not parts


def quiet(service: Aggregate) -> bool:
    """No run of the service lives, and none will while it holds."""
    return service.entities[invocation.REF].find(RunSession.__name__, Phase.ENDING) is None and is_idle(service)
