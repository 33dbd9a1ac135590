"""The properties of budgets hold in every reachable state, and detect mistakes in the rules."""

from functools import partial
from typing import Any, Final

import pytest

from declared import COMPARED, Mutants, instead, must_be_found, must_break, must_hold, rebuilt
from lifefold.core.kernel import (
    ANY,
    STAY,
    Aggregate,
    AggregateType,
    Dispatch,
    Envelope,
    Machine,
    Opened,
    Rule,
    Step,
    System,
    Transition,
    replace,
    row,
    rule,
)
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.budget import agent, lease
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.lease import (
    Charge,
    Close,
    GraceExceeded,
    Lease,
    Refund,
    Reserve,
    Revoke,
    Settle,
    State,
)
from lifefold.interpreters.check import Bounds, Outcome, check

GRANTED: Final = lease.machine.starting(Lease(holder="h", account=Account(cap=4)))


def little_money(x: Lease, overrun: int = 100) -> bool:
    """Tell whether a lease has been granted, and has overrun, no more than a few micro-dollars."""
    return x.account.cap <= 8 and x.account.overrun <= overrun


def no_more_money(x: Lease) -> bool:
    """Tell whether a lease was granted nothing besides what it began with, and has not cost more."""
    return x.account.cap <= 4 and not x.account.overrun


@pytest.mark.parametrize("overrun", [10, pytest.param(100, marks=pytest.mark.campaign)])
def test_a_lease_has_all_its_properties(overrun: int) -> None:
    """In all of its states with a little money, every row and every guard used both ways."""
    bounds = Bounds(within={"lease": partial(little_money, overrun=overrun)}, compared=COMPARED)
    assert must_hold(GRANTED, bounds).missing == ()


def _keeps_the_rest(x: Lease, e: Close) -> Step[Lease, Any]:
    return Step(lease.close(x, e).record)


def _free_again(x: Lease, e: Refund) -> Step[Lease, Any]:
    return Step(replace(x, account=x.account.settle(e.name, 1)))


def _cheap(x: Lease, e: Settle) -> Step[Lease, Any]:
    return Step(replace(x, account=x.account.settle(e.name, min(e.cost_microusd, 2))))


def _lets_go(x: Lease, e: Revoke) -> Step[Lease, Any]:
    done = lease.revoke(x, e)
    dropped = replace(done.record.account, reservations=())
    return Step(replace(done.record, account=dropped.balanced()), done.effects)


def _fits_whatever_the_state(x: Lease, e: Reserve) -> bool:
    return x.account.verdict(e.name, e.amount_microusd).admits


def _leaves_open(x: Lease, _e: Close) -> Step[Lease, Any]:
    return Step(x)


ACTIVE, EXPIRED, CLOSED = State.ACTIVE, State.EXPIRED, State.CLOSED

