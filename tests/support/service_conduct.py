"""When a service begins a run, and what it says of one that is over: a witness of what no state of it shows."""

import msgspec

from lifefold.core import process, session
from lifefold.core.fleet import intent, invocation, service
from lifefold.core.fleet.service import rules
from lifefold.core.kernel import Transition, replace

RUNS = frozenset({process.State.RUNNING, process.State.AWAITING})


class Runs(msgspec.Struct, frozen=True):
    """What a service has been through.

    It may run something: people want it to (``wanted``), and its process is up and not suspended (``up``). It has begun
    something all the same, or was taken for drained while something was being run (``hasty``, ``busy``). How the last
    run went (``succeeded``), and whether that was told otherwise, or not at all, before the next one (``mistold``).
    """

    wanted: bool = True
    up: bool = False
    busy: bool = False
    hasty: bool = False
    succeeded: bool | None = None
    mistold: bool = False


def accompany(runs: Runs, transition: Transition) -> Runs:
    """Take in what has happened to a service."""
    if transition.machine == intent.machine.name:
        by_rule = transition.actor == f"rule:{rules.drained.__name__}"
        by_drain = by_rule or isinstance(transition.event, intent.Drained)
        runs = replace(runs, hasty=runs.hasty or (by_drain and runs.busy))
        return replace(runs, wanted=transition.after.state is intent.State.RUN)
    if transition.machine == service.PROCESS:
        p: process.Process = transition.after.record
        runs = _told(runs, transition)
        return replace(runs, up=p.state in RUNS and p.suspended_for is None)
    if transition.machine == invocation.machine.name:
        runs = replace(runs, busy=transition.after.state is not invocation.State.IDLE)
    if isinstance(transition.event, session.SessionExited) and transition.machine == invocation.machine.name:
        return replace(runs, succeeded=isinstance(transition.event.outcome, session.Success))
    if isinstance(transition.event, invocation.Invoked):
        return replace(runs, hasty=runs.hasty or not (runs.wanted and runs.up))
    return runs


def _told(runs: Runs, transition: Transition) -> Runs:
    """Compare what the process hears of a run with how that went."""
    if not isinstance(transition.event, process.RunSucceeded | process.RunFailed):
        return runs
    is_so = runs.succeeded is isinstance(transition.event, process.RunSucceeded)
    return replace(runs, succeeded=None, mistold=runs.mistold or not is_so)
