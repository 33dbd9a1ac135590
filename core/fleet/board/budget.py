"""A budget: what may be spent by the whole fleet, by one agent, or on one task, and what became of that.

Before the first session of a claim begins, a *share* of everything that is limited is set aside from every budget that
the claim concerns; when its worker is through with it, the share is settled with what the sessions have cost. So what
is spent and what is set aside are together never more than a cap. What a session costs beyond its share is the agent's
doing and is kept as the ``overrun`` of the account (see ``core.budget.account``); nothing is set aside as long as there
is one.

A budget with a period is filled anew when that is over: it begins with the first share that is taken after a filling,
as the windows of those do who sell tokens.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final, Never

import msgspec

from lifefold.core.kernel import (
    STAY,
    Entity,
    Event,
    Machine,
    Pattern,
    Property,
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
"""A worker who may hold a share, for examples."""


class Reserve(Event, frozen=True):
    """A share is to be set aside for the claim that ``holder`` has been given."""

    holder: str = FIRST

    @classmethod
    def examples(cls) -> tuple["Reserve", ...]:
        """Return those of two workers."""
        return cls(FIRST), cls("A2")


class Settle(Event, frozen=True):
    """The holder is through with its claim, which has cost so much."""

    holder: str = FIRST
    cost: Amounts = Amounts()

    @classmethod
    def examples(cls) -> tuple["Settle", ...]:
        """Return claims of two workers: never begun, of a share, and of more."""
        return tuple(cls(holder, Amounts(sessions=count)) for holder in (FIRST, "A2") for count in range(3))


class Raise(Event, frozen=True):
    """A person lets so much more be spent."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    by: Amounts = Amounts(sessions=1)
    reason: str = ""


class Recapped(Event, frozen=True):
    """The plan has other caps: so much ``more``, or so much ``less``, of each resource. What is spent stays."""

    more: Amounts = Amounts()
    less: Amounts = Amounts()

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Recapped", ...]:
        """Return a session more, and one less if that many are free."""
        frees = all(each.account.free >= 1 for each in record.lines)
        return cls(more=Amounts(sessions=1)), *((cls(less=Amounts(sessions=1)),) if frees else ())


class Refilled(Event, frozen=True):
    """The period is over: what was spent in it counts no more."""


class Reopened(Event, frozen=True):
    """The next period begins; or will, with the first share, if none is set aside yet."""


class Line(msgspec.Struct, frozen=True):
    """One thing that is limited, its account, and how much of it a claim is given."""

    resource: Resource
    share: int
    account: Account

    @property
    def suffices(self) -> bool:
        """Whether it has a share left."""
        return self.account.free >= self.share and not self.account.overrun


class Budget(Record, frozen=True):
    """What may be spent. ``period_ms`` is after how long it is filled anew; 0 is never.

    ``charges_the_silent``: a session that does not say what it has cost is taken to have cost its share.
    """

    state: State = State.FULL
    lines: tuple[Line, ...] = (Line(Resource.SESSIONS, 1, Account(cap=2)),)
    period_ms: int = 0
    charges_the_silent: bool = False

    @property
    def suffices(self) -> bool:
        """Whether it has a share left of everything."""
        return all(each.suffices for each in self.lines)

    @property
    def holders(self) -> tuple[str, ...]:
        """Those for whom a share is set aside."""
        return tuple(each.name for each in self.lines[0].account.reservations) if self.lines else ()

    @property
    def share(self) -> Amounts:
        """What a claim is given."""
        given = Amounts()
        for each in self.lines:
            given = given.but(each.resource, each.share)
        return given


def is_spent_for_good(p: Budget) -> bool:
    """Tell whether it is spent, and only a person may fill it."""
    return p.state is State.SPENT and not p.period_ms


# What becomes of it


def reserved(p: Budget, e: Reserve) -> Budget:
    """Return it with a share set aside."""
    return _each(p, lambda line: line.account.reserve(e.holder, line.share))


def settled(p: Budget, e: Settle) -> Budget:
    """Return it with a share turned into what the claim has cost. Its holder may have another one afterwards."""
    return _each(p, lambda line: replace(line.account.settle(e.holder, e.cost.of(line.resource)), settled=()))


