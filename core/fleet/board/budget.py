"""A budget: the limits of the whole fleet, of one agent or of one task, and the amounts spent and reserved.

Before the first session of a claim begins, each budget of the claim reserves a *share* of every limited resource. At
the end of the claim, the share is settled against the cost of its sessions. So spent and reserved amounts together
never exceed a cap. Costs beyond the share are kept as the ``overrun`` of the account
(``core.lifecycles.budget.account``). An account with an overrun reserves nothing.

A budget with a period is refilled when the period is over. A period begins with the first share after a refill, like
the usage windows of model providers.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final, Never

import msgspec

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Pattern,
    Record,
    Step,
    Transition,
    accepts,
    after,
    always,
    always_step,
    anywhere,
    replace,
    row,
    sometimes,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Amounts, Resource
from lifefold.core.lifecycles.property_forms import exits_on, keeps_time


class State(AnyLifecycleState):
    """The five states of a budget."""

    RENEWED = "Renewed"
    FULL = "Full"
    OPEN = "Open"
    HELD = "Held"
    SPENT = "Spent"


FIRST: Final = "A1"
"""A worker that may hold a share, for examples."""


class Reserve(Event, frozen=True):
    """Reserve a share for the claim of the worker ``holder``."""

    holder: str = FIRST

    @classmethod
    def examples(cls) -> tuple["Reserve", ...]:
        """Return the reservations of two workers."""
        return cls(FIRST), cls("A2")


class Settle(Event, frozen=True):
    """The claim of ``holder`` is over, and has cost ``cost``."""

    holder: str = FIRST
    cost: Amounts = Amounts()

    @classmethod
    def examples(cls) -> tuple["Settle", ...]:
        """Return claims of two workers that cost nothing, one share, and more than a share."""
        return tuple(cls(holder, Amounts(sessions=count)) for holder in (FIRST, "A2") for count in range(3))


class Raise(Event, frozen=True):
    """An operator raises the caps by these amounts."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    by: Amounts = Amounts(sessions=1)
    reason: str = ""


class Recapped(Event, frozen=True):
    """The plan changes the caps: ``more`` or ``less`` of each resource. Spent amounts stay."""

    more: Amounts = Amounts()
    less: Amounts = Amounts()

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Recapped", ...]:
        """Return one session more, and one less if a session is free."""
        frees = all(each.account.free >= 1 for each in record.lines)
        return cls(more=Amounts(sessions=1)), *((cls(less=Amounts(sessions=1)),) if frees else ())


class Refilled(Event, frozen=True):
    """The period is over: its costs no longer count."""


class Reopened(Event, frozen=True):
    """The next period begins now if a share is reserved, and otherwise with the first share."""


class Line(msgspec.Struct, frozen=True):
    """A limited resource, its account, and the share that a claim reserves."""

    resource: Resource
    share: int
    account: Account

    @property
    def suffices(self) -> bool:
        """Whether the line has a share left, and no overrun."""
        return self.account.free >= self.share and not self.account.overrun


class Budget(Record, frozen=True):
    """The limits of a fleet, an agent or a task. It is refilled after ``period_ms``; 0 is never.

    ``charges_the_silent``: a session that does not report its cost is charged its whole share.
    """

    state: State = State.FULL
    lines: tuple[Line, ...] = (Line(Resource.SESSIONS, 1, Account(cap=2)),)
    period_ms: int = 0
    charges_the_silent: bool = False

    @property
    def suffices(self) -> bool:
        """Whether every line has a share left."""
        return all(each.suffices for each in self.lines)

    @property
    def holders(self) -> tuple[str, ...]:
        """The workers that have a share reserved."""
        return tuple(each.name for each in self.lines[0].account.reservations) if self.lines else ()

    @property
    def share(self) -> Amounts:
        """The amounts that a claim reserves."""
        return Amounts(**{each.resource.value: each.share for each in self.lines})


def is_spent_for_good(p: Budget) -> bool:
    """Tell whether the budget is spent and is not refilled by time."""
    return p.state is State.SPENT and not p.period_ms


# Guards


def may_reserve(p: Budget, e: Reserve) -> bool:
    """Every line has a share left, and the holder has none reserved."""
    return p.suffices and e.holder not in p.holders


def leaves_a_share(p: Budget, e: Reserve) -> bool:
    """Another share is left after the reservation."""
    return may_reserve(p, e) and set_aside(p, e).record.suffices


def holds(p: Budget, e: Settle) -> bool:
    """The holder has a share reserved."""
    return e.holder in p.holders


def frees_a_share(p: Budget, e: Settle) -> bool:
    """A share is left after the settlement."""
    return holds(p, e) and settle(p, e).record.suffices


