"""Budgets without force: a mutant of the lease and a short trace of each."""

from typing import Any, Final

from declared import rebuilt
from lifefold.core.kernel import STAY, Step, replace, row
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.account import Reservation
from lifefold.core.lifecycles.budget.lease import Expire, Lease, Reserve, Settle, State
from mutated import shipped, way_to
from property_checks import changed

SPENDING: Final = (Reserve, Settle)


def test_a_lease_that_is_used_up_is_over() -> None:
    """NousResearch/hermes-agent#91713: a loop runs for five hours, and a spent budget does not end it."""
    old = shipped("lease")
    endless = rebuilt(old, rows=[each for each in old.rows if each.when is not lease.uses_up])
    trace = way_to("is over when used up", endless, said=SPENDING)
    assert "Settle(name='a', cost_microusd=100)   ACTIVE" in trace[-1]


def _set_aside(x: Lease, e: Reserve) -> Step[Lease, Any]:
    held = (*x.account.reservations, Reservation(e.name, e.amount_microusd))
    return Step(replace(x, account=replace(x.account, reservations=held)))


def test_no_reservation_exceeds_the_grant() -> None:
    """github/app#2591: a session cannot have a limit."""
    unlimited = changed(shipped("lease"), "Reserve(name", when=None, action=_set_aside)
    trace = way_to("cap is kept", unlimited, said=SPENDING)
    assert "Reserve(name='c', amount_microusd=1000)" in trace[-1]


def _is_named(_x: Lease, e: Reserve) -> bool:
    return e.amount_microusd > 0


def test_the_ceiling_is_no_advice() -> None:
    """sortie-ai/sortie#240: the budget told to the agent is not enforced."""
    old = shipped("lease")
    advised = rebuilt(old, rows=(*old.rows, row(State.EXPIRED, Reserve, STAY, _set_aside, when=_is_named)))
    trace = way_to("only an active lease reserves, and no more than is free", advised, said=(*SPENDING, Expire))
    assert "ACTIVE → EXPIRED" in trace[-2]
    assert "Reserve(" in trace[-1]


def _fits_what_is_spent(x: Lease, e: Reserve) -> bool:
    return x.account.spent + e.amount_microusd <= x.account.cap


def _held_beside(x: Lease, e: Reserve) -> Step[Lease, Any]:
    return _set_aside(x, replace(e, name=f"{e.name}{len(x.account.reservations)}"))


def test_reservations_in_progress_count() -> None:
    """QuintinShaw/pi-dynamic-workflows#71: several sessions pass a gate that looks at spent money only."""
    after_the_fact = changed(shipped("lease"), "Reserve(name", when=_fits_what_is_spent, action=_held_beside)
    trace = way_to("cap is kept", after_the_fact, said=SPENDING)
    assert ["Reserve(name='a', amount_microusd=3)" in line for line in trace] == [True, True]


def _as_estimated(x: Lease, e: Settle) -> Step[Lease, Any]:
    held = x.account.held(e.name)
    estimate = e.cost_microusd if held is None else held.amount
    return lease.settle(x, replace(e, cost_microusd=min(e.cost_microusd, estimate)))


def test_the_cost_is_what_it_has_cost() -> None:
    """calebevans/mulder#148: a wrong price table prevents the cap from being reached."""
    cheap = changed(shipped("lease"), "row(ANY, Settle", action=_as_estimated)
    trace = way_to("the cost grows by settlements and charges only", cheap, said=SPENDING)
    assert "Settle(name='a', cost_microusd=100)" in trace[-1]
