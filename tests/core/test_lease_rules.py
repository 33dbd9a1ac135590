"""What a lease does about lateness, exhaustion and repetition, one test for each decision and thread."""

from lifefold.core.budget import lease
from lifefold.core.budget.account import Account, Verdict
from lifefold.core.budget.lease import (
    AddBudget,
    Close,
    Expire,
    GraceExceeded,
    Lease,
    Refresh,
    Refund,
    Reserve,
    Revoke,
    Settle,
    State,
    machine,
)
from lifefold.core.kernel import Event, IllegalTransition, Step
from lifefold.effects import ReturnBudget


def after(*events: Event) -> Lease:
    """Return a lease of 100 to which this has happened, each of it taken."""
    record = Lease(holder="agent_1", account=Account(cap_microusd=100))
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


def test_an_expired_lease_admits_nothing() -> None:
    """Usage requires ACTIVE (B19; imtms/tagent-core#56), and the gate says why."""
    expired = after(Expire())
    assert is_refused(expired, Reserve("a", 1))
    assert lease.verdict(expired, "a", 1) is Verdict.EXPIRED
    assert lease.verdict(after(), "a", 1) is Verdict.ADMITTED


def test_a_report_after_expiry_is_recorded() -> None:
    """The money is gone, whatever the clock says (B12; majiayu000/harness#1878: late reports are not dropped)."""
    assert after(Reserve("a", 30), Expire(), Settle("a", 20)).account.spent_microusd == 20


def test_a_report_after_the_end_is_recorded_and_returns_the_rest() -> None:
    """So nothing that was granted is lost (B12, B19)."""
    closed = after(Reserve("a", 30), Close())
    assert (closed.account.returned_microusd, closed.account.reserved_microusd) == (70, 30)
    assert returned_by(closed, Settle("a", 20)) == [10]
    assert returned_by(closed, Refund("a")) == [30]
    assert returned_by(closed, Settle("a", 30)) == []


def test_a_refresh_in_the_grace_goes_on() -> None:
    """With what was left, and what comes with it."""
    assert after(Reserve("a", 30), Expire(), Refresh(5)).account == after(Reserve("a", 30), AddBudget(5)).account


def test_an_expired_lease_closes_by_itself_and_returns_what_is_left() -> None:
    """The grace is over (B19)."""
    assert after(Expire(), GraceExceeded()).state is State.CLOSED
    assert returned_by(after(Expire()), GraceExceeded()) == [100]


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


def test_a_lease_of_nothing_admits_nothing() -> None:
    """It is active all the same: there is nothing to be used up."""
    assert machine.initial.state is State.ACTIVE
    assert is_refused(Lease(), Reserve("a", 1))