def raised(p: Budget, e: Raise) -> Budget:
    """Return it with so much more."""
    return _each(p, lambda line: line.account.grant(e.by.of(line.resource)))


def recapped(p: Budget, e: Recapped) -> Budget:
    """Return it with the caps of the plan; never less than is spent and set aside."""
    return _each(p, lambda line: _capped(line.account, e.more.of(line.resource) - e.less.of(line.resource)))


def _capped(account: Account, by: int) -> Account:
    return account.grant(max(by, -account.free))


def refilled(p: Budget, _e: Refilled) -> Budget:
    """Return it as if nothing had been spent."""
    return _each(p, lambda line: line.account.renewed())


def _each(p: Budget, change: Callable[[Line], Account]) -> Budget:
    return replace(p, lines=tuple(replace(line, account=change(line)) for line in p.lines))


# Guards


def may_reserve(p: Budget, e: Reserve) -> bool:
    """There is a share left of everything, and this one holds none."""
    return p.suffices and e.holder not in p.holders


def leaves_a_share(p: Budget, e: Reserve) -> bool:
    """And there is another one left."""
    return may_reserve(p, e) and reserved(p, e).suffices


def holds(p: Budget, e: Settle) -> bool:
    """A share was set aside for it."""
    return e.holder in p.holders


def frees_a_share(p: Budget, e: Settle) -> bool:
    """And then there is one left."""
    return holds(p, e) and settled(p, e).suffices


def is_not_the_last(p: Budget, e: Settle) -> bool:
    """And there are others for whom one is set aside."""
    return holds(p, e) and len(p.holders) > 1


def suffices_then(p: Budget, e: Raise) -> bool:
    """There is a share left of everything afterwards."""
    return raised(p, e).suffices


def suffices_now(p: Budget, e: Recapped) -> bool:
    """There is a share left of everything with the new caps."""
    return recapped(p, e).suffices


def is_held_now(p: Budget, e: Recapped) -> bool:
    """There is none, and somebody holds one."""
    return bool(p.holders) and not suffices_now(p, e)


def is_untouched(p: Budget, _e: Reopened) -> bool:
    """Nobody holds a share, and there is one left of everything."""
    return p.suffices and not p.holders


def suffices(p: Budget, _e: Reopened) -> bool:
    """There is a share left of everything."""
    return p.suffices


def is_held(p: Budget, _e: Reopened) -> bool:
    """Somebody holds a share."""
    return bool(p.holders)


# Actions


def set_aside(p: Budget, e: Reserve) -> Step[Budget, Never]:
    """Set a share aside."""
    return Step(reserved(p, e))


def settle(p: Budget, e: Settle) -> Step[Budget, Never]:
    """Turn a share into what was spent."""
    return Step(settled(p, e))


def add(p: Budget, e: Raise) -> Step[Budget, Never]:
    """Let more be spent."""
    return Step(raised(p, e))


def recap(p: Budget, e: Recapped) -> Step[Budget, Never]:
    """Take the caps of the plan."""
    return Step(recapped(p, e))


def refill(p: Budget, e: Refilled) -> Step[Budget, Never]:
    """Begin anew."""
    return Step(refilled(p, e))


# Timers


def period(p: Budget) -> int | None:
    """Return after how long it is filled anew, in milliseconds; None if it never is."""
    return p.period_ms or None


ADMITS: Final = frozenset({State.FULL, State.OPEN})
"""In these there is a share left of everything."""

TOUCHED: Final = (State.OPEN, State.HELD, State.SPENT)
"""In these a period goes on."""


# Promises


def caps_are_kept(p: Budget) -> bool:
    """What is spent and what is set aside are together never more than the cap."""
    return all(each.account.sound for each in p.lines)


def is_what_it_holds(p: Budget) -> bool:
    """It says what is left: a share of everything, none for the moment, or none at all."""
    if p.state is State.RENEWED:
        return True
    if p.state in ADMITS:
        return p.suffices and (p.state is State.OPEN or not p.holders)
    return not p.suffices and (p.state is State.HELD) is bool(p.holders)


def sets_aside_alike(p: Budget) -> bool:
    """Everybody who holds a share holds one of everything."""
    each = [tuple((held.name, held.amount) for held in line.account.reservations) for line in p.lines]
    return each == [tuple((name, line.share) for name in p.holders) for line in p.lines]