MUTANTS: Final[Mutants] = {
    "an expired lease admits": (
        "only an active lease reserves",
        lambda: GRANTED.with_rows(row(EXPIRED, Reserve, STAY, lease.reserve, when=_fits_whatever_the_state)),
    ),
    "a lease that is closed keeps the rest": (
        "every returned amount is reported",
        lambda: instead(GRANTED, row(lease.OPEN, Close, CLOSED, _keeps_the_rest)),
    ),
    "a lease that is closed stays open for its account": (
        "closed with the lease",
        lambda: instead(GRANTED, row(lease.OPEN, Close, CLOSED, _leaves_open)),
    ),
    "a refund costs something": (
        "the cost grows",
        lambda: instead(GRANTED, row(ANY, Refund, STAY, _free_again, when=lease.is_reserved), lease.is_reserved),
    ),
    "a settlement above its reservation is cut": (
        "the cost grows",
        lambda: instead(GRANTED, row(ANY, Settle, STAY, _cheap, when=lease.is_reserved), lease.is_reserved),
    ),
    "a revocation forgets what is reserved": (
        "no reservation is forgotten",
        lambda: instead(GRANTED, row(lease.OPEN, Revoke, State.REVOKED, _lets_go)),
    ),
    "what is over settles nothing": (
        "if its work reports",
        lambda: GRANTED.without_rows((CLOSED, Settle)),
    ),
    "the grace has no end": (
        "EXPIRED does not last",
        lambda: rebuilt(GRANTED, during={k: v for k, v in GRANTED.during.items() if EXPIRED not in k}),
    ),
    "a lease of which nothing is left goes on": (
        "is over when used up",
        lambda: rebuilt(GRANTED, rows=[each for each in GRANTED.rows if each.when is not lease.uses_up]),
    ),
    "the grace ends as nothing": (
        "EXPIRED does not last",
        lambda: instead(GRANTED, row(EXPIRED, GraceExceeded, STAY)),
    ),
    "a charge costs nothing": (
        "the cost grows",
        lambda: instead(
            GRANTED, row(lease.OPEN, Charge, STAY, lambda x, _e: Step(x), when=lease.is_more), lease.is_more
        ),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_in_the_rules_of_budgets_breaks_a_property(mutant: Any) -> None:
    """Each of these mutants breaks the property with these words."""
    words, make = mutant
    must_be_found((words, make), Bounds(within={"lease": no_more_money}, states=5_000))


class Counted(status.Status, frozen=True):
    """The status of an agent whose incarnations keep their numbers: its leases are known by them."""

    identifiers = ("pii_detections", "late_reports")


STATUS: Final[Machine[Any]] = status.draining.starting(Counted())


def budgeted(*rules: Rule) -> System:
    """Return an agent with its leases, alone, with these rules and without tasks."""
    of = AggregateType(
        agent.KIND,
        machines=(STATUS, lease.machine),
        rules=rules,
        views=agent.agent_type.views,
        properties=agent.PROPERTIES,
        commands={
            STATUS.name: (status.Spawn, status.Stop, status.FatalError),
            "lease": (Reserve, Settle),
        },
    )
    return System("budgeted", of)


def two_incarnations(a: status.Status) -> bool:
    """Tell whether an agent was restarted once at most."""
    return a.incarnation <= 2


FEW: Final = Bounds(within={STATUS.name: two_incarnations, "lease": little_money}, compared=COMPARED)
OPENING: Final = (("agent/a", Envelope("", Opened(agent.opening(Counted(agent_id="a", budget_microusd=4))), 0)),)


@pytest.mark.cover
def test_an_agent_and_its_leases_keep_the_budget_whatever_becomes_of_them() -> None:
    """Over a restart, with work that reports to a lease that is over."""
    report = check(budgeted(*agent.agent_type.rules), opening=OPENING, bounds=FEW)
    assert not report.truncated
    kept = {each.name for each in report.verdicts if each.outcome is Outcome.HOLDS}
    assert kept >= {each.name for each in agent.PROPERTIES}
    assert report.ok


@rule(on=STATUS)
def _same_again(of: Aggregate, transition: Transition) -> Any:
    """Grant every incarnation the whole budget."""
    for wish in agent.lease_follows_agent.follow(of, transition):
        record = transition.after.record
        yield (
            wish if isinstance(wish, Dispatch) else replace(wish, record=agent.granted(record, record.budget_microusd))
        )


@rule(on=STATUS)
def _never_closed(of: Aggregate, transition: Transition) -> Any:
    """Leave the lease open when the agent has stopped or failed."""
    for wish in agent.lease_follows_agent.follow(of, transition):
        if not isinstance(wish, Dispatch):
            yield wish


PAYS: Final = agent.present_lease_pays_for_earlier_ones
RULES: Final[dict[str, tuple[str, tuple[Rule, ...]]]] = {
    "every incarnation has the whole budget": ("extends the budget", (_same_again, PAYS)),
    "a lease outlives its agent": ("only while the agent runs", (_never_closed, PAYS)),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(("words", "rules"), RULES.values(), ids=RULES)
def test_a_mistake_in_the_rules_of_an_agents_money_breaks_a_property(words: str, rules: tuple[Rule, ...]) -> None:
    """Each of these mutants breaks the property with these words."""
    must_break(words, budgeted(*rules), replace(FEW, states=3_000), opening=OPENING)
