"""The examples of events: each rule about what an event says is broken here, and a property says so."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from lifefold.core.fleet.board import worker_slot
from lifefold.core.kernel import STAY, Machine, Step, replace, row
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session_profiles import LimitsChanged, in_fleet
from lifefold.interpreters.check import Bounds, Outcome, check

FEW: Final = Bounds(depth=2, compared=0)
"""A broken rule is seen in the first steps."""

NOT_STOPPED: Final = tuple(each for each in session.State if each is not session.State.STOPPED)


def broken(machine: Machine[Any]) -> list[str]:
    """Return the properties that a machine breaks in its first steps."""
    return [each.name for each in check(machine, bounds=FEW).broken() if each.outcome is Outcome.BROKEN]


@pytest.mark.parametrize("field", session.Limits.__struct_fields__)
def test_a_limit_that_is_not_changed_with_the_others_breaks_a_property(field: str) -> None:
    """The examples have limits that differ from the usual ones in every field."""

    def forgets(s: session.Session, e: LimitsChanged) -> Step[session.Session, Any]:
        return Step(replace(s, limits=replace(e.limits, **{field: getattr(s.limits, field)})))

    mutant = in_fleet.replacing(row(NOT_STOPPED, LimitsChanged, STAY, forgets))
    assert "the time limit of a session is the last one set" in broken(mutant)
    assert not broken(in_fleet)


def _roles_alone(s: worker_slot.WorkerSlot, e: worker_slot.Reassigned) -> Step[worker_slot.WorkerSlot, Any]:
    return Step(replace(s, roles=e.roles))


def _time_alone(s: worker_slot.WorkerSlot, e: worker_slot.Reassigned) -> Step[worker_slot.WorkerSlot, Any]:
    return Step(replace(s, adaptive=e.adaptive))


def _time_by_roles(s: worker_slot.WorkerSlot, e: worker_slot.Reassigned) -> Step[worker_slot.WorkerSlot, Any]:
    return Step(replace(s, roles=e.roles, adaptive=bool(e.roles)))


def _roles_by_time(s: worker_slot.WorkerSlot, e: worker_slot.Reassigned) -> Step[worker_slot.WorkerSlot, Any]:
    return Step(replace(s, roles=e.roles if e.adaptive else (), adaptive=e.adaptive))


@pytest.mark.parametrize("reassign", [_roles_alone, _time_alone, _time_by_roles, _roles_by_time])
def test_a_part_of_what_an_agent_is_reassigned_that_is_lost_breaks_a_property(reassign: Callable[..., Any]) -> None:
    """The examples have roles with and without a time that adapts, and the other way round."""
    mutant = worker_slot.machine.replacing(row(worker_slot.PRESENT, worker_slot.Reassigned, STAY, reassign))
    assert broken(mutant) == ["an agent has the roles of the last plan"]
    assert not broken(worker_slot.machine)


def test_a_session_that_has_erred_may_err_once_more_with_its_new_limits() -> None:
    """The stated limits of an example are small enough for that, after the errors of the check."""

    def at_once(s: session.Session, e: LimitsChanged) -> Step[session.Session, Any]:
        return Step(replace(s, limits=e.limits))

    mutant = in_fleet.replacing(row(NOT_STOPPED, LimitsChanged, STAY, at_once))
    begun = session.Session(limits=session.Limits(max_consecutive_errors=2, max_total_errors=3))
    found = check(mutant.starting(begun), bounds=Bounds(compared=0)).broken()
    assert "the time limit of a session is the last one set" in [each.name for each in found]
