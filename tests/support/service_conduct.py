"""A witness of services: the beginning of a run, and the report of its end, which no state shows."""

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.service import invocation, rules
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles import process, session

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
    if transition.machine == desired_state.machine.name:
        by_rule = transition.actor == f"rule:{rules.drained.__name__}"
        by_drain = by_rule or isinstance(transition.event, desired_state.Drained)
        runs = replace(runs, hasty=runs.hasty or (by_drain and runs.busy))
        return replace(runs, wanted=transition.after.state is desired_state.State.RUN)
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