def is_not_the_last(p: Budget, e: Settle) -> bool:
    """Other workers have a share reserved."""
    return holds(p, e) and len(p.holders) > 1


def suffices_then(p: Budget, e: Raise) -> bool:
    """Every line has a share left after the raise."""
    return add(p, e).record.suffices


def suffices_now(p: Budget, e: Recapped) -> bool:
    """Every line has a share left with the new caps."""
    return recap(p, e).record.suffices


def is_held_now(p: Budget, e: Recapped) -> bool:
    """No share is left with the new caps, and a worker has one reserved."""
    return bool(p.holders) and not suffices_now(p, e)


def is_untouched(p: Budget, _e: Reopened) -> bool:
    """No worker has a share reserved, and every line has one left."""
    return p.suffices and not p.holders


def suffices(p: Budget, _e: Reopened) -> bool:
    """Every line has a share left."""
    return p.suffices


def is_held(p: Budget, _e: Reopened) -> bool:
    """A worker has a share reserved."""
    return bool(p.holders)


# Actions


def set_aside(p: Budget, e: Reserve) -> Step[Budget, Never]:
    """Reserve a share."""
    return _each(p, lambda line: line.account.reserve(e.holder, line.share))


def settle(p: Budget, e: Settle) -> Step[Budget, Never]:
    """Settle a share against the cost of its claim. The holder may reserve another share."""
    return _each(p, lambda line: replace(line.account.settle(e.holder, e.cost.of(line.resource)), settled=()))


def add(p: Budget, e: Raise) -> Step[Budget, Never]:
    """Raise the caps."""
    return _each(p, lambda line: line.account.grant(e.by.of(line.resource)))


def recap(p: Budget, e: Recapped) -> Step[Budget, Never]:
    """Set the caps of the plan, at least the spent and reserved amounts."""
    return _each(p, lambda line: _capped(line.account, e.more.of(line.resource) - e.less.of(line.resource)))


def _capped(account: Account, by: int) -> Account:
    return account.grant(max(by, -account.free))


def refill(p: Budget, _e: Refilled) -> Step[Budget, Never]:
    """Clear the costs of the period; only the overrun stays spent."""
    return _each(p, lambda line: line.account.renewed())


def _each(p: Budget, change: Callable[[Line], Account]) -> Step[Budget, Never]:
    return Step(replace(p, lines=tuple(replace(line, account=change(line)) for line in p.lines)))


def period(p: Budget) -> int | None:
    """Return the length of a period in milliseconds; None without a period."""
    return p.period_ms or None


ADMITS: Final = frozenset({State.FULL, State.OPEN})
"""In these states every line has a share left."""

TOUCHED: Final = (State.OPEN, State.HELD, State.SPENT)
"""In these states a period is running."""


# Properties


def state_matches_accounts(p: Budget) -> bool:
    """The state matches the accounts: a share left of each resource, none until a settlement, or none at all."""
    if p.state is State.RENEWED:
        return True
    if p.state in ADMITS:
        return p.suffices and (p.state is State.OPEN or not p.holders)
    return not p.suffices and (p.state is State.HELD) is bool(p.holders)


def sets_aside_alike(p: Budget) -> bool:
    """A worker with a reservation has a full share of each resource reserved."""
    each = [tuple((held.name, held.amount) for held in line.account.reservations) for line in p.lines]
    return each == [tuple((name, line.share) for name in p.holders) for line in p.lines]


def spends_the_reported_cost(step: Transition) -> bool:
    """Only the cost of a settled claim is spent, all of it, and only an operator or the plan changes a cap."""
    if isinstance(step.event, Refilled):
        return True
    cost = step.event.cost if isinstance(step.event, Settle) else Amounts()
    more, less = _granted(step.event)
    pairs = zip(step.was.lines, step.after.record.lines, strict=True)
    return all(
        now.account.cost == was.account.cost + cost.of(was.resource)
        and now.account.cap == was.account.cap + more.of(was.resource) - min(less.of(was.resource), was.account.free)
        for was, now in pairs
    )


def _granted(event: Event) -> tuple[Amounts, Amounts]:
    """Return how much more, and how much less, may be spent after an event."""
    if isinstance(event, Recapped):
        return event.more, event.less
    return (event.by if isinstance(event, Raise) else Amounts()), Amounts()


def sets_aside_what_is_asked(step: Transition) -> bool:
    """A share is reserved for the requesting worker alone, until it is settled."""
    was: tuple[str, ...] = step.was.holders
    now: tuple[str, ...] = step.after.record.holders
    match step.event:
        case Reserve(holder=holder):
            return now == (*was, holder)
        case Settle(holder=holder):
            return now == tuple(each for each in was if each != holder)
        case _:
            return now == was