def counts_what_was_said(step: Transition) -> bool:
    """Nothing is spent but what a claim has cost, and that is; nothing is granted but by a person."""
    if step.before is None or isinstance(step.event, Refilled):
        return True
    cost = step.event.cost if isinstance(step.event, Settle) else Amounts()
    more, less = _granted(step.event)
    pairs = zip(step.before.record.lines, step.after.record.lines, strict=True)
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
    """A share is set aside for who asks, until it is settled, and for nobody else."""
    if step.before is None:
        return True
    was: tuple[str, ...] = step.before.record.holders
    now: tuple[str, ...] = step.after.record.holders
    match step.event:
        case Reserve(holder=holder):
            return now == (*was, holder)
        case Settle(holder=holder):
            return now == tuple(each for each in was if each != holder)
        case _:
            return now == was


def begins_anew(step: Transition) -> bool:
    """When a period is over, what was spent in it counts no more, but for what was more than there was."""
    if not isinstance(step.event, Refilled) or step.before is None:
        return True
    pairs = zip(step.before.record.lines, step.after.record.lines, strict=True)
    return step.entered is State.RENEWED and all(
        now.account.cost == was.account.overrun and now.account.cap == was.account.cap for was, now in pairs
    )


def begins_when_it_is_to(step: Transition) -> bool:
    """A budget is renewed by the end of its period alone, and then full if nothing is taken from it.

    Nor does a period begin by what a person adds, or the plan.
    """
    if step.before is None:
        return True
    p: Budget = step.after.record
    if isinstance(step.event, Reopened) and (p.state is State.FULL) is not (p.suffices and not p.holders):
        return False
    if isinstance(step.event, Raise | Recapped) and step.before.state is State.FULL and p.suffices:
        return p.state is State.FULL
    return (p.state is State.RENEWED) is isinstance(step.event, Refilled)


def ends_by_itself(e: Entity[Budget]) -> bool:
    """A period that has begun is timed, if it is to end at all; and nothing else is."""
    goes_on = e.state in TOUCHED and e.record.period_ms > 0
    return (e.find(Refilled.__name__) is not None) is goes_on


_MORE: Final = Pattern(Settle, "FIRST, with more", lambda e: e == Settle(FIRST, Amounts(sessions=2)))

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("what is spent and set aside is together never more than the cap", lambda e: caps_are_kept(e.record)),
    always("a budget says what is left in it", lambda e: is_what_it_holds(e.record)),
    always("whoever holds a share holds one of everything that is limited", lambda e: sets_aside_alike(e.record)),
    always_step("what a claim has cost is counted, once, and nothing else is", counts_what_was_said),
    always_step("a share is set aside for who asks, and until it is settled", sets_aside_what_is_asked),
    always_step("a period ends by its time alone, and begins with the first share", begins_when_it_is_to),
    always_step("a new period begins with what was overspent, and no more", begins_anew),
    *keeps_time({Refilled: (TOUCHED, period)}),
    always("a period that has begun is over by itself", ends_by_itself),
    accepts(
        "whoever has no share can have one set aside where there is one",
        {(State.FULL, State.OPEN): (Reserve,)},
        when=lambda e: any(each.holder not in e.record.holders for each in Reserve.examples()),
    ),
    accepts(
        "whatever a claim has cost, it can be settled",
        {(State.OPEN, State.HELD): (Settle, _MORE)},
        when=lambda e: FIRST in e.record.holders,
    ),
    accepts(
        "a person can let more be spent at any time, and the plan can change what may be",
        {(*TOUCHED, State.FULL): (Raise, Recapped)},
    ),
    *exits_on(State.HELD, Settle),
    *exits_on(State.SPENT, Raise),
    *exits_on(State.RENEWED, Reopened),
    sometimes("a budget is spent", lambda e: e.state is State.SPENT),
    sometimes("more is spent than was set aside", lambda e: any(line.account.overrun for line in e.record.lines)),
)

machine: Machine[Any] = Machine(
    "budget",
    Budget(),
    about="what may be spent by a fleet, by an agent, or on a task: set aside before it is spent",
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
    properties=PROPERTIES,
    rests=anywhere,
)
