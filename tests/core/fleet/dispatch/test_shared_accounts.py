"""Agents that share an account, in all states of small fleets: they rest together, and another account goes on."""

import pytest

from lifefold.core.fleet import AgentPlan, Budget, Caps, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import account
from lifefold.core.fleet.dispatch import accounts
from lifefold.core.fleet.worker import mailbox, quota
from lifefold.core.kernel import Envelope, Opened, Record, System, replace
from lifefold.core.lifecycles import session
from lifefold.interpreters.check import check
from lifefold.interpreters.report.finding import Outcome
from lifefold.interpreters.search.report import Report
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

SHARING = named("fleet-sharing")

STATES = 4_000
"""So many states suffice for the mistakes of these tests."""

NOT_THERE = "a worker whose task was taken learns it, if merges end"
"""What cannot happen in the fleet of three: no operator gives a command, and no task preempts another one."""


def three() -> tuple[tuple[str, Envelope], ...]:
    """Return the opening of a fleet of two agents of an account that rests, and a third one of another account.

    One task is open, and one session may begin. A message waits for the third agent.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    agents = [AgentPlan(n, limits, account=of) for n, of in (("ann", "left"), ("ben", "left"), ("cid", "right"))]
    plan = Plan("three", tuple(agents), (TaskPlan("T1", "do it", max_retries=0),), budget=Budget(Caps(sessions=1)))
    rests = account.Account(account.State.RESTING, rest_ms=account.FIRST_MS, limits=1)
    waits, knows = mailbox.Mailbox(mailbox.State.HOLDING, ("look",)), quota.Quota(quota.State.RESTING)
    more: dict[str, dict[str, Record]] = {
        "board": {accounts.ref_of("left"): rests},
        "worker/ann": {quota.REF: knows},
        "worker/ben": {quota.REF: knows},
        "worker/cid": {"mailbox": waits},
    }
    return tuple((name, _with(each, **more[name])) for name, each in opening(plan, 0))


def _with(of: Envelope, **records: Record) -> Envelope:
    assert isinstance(of.event, Opened)
    return replace(of, event=Opened({**of.event.records, **records}))


def searched(of: System, begins: tuple[tuple[str, Envelope], ...], states: int) -> Report:
    """Return the report about so many states."""
    return check(of, opening=begins, bounds=replace(SHARING.bounds, states=states, compared=0))


@pytest.mark.campaign
def test_three_agents_of_two_accounts_keep_all_properties() -> None:
    """Nothing begins on the account before its time, no limit stops an agent, and the other account goes on."""
    report = searched(system, three(), 200_000)
    others = {each.name: each.outcome for each in report.verdicts if each.outcome is not Outcome.HOLDS}
    assert others == {NOT_THERE: Outcome.VACUOUS}


@pytest.mark.parametrize(
    ("rule", "prop"),
    [
        ("tell_workers", "with no message in flight, every agent knows whether its account rests"),
        ("admit", "every claim is admitted by the account of its agent"),
        ("leave_account", "every agent that uses an account is at a task"),
        ("ask_account", "no session begins while its worker knows that the account rests"),
    ],
)
@pytest.mark.parametrize("begins", [SHARING.opening, three()], ids=["two", "three"])
def test_a_lost_rule_of_accounts_breaks_its_property(
    begins: tuple[tuple[str, Envelope], ...], rule: str, prop: str
) -> None:
    """In the first states of both fleets."""
    assert prop in {each.name for each in searched(without(rule), begins, STATES).broken()}


@pytest.mark.parametrize("begins", [SHARING.opening, three()], ids=["two", "three"])
def test_with_its_rules_no_property_is_broken_in_these_states(begins: tuple[tuple[str, Envelope], ...]) -> None:
    """Else a lost rule would not be what breaks one."""
    assert not searched(system, begins, STATES).broken()