def renewal_keeps_the_overrun(step: Transition) -> bool:
    """At the end of a period only the overrun stays spent."""
    if not isinstance(step.event, Refilled) or step.before is None:
        return True
    pairs = zip(step.before.record.lines, step.after.record.lines, strict=True)
    return step.entered is State.RENEWED and all(
        now.account.cost == was.account.overrun and now.account.cap == was.account.cap for was, now in pairs
    )


def period_ends_by_time(step: Transition) -> bool:
    """Only the end of its period renews a budget, and the budget is then full if no share is reserved.

    An operator's raise and a new plan begin no period.
    """
    p: Budget = step.after.record
    if isinstance(step.event, Reopened) and (p.state is State.FULL) is not (p.suffices and not p.holders):
        return False
    if isinstance(step.event, Raise | Recapped) and step.was.state is State.FULL and p.suffices:
        return p.state is State.FULL
    return (p.state is State.RENEWED) is isinstance(step.event, Refilled)


_MORE: Final = Pattern(Settle, "FIRST, with more", lambda e: e == Settle(FIRST, Amounts(sessions=2)))
_LESS: Final = Pattern(Recapped, "less", lambda e: e.less != Amounts())

machine: Machine[Any] = Machine(
    "budget",
    Budget(),
    about="the limits of a fleet, an agent or a task: amounts are reserved before they are spent",
    rows=(
        row((State.FULL, State.OPEN), Reserve, State.OPEN, set_aside, when=leaves_a_share),
        row((State.FULL, State.OPEN), Reserve, State.HELD, set_aside, when=may_reserve),
        row((State.OPEN, State.HELD), Settle, State.OPEN, settle, when=frees_a_share),
        row((State.OPEN, State.HELD), Settle, State.HELD, settle, when=is_not_the_last),
        row((State.OPEN, State.HELD), Settle, State.SPENT, settle, when=holds),
        row(ADMITS, Raise, STAY, add),
        row((State.HELD, State.SPENT), Raise, State.OPEN, add, when=suffices_then),
        row((State.HELD, State.SPENT), Raise, STAY, add),
        row(State.FULL, Recapped, STAY, recap, when=suffices_now),
        row(TOUCHED, Recapped, State.OPEN, recap, when=suffices_now),
        row((State.FULL, State.OPEN, State.HELD), Recapped, State.HELD, recap, when=is_held_now),
        row((State.FULL, *TOUCHED), Recapped, State.SPENT, recap),
        row(TOUCHED, Refilled, State.RENEWED, refill),
        row(State.RENEWED, Reopened, State.FULL, when=is_untouched),
        row(State.RENEWED, Reopened, State.OPEN, when=suffices),
        row(State.RENEWED, Reopened, State.HELD, when=is_held),
        row(State.RENEWED, Reopened, State.SPENT),
    ),
    during={TOUCHED: after(period, Refilled)},
    properties=(
        always(
            "spent and reserved amounts together never exceed the cap",
            lambda e: all(each.account.sound for each in e.record.lines),
        ),
        always("the state of a budget matches what is left in it", lambda e: state_matches_accounts(e.record)),
        always("every holder has a share of each limited resource", lambda e: sets_aside_alike(e.record)),
        always_step(
            "the cost of a claim is counted exactly once, and nothing else is", spends_the_reported_cost, on=Event
        ),
        always_step("a share is reserved from its request until it is settled", sets_aside_what_is_asked, on=Event),
        always_step("a period ends by time alone, and begins with the first share", period_ends_by_time, on=Event),
        always_step("a new period begins with the overrun, and nothing else spent", renewal_keeps_the_overrun),
        *keeps_time({Refilled: (TOUCHED, period)}),
        always(
            "a period that has begun ends by its timer",
            lambda e: (e.find(Refilled.__name__) is not None) is (e.state in TOUCHED and e.record.period_ms > 0),
        ),
        accepts(
            "a worker without a share can reserve one where one is left",
            {(State.FULL, State.OPEN): (Reserve,)},
            when=lambda e: any(each.holder not in e.record.holders for each in Reserve.examples()),
        ),
        accepts(
            "a claim of any cost can be settled",
            {(State.OPEN, State.HELD): (Settle, _MORE)},
            when=lambda e: FIRST in e.record.holders,
        ),
        accepts(
            "an operator can raise a budget at any time, and a plan can change its caps",
            {(*TOUCHED, State.FULL): (Raise, Recapped), ADMITS: (_LESS,)},
        ),
        *exits_on(State.HELD, Settle),
        *exits_on(State.SPENT, Raise),
        *exits_on(State.RENEWED, Reopened),
        sometimes("a budget is spent", lambda e: e.state is State.SPENT),
        sometimes("more is spent than was reserved", lambda e: any(line.account.overrun for line in e.record.lines)),
    ),
    rests=anywhere,
)
