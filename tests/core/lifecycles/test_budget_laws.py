"""The laws of the budget gate, over every sequence of operations: the cap holds, and no money is made or lost."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lifefold.core.kernel import Step, replace
from lifefold.core.lifecycles.budget.account import RESERVATIONS_LIMIT, SETTLED_LIMIT, Account, Reservation, Verdict
from lifefold.core.lifecycles.budget.lease import (
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

NAMES: Final = st.sampled_from("abcdef")
AMOUNTS: Final = st.integers(0, 60)


class Ledger(RuleBasedStateMachine):
    """A lease, and beside it an independent account of its grants, its costs and its returns."""

    @initialize(cap=st.integers(0, 100))
    def open(self, cap: int) -> None:
        """Begin with a lease of so much."""
        self.lease = Lease(holder="h", account=Account(cap=cap))
        self.granted, self.cost, self.back = cap, 0, 0
        self.open_work: dict[str, int] = {}

    def take(self, event: Reserve | Settle | Refund | Expire | Refresh | Close | Revoke) -> Lease | None:
        """Let the lease take it, and collect what it returns."""
        step = machine.step(self.lease, event)
        if not isinstance(step, Step):
            return None
        self.lease = step.record
        self.back += sum(each.amount_microusd for each in step.effects if isinstance(each, ReturnBudget))
        return self.lease

    @rule(name=NAMES, amount=AMOUNTS)
    def reserve(self, name: str, amount: int) -> None:
        """Ask for money; what is admitted becomes work."""
        free = self.granted - self.cost - self.back - sum(self.open_work.values())
        if self.take(Reserve(name, amount)) is not None:
            assert self.open_work.get(name, amount) == amount
            assert name in self.open_work or amount <= free
            self.open_work[name] = amount

    @rule(name=NAMES, cost=AMOUNTS)
    def settle(self, name: str, cost: int) -> None:
        """Work that was open is settled in any state, no other is."""
        assert (self.take(Settle(name, cost)) is not None) is (name in self.open_work)
        self.cost += cost if self.open_work.pop(name, None) is not None else 0

    @rule(name=NAMES)
    def refund(self, name: str) -> None:
        """The same for what was not done."""
        assert (self.take(Refund(name)) is not None) is (name in self.open_work)
        self.open_work.pop(name, None)

    @rule()
    def expire(self) -> None:
        """The time is over."""
        self.take(Expire())

    @rule(more=AMOUNTS)
    def refresh(self, more: int) -> None:
        """More time, more money."""
        self.granted += more if self.take(Refresh(more)) is not None else 0

    @precondition(lambda self: len(self.open_work) > 0)
    @rule(event=st.sampled_from([Close(), Revoke()]))
    def end(self, event: Close | Revoke) -> None:
        """The lease is over while work is open."""
        self.take(event)

    @invariant()
    def the_cap_is_kept(self) -> None:
        """In every state that can be reached."""
        account = self.lease.account
        assert account.spent + account.reserved <= account.cap

    @invariant()
    def no_money_is_made_or_lost(self) -> None:
        """What was granted is spent, reserved, returned or free, and the amounts are those of the other books."""
        account = self.lease.account
        parts = (account.spent, account.reserved, account.returned, account.free)
        assert min(parts) >= 0
        assert sum(parts) == account.cap == self.granted
        assert account.reserved == sum(self.open_work.values())
        assert account.cost == account.spent + account.overrun == self.cost
        assert account.returned == self.back

    @invariant()
    def the_machines_invariants_hold(self) -> None:
        """They say the same of the record alone."""
        assert [holds.__name__ for holds in machine.invariants if not holds(self.lease)] == []

    @invariant()
    def what_is_over_keeps_nothing(self) -> None:
        """Neither free money nor an overrun that could be paid."""
        if self.lease.state in {State.CLOSED, State.REVOKED}:
            assert self.lease.account.free == 0


TestTheGateKeepsItsBooks = Ledger.TestCase


@given(cap=st.integers(0, 1_000), costs=st.lists(st.integers(0, 300), max_size=20))
def test_what_is_admitted_and_costs_no_more_than_reserved_never_overshoots(cap: int, costs: list[int]) -> None:
    """However much is under way at a time.

    QuintinShaw/pi-dynamic-workflows#71: gates that look later overshoot. github/app#2591: no limit for a session.
    """
    account, admitted = Account(cap=cap), 0
    for number, cost in enumerate(costs):
        account = account.reserve(str(number), cost)
        admitted += cost if account.held(str(number)) else 0
    for number, cost in enumerate(costs):
        account = account.settle(str(number), cost)
    assert account.spent == admitted <= cap
    assert account.overrun == 0


def test_the_same_reservation_twice_is_one() -> None:
    """Its name makes it so; with another amount it is another one, and refused."""
    account = Account(cap=100).reserve("a", 30)
    assert account.verdict("a", 30) is Verdict.HELD
    assert account.reserve("a", 30) is account
    assert account.verdict("a", 31) is Verdict.DIFFERENT
    assert account.reserve("a", 31) is account
    assert account.held("a") == Reservation("a", 30)
    assert [verdict for verdict in Verdict if verdict.admits] == [Verdict.ADMITTED, Verdict.HELD]


def test_settling_twice_changes_nothing_and_the_name_is_not_used_again() -> None:
    """A request that is delivered again after its end is not work that is done again."""
    account = Account(cap=100).reserve("a", 30).settle("a", 20)
    assert account.settle("a", 20) is account
    assert account.refund("a") is account
    assert account.verdict("a", 30) is Verdict.SETTLED
    assert account.settle("unknown", 5) is account


def test_a_settlement_above_its_reservation_is_paid_from_what_is_free() -> None:
    """The cap is not touched by it, and the cost is told as it is."""
    account = Account(cap=100).reserve("a", 30).settle("a", 50)
    assert (account.spent, account.overrun, account.free) == (50, 0, 50)


@pytest.mark.parametrize("estimate", [2, 50, 98])
def test_a_wrong_estimate_counts_only_until_the_cost_is_known(estimate: int) -> None:
    """A wrong price table neither uses a budget up nor hides a cost (calebevans/mulder#148)."""
    account = Account(cap=100).reserve("a", estimate).settle("a", 30)
    assert (account.cost, account.free) == (30, 70)


def test_what_is_not_covered_is_an_overrun_that_blocks_and_is_paid_first() -> None:
    """``spent`` stays within the cap, nothing new is admitted, and money that comes free pays the overrun."""
    account = Account(cap=100).reserve("a", 60).reserve("b", 40).settle("a", 75)
    assert (account.spent, account.overrun, account.free) == (60, 15, 0)
    assert account.verdict("c", 1) is Verdict.EXCEEDED
    paid = account.refund("b")
    assert (paid.spent, paid.overrun, paid.free) == (75, 0, 25)
    assert account.grant(10).overrun == 5


def test_a_closed_account_admits_nothing_and_returns_what_comes_free() -> None:
    """After it has paid what was overrun."""
    account = Account(cap=100).reserve("a", 60).reserve("b", 40).settle("a", 75).close()
    assert account.verdict("c", 1) is Verdict.CLOSED
    assert account.verdict("b", 40) is Verdict.CLOSED
    settled = account.settle("b", 10)
    assert (settled.spent, settled.returned, settled.overrun) == (85, 15, 0)


def test_amounts_below_one_are_refused() -> None:
    """No money is made by asking for less than nothing, and none is spent by having asked for nothing."""
    account = Account(cap=100).reserve("a", 30)
    assert account.verdict("b", -1) is Verdict.TOO_LITTLE
    assert account.verdict("b", 0) is Verdict.TOO_LITTLE
    assert account.charge(0) is account
    assert account.charge(-1) is account
    assert account.settle("a", -1) is account


def test_what_an_account_keeps_has_limits() -> None:
    """So many reservations at a time, and so many names remembered."""
    account = Account(cap=10**6)
    for number in range(RESERVATIONS_LIMIT):
        account = account.reserve(str(number), 1)
    assert account.verdict("one more", 1) is Verdict.CROWDED
    for number in range(RESERVATIONS_LIMIT):
        account = account.settle(str(number), 1)
    assert len(account.settled) == SETTLED_LIMIT
    assert account.spent == RESERVATIONS_LIMIT


def test_soundness_notices_what_it_is_there_for() -> None:
    """More spent than there is, an overrun beside free money, a closed account that keeps something."""
    sound = Account(cap=100)
    assert sound.sound
    assert not replace(sound, spent=101).sound
    assert not replace(sound, overrun=1).sound
    assert not replace(sound, closed=True).sound
    assert not replace(sound, returned=-1).sound
