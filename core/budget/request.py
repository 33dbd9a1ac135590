"""A request for more budget: it is decided once, by approval, rejection or withdrawal.

Whoever comes second finds it decided: no row leaves APPROVED, REJECTED or CANCELLED. Less may be granted than was asked
for, never more. An approval is a decision and moves no money: whoever carries it out adds ``granted_microusd`` to the
holder's lease (``lease.AddBudget``).
"""

from typing import Any, Final, Never

from lifefold.core.kernel import (
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    always_step,
    replace,
    row,
    sometimes,
)
from lifefold.core.kernel import State as AnyLifecycleState


class State(AnyLifecycleState):
    """The four states of a request."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"


class Approve(Event, frozen=True):
    """Somebody grants this much."""

    amount_microusd: int
    by: str = ""

    @classmethod
    def examples(cls) -> tuple["Approve", ...]:
        """Return one within what is asked for, and one above it."""
        return cls(1), cls(2)


class Reject(Event, frozen=True):
    """Somebody refuses it."""

    reason: str = ""
    by: str = ""


class Cancel(Event, frozen=True):
    """Whoever asked does not need it any more."""


class BudgetRequest(Record, frozen=True):
    """A request by ``holder`` for ``asked_microusd``, and what was granted."""

    state: State = State.PENDING
    holder: str = ""
    asked_microusd: int = 1
    granted_microusd: int = 0
    reason: str = ""
    by: str = ""


def is_within(q: BudgetRequest, e: Approve) -> bool:
    """Something is granted, and not more than was asked for."""
    return 0 < e.amount_microusd <= q.asked_microusd


def approve(q: BudgetRequest, e: Approve) -> Step[BudgetRequest, Never]:
    """Keep how much, and who."""
    return Step(replace(q, granted_microusd=e.amount_microusd, by=e.by))


def reject(q: BudgetRequest, e: Reject) -> Step[BudgetRequest, Never]:
    """Keep why, and who."""
    return Step(replace(q, reason=e.reason, by=e.by))


def granted_means_approved(q: BudgetRequest) -> bool:
    """Money is granted by an approval and by nothing else."""
    return (q.granted_microusd > 0) is (q.state is State.APPROVED)


def is_decided_once(step: Transition) -> bool:
    """A request that is decided is not decided again."""
    return step.before is None or step.before.state is State.PENDING


def grants_at_most_what_was_asked(step: Transition) -> bool:
    """Less may be granted than was asked for, never more."""
    q: BudgetRequest = step.after.record
    return q.granted_microusd <= q.asked_microusd


PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("a request is decided once", is_decided_once),
    always_step("no more is granted than was asked for", grants_at_most_what_was_asked),
    sometimes("something is granted", lambda e: e.record.granted_microusd > 0),
    sometimes("a request is rejected", lambda e: e.state is State.REJECTED),
    sometimes("a request is withdrawn", lambda e: e.state is State.CANCELLED),
)


machine = Machine(
    "budget-request",
    BudgetRequest(),
    about="a request for more budget: pending, then approved, rejected or cancelled, once",
    rows=(
        row(State.PENDING, Approve, State.APPROVED, approve, when=is_within),
        row(State.PENDING, Reject, State.REJECTED, reject),
        row(State.PENDING, Cancel, State.CANCELLED),
    ),
    final={State.APPROVED, State.REJECTED, State.CANCELLED},
    invariants=(granted_means_approved,),
    properties=PROMISES,
)
