"""The properties of an agent's status hold in every reachable state, and detect mistakes in the rules."""

from typing import Any, Final

import pytest

from declared import Mutants, instead, must_be_found, must_hold
from lifefold.core.kernel import STAY, Machine, Step, replace, row
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.status import (
    FatalError,
    PiiDetected,
    Spawn,
    State,
    Status,
    Stop,
    TaskBegan,
    TaskEnded,
    draining,
    machine,
)
from lifefold.effects import CallHook, EmitTelemetry, SaveState


@pytest.mark.no_cover
@pytest.mark.parametrize("of", [machine, draining], ids=lambda of: of.name)
def test_an_agents_status_has_all_its_properties(of: Machine[Any]) -> None:
    """In all of its states, with every row and every guard used both ways."""
    assert must_hold(of).missing == ()


def _forgetful(a: Status, e: Spawn) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    return Step(replace((done := status.restart(a, e)).record, pii_detections=0, late_reports=0), done.effects)


def _uncounted(a: Status, e: Spawn) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    return Step(a, status.restart(a, e).effects)


def _unreleased(a: Status, e: Stop) -> Step[Status, SaveState | EmitTelemetry]:
    done = status.stop(a, e)
    return Step(done.record, tuple(each for each in done.effects if isinstance(each, SaveState | EmitTelemetry)))


def _told_first(a: Status, e: FatalError) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    done = status.fail(a, e)
    return Step(done.record, done.effects[::-1])


def _unexplained(a: Status, e: FatalError) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    done = status.fail(a, e)
    return Step(replace(done.record, reason=e.reason), done.effects)


def _is_new(a: Status, e: TaskBegan) -> bool:
    return e.task not in a.tasks


def _with_tasks(a: Status, e: Stop) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    done = status.stop(a, e)
    return Step(replace(done.record, tasks=a.tasks), done.effects)


def _gives_up_draining(a: Status, e: TaskEnded) -> Step[Status, SaveState]:
    done = status.end_task(a, e)
    return Step(replace(done.record, draining=False), done.effects)


RUNNING, STOPPED, FAILED = State.RUNNING, State.STOPPED, State.FAILED

MUTANTS: Final[Mutants] = {
    "a stop does not look for tasks": (
        "only a forced stop cuts off tasks",
        lambda: instead(machine, row(RUNNING, Stop, STOPPED, status.stop)),
    ),
    "a stop keeps the tasks": (
        "works only while running",
        lambda: instead(machine, row(RUNNING, Stop, STOPPED, _with_tasks, when=status.may_stop)),
    ),
    "a stop does not release": (
        "releases it",
        lambda: instead(machine, row(RUNNING, Stop, STOPPED, _unreleased, when=status.may_stop)),
    ),
    "a second stop is reported": (
        "no other step is reported",
        lambda: instead(machine, row(STOPPED, Stop, STAY, status.stop)),
    ),
    "a failed agent still counts": (
        "a failed agent does not change",
        lambda: instead(machine, row(FAILED, PiiDetected, FAILED, status.count_pii)),
    ),
    "a failure has no reason": ("explained", lambda: instead(machine, row(RUNNING, FatalError, FAILED, _unexplained))),
    "a failure is reported before it is saved": (
        "saved before it is reported",
        lambda: instead(machine, row(RUNNING, FatalError, FAILED, _told_first)),
    ),
    "a restart forgets its counters": (
        "changes nothing else",
        lambda: instead(machine, row(STOPPED, Spawn, RUNNING, _forgetful)),
    ),
    "a restart is not counted": (
        "counts the incarnation",
        lambda: instead(machine, row(STOPPED, Spawn, RUNNING, _uncounted)),
    ),
    "a late report fails what has stopped": (
        "too late",
        lambda: instead(machine, row(STOPPED, FatalError, FAILED, status.fail)),
    ),
    "a draining agent takes tasks": (
        "gets no further task",
        lambda: instead(draining, row(RUNNING, TaskBegan, STAY, status.begin_task, when=_is_new)),
    ),
    "a drain ends with the first task": (
        "is not forgotten",
        lambda: instead(
            draining, row(RUNNING, TaskEnded, STAY, _gives_up_draining, when=status.has_task), status.has_task
        ),
    ),
    "a drain stops with tasks left": (
        "only a forced stop cuts off tasks",
        lambda: instead(
            draining, row(RUNNING, TaskEnded, STOPPED, status.finish_draining, when=status.has_task), status.has_task
        ),
    ),
    "a drain is nothing": (
        "a stop waits for tasks",
        lambda: instead(draining, row(RUNNING, Stop, STAY, status.ignore, when=status.drains), status.drains),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_in_the_rules_of_a_status_breaks_a_property(mutant: Any) -> None:
    """Each of these mutants breaks the property with these words."""
    must_be_found(mutant)
