"""Leases: lateness, exhaustion and repetition, one test for each decision and thread."""

from lifefold.core.kernel import Event, IllegalTransition, Step
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.account import Account, Verdict
from lifefold.core.lifecycles.budget.lease import (
    Charge,
    Close,
    Expire,
    Lease,
    Refresh,
    Refund,
    Reserve,
    Revoke,
    Settle,
    State,
    machine,
)
from lifefold.effects import ReturnBudget


def after(*events: Event) -> Lease:
    """Return a lease of 100 after these events, all of them accepted."""
    record = Lease(holder="agent_1", account=Account(cap=100))
    for event in events:
        step = machine.step(record, event)
        assert isinstance(step, Step), str(step)
        record = step.record
    return record


def returned_by(record: Lease, event: Event) -> list[int]:
    step = machine.step(record, event)
    assert isinstance(step, Step), str(step)
    return [effect.amount_microusd for effect in step.effects if isinstance(effect, ReturnBudget)]


def is_refused(record: Lease, event: Event) -> bool:
    return isinstance(machine.step(record, event), IllegalTransition)


def test_the_gate_says_the_same_of_a_held_reservation_as_the_table() -> None:
    """A lease that is over takes no reservation, not even one that it holds: usage requires ACTIVE (B19)."""
    for end, verdict in ((Expire(), Verdict.EXPIRED), (Close(), Verdict.CLOSED), (Revoke(), Verdict.CLOSED)):
        record = after(Reserve("a", 30), end)
        assert lease.verdict(record, "a", 30) is verdict
        assert is_refused(record, Reserve("a", 30))
    assert lease.verdict(after(Reserve("a", 30)), "a", 30) is Verdict.HELD


def test_a_report_after_the_end_is_recorded_and_returns_the_rest() -> None:
    """So nothing that was granted is lost (B12, B19)."""
    closed = after(Reserve("a", 30), Close())
    assert (closed.account.returned, closed.account.reserved) == (70, 30)
    assert returned_by(closed, Settle("a", 20)) == [10]
    assert returned_by(closed, Refund("a")) == [30]
    assert returned_by(closed, Settle("a", 30)) == []


def test_a_revoked_lease_says_why() -> None:
    """EXPIRED can be revoked too (B19)."""
    assert after(Expire(), Revoke("token invalid")).reason == "token invalid"


def test_the_last_of_the_money_expires_the_lease() -> None:
    """Only when nothing is reserved or free any more; with more money it goes on."""
    nearly = after(Reserve("a", 60), Reserve("b", 40), Settle("a", 60))
    assert nearly.state is State.ACTIVE
    used_up = after(Reserve("a", 60), Reserve("b", 40), Settle("a", 60), Settle("b", 40))
    assert used_up.state is State.EXPIRED
    assert is_refused(used_up, Refresh())
    assert machine.step(used_up, Refresh(1)).record.state is State.ACTIVE  # type: ignore[union-attr] # it is a step


def test_whatever_uses_up_the_last_of_the_money_expires_the_lease() -> None:
    """Also the release of a reservation that only pays an overrun of another one, and the charges."""
    overrun = (Reserve("a", 60), Reserve("b", 40), Settle("a", 100))
    assert after(*overrun).state is State.ACTIVE
    assert after(*overrun, Refund("b")).state is State.EXPIRED
    assert after(Charge(100)).state is State.EXPIRED
    assert after(Charge(99)).state is State.ACTIVE


def test_what_is_charged_is_paid_from_what_is_free_and_blocks_until_it_is_paid() -> None:
    """As an overrun of its own; what is over is charged with nothing (B7)."""
    charged = after(Reserve("a", 60), Charge(50)).account
    assert (charged.spent, charged.overrun, charged.free) == (40, 10, 0)
    assert after(Expire(), Charge(50)).account.free == 50
    assert is_refused(after(), Charge(0))
    assert is_refused(after(Close()), Charge(1))


def test_a_lease_of_nothing_admits_nothing() -> None:
    """Nor nothing itself, or a reservation of it could be settled at any cost. It is active all the same."""
    assert machine.initial.state is State.ACTIVE
    for amount in (0, 1):
        assert is_refused(Lease(), Reserve("a", amount))
    assert is_refused(after(), Reserve("a", 0))
    assert lease.verdict(after(), "a", 0) is Verdict.TOO_LITTLE
