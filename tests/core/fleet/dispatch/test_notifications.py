"""The board announces waiting decisions and occurrences to its notifiers, each exactly once."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from aggregate_hand import Hand
from board_hand import ask, close, fail, go, make, opened, park, say
from declared import must_break
from lifefold.core.fleet.board import account, budget, fleet_task, notifier, service_slot, worker_slot
from lifefold.core.fleet.dispatch import accounts, notifications, plan_approval
from lifefold.core.kernel import Aggregate, Record, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Amounts, Resource
from lifefold.effects import NotificationKind
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

EVERYTHING: Final = tuple(NotificationKind)
NOTHING: Final[Mapping[str, Record]] = {}


def listening(
    *tasks: fleet_task.FleetTask, kinds: tuple[NotificationKind, ...] = EVERYTHING, more: Mapping[str, Record] = NOTHING
) -> Hand:
    """Return a board with a notifier that listens to these kinds, and with more records."""
    records: dict[str, Record] = {**more, notifier.FIRST: notifier.Notifier(name="desk", kinds=kinds)}
    return opened(*tasks, worker_slots=("ann",), **records)


def told(of: Hand) -> list[tuple[str, str, str, str]]:
    """Return what waits at the notifier: kind, text, task, agent."""
    waiting = of.record(notifier.FIRST).waiting
    return [(str(each.kind), each.text, each.task, each.agent) for each in waiting]


def spend(of: Hand) -> Hand:
    """Let ann ask for work, and report that its last claim has taken one session."""
    return of.hear("worker/ann", "worker_slot:ann", worker_slot.WorkWanted(Amounts(sessions=1)))


def test_a_closed_task_is_told_with_its_agent() -> None:
    """It is told when its work is merged, and not before."""
    of = say(ask(listening(make("T1"))), "T1", task.Started)
    assert told(of) == []
    assert told(close(of, "T1")) == [("closed", "T1 is closed", "T1", "ann")]


def test_a_failure_is_told_when_no_retry_is_left() -> None:
    """A failure that is retried passes by itself."""
    of = fail(ask(listening(make("T1", max_retries=1))), "T1")
    assert told(of) == []
    of.elapse("task:T1", "Rested")
    assert told(fail(ask(of), "T1")) == [("failed", "T1 has failed: broken", "T1", "ann")]


def test_work_that_waits_for_an_approval_is_told_with_the_command() -> None:
    """The command is what an operator types."""
    of = park(ask(listening(make("T1", needs_approval=True))), "T1")
    assert told(of) == [("approval", "T1 waits for an approval: lifefold approve T1", "T1", "ann")]


def test_a_blocked_task_is_told_with_the_reason() -> None:
    """The failure of the other task is told first."""
    of = fail(ask(listening(make("T1"), make("T2", "T1"))), "T1")
    assert [each[0] for each in told(of)] == ["failed", "blocked"]
    assert told(of)[1][1].startswith("T2 is blocked: ")


def test_a_spent_budget_is_told_once_and_not_for_each_task_that_it_blocks() -> None:
    """The notification has the command that raises it."""
    lines = (budget.Line(Resource.SESSIONS, 1, Account(cap=1)),)
    of = listening(make("T1"), make("T2"), more={"budget:fleet": budget.Budget(lines=lines)})
    spend(close(ask(of), "T1"))
    said = [each for each in told(of) if each[0] in {"budget", "blocked"}]
    assert len(said) == 1
    assert said[0][:2] == (
        "budget",
        "fleet: the fleet's budget is spent: 1 of 1 session: lifefold budget --add-sessions 1",
    )


def test_a_budget_of_an_agent_or_a_task_names_it() -> None:
    """So that a receiver can select by it."""
    lines = (budget.Line(Resource.SESSIONS, 1, Account(cap=1)),)
    refs = ("budget:task/T1", "budget:agent/ann")
    of = listening(make("T1"), more={ref: budget.Budget(lines=lines) for ref in refs})
    found = [each for each in told(spend(close(ask(of), "T1"))) if each[0] == "budget"]
    assert sorted(each[2:] for each in found) == [("", "ann"), ("T1", "")]


def test_a_plan_that_waits_is_told_when_the_fleet_begins() -> None:
    """It is told once, and its decision is an operator's own."""
    of = listening(make("T1", state=task.State.PLANNED), more={plan_approval.REF: plan_approval.Proposal()})
    assert [each[0] for each in told(of)] == ["plan"]
    assert [each[0] for each in told(of.give(plan_approval.REF, plan_approval.PlanApproved()))] == ["plan"]


def test_a_limit_is_told_when_the_account_begins_to_rest() -> None:
    """A second report of the same limit is no news."""
    ref = accounts.ref_of("left")
    of = listening(make("T1"), more={ref: account.Account()})
    for _ in range(2):
        of.give(ref, account.LimitReported(60_000, 60_000, "five_hour", "wait"), "worker/ann")
    assert told(of) == [("limit", "account left rests at a limit: five_hour limit", "", "")]


def test_a_limit_that_the_probe_meets_is_no_news() -> None:
    """The account was tried again and rests longer: people know of the limit already."""
    ref = accounts.ref_of("left")
    of = listening(make("T1"), more={ref: account.Account()}).give(ref, account.LimitReported(), "worker/ann")
    of.elapse(ref, "RestOver")
    assert of.state(ref) == account.State.PROBING
    of.give(ref, account.LimitReported(), "worker/ann")
    assert (of.state(ref), [each[0] for each in told(of)]) == (account.State.RESTING, ["limit"])


def test_an_agent_that_stops_before_its_tasks_is_told_and_so_is_the_end() -> None:
    """With the last agent the fleet is over."""
    of = go(listening(make("T1")), "ann", "too many errors")
    assert told(of) == [
        ("stopped", "ann has stopped: too many errors", "", "ann"),
        ("over", "the fleet is over: 0 of 1 tasks are closed", "", ""),
    ]


def test_an_agent_that_leaves_when_no_task_is_left_is_the_end() -> None:
    """Its stop is no news."""
    of = go(close(ask(listening(make("T1"))), "T1"), "ann", "no work is left")
    assert [each[0] for each in told(of)] == ["closed", "over"]


def test_the_fleet_is_over_with_its_last_service() -> None:
    """A service that has failed is told, and one that was stopped is not."""
    slots: dict[str, Record] = {f"service_slot:{name}": service_slot.ServiceSlot() for name in ("web", "db")}
    of = go(listening(more=slots), "ann")
    assert told(of) == []
    of.hear("service/web", "service_slot:web", service_slot.ServiceGone("it crashed", failed=True))
    of.hear("service/db", "service_slot:db", service_slot.ServiceGone("stopped"))
    assert [each[:2] for each in told(of)] == [
        ("service", "service web is down: it crashed"),
        ("over", "the fleet is over: 0 of 0 tasks are closed"),
    ]


def test_a_last_service_that_has_failed_is_told_before_the_end() -> None:
    """A receiver of both learns the cause first."""
    of = go(listening(more={"service_slot:web": service_slot.ServiceSlot()}), "ann")
    of.hear("service/web", "service_slot:web", service_slot.ServiceGone("it crashed", failed=True))
    assert [each[0] for each in told(of)] == ["service", "over"]


def test_each_notifier_hears_of_its_kinds_only() -> None:
    """The second one listens to failures."""
    second = notifier.Notifier(name="pager", kinds=(NotificationKind.FAILED,))
    of = listening(make("T1"), make("T2"), kinds=(NotificationKind.CLOSED,), more={"notifier:2": second})
    fail(ask(close(ask(of), "T1")), "T2")
    waiting = {ref: [each.task for each in of.record(ref).waiting] for ref in (notifier.FIRST, "notifier:2")}
    assert waiting == {notifier.FIRST: ["T1"], "notifier:2": ["T2"]}
    assert not notifications.are_quiet(of.aggregate)


def test_a_board_without_notifiers_is_quiet() -> None:
    """Nothing is announced, and no runner waits."""
    of = close(ask(opened(make("T1"))), "T1")
    assert notifications.are_quiet(of.aggregate)
    assert list(notifications.notifiers(of.aggregate)) == []


def forgotten(of: Hand) -> Aggregate:
    """Return a board whose notifier has forgotten what was announced to it."""
    heard = of.entity(notifier.FIRST)
    entity = replace(heard, record=replace(heard.record, accepted=()))
    return replace(of.aggregate, entities=of.aggregate.entities.set(notifier.FIRST, entity))


def _resting() -> Hand:
    ref = accounts.ref_of("left")
    return listening(make("T1"), more={ref: account.Account()}).give(ref, account.LimitReported(60_000), "worker/ann")


def _spent() -> Hand:
    lines = (budget.Line(Resource.SESSIONS, 1, Account(cap=1)),)
    kinds = (NotificationKind.BUDGET,)
    of = listening(make("T1"), kinds=kinds, more={"budget:task/T1": budget.Budget(lines=lines)})
    return spend(close(ask(of), "T1"))


def _down() -> Hand:
    of = listening(make("T1"), more={"service_slot:web": service_slot.ServiceSlot()})
    return of.hear("service/web", "service_slot:web", service_slot.ServiceGone("it crashed", failed=True))


PRESENT: dict[str, Any] = {
    "approval": lambda: park(ask(listening(make("T1", needs_approval=True))), "T1"),
    "plan": lambda: listening(more={plan_approval.REF: plan_approval.Proposal()}),
    "limit": _resting,
    "budget": _spent,
    "service": _down,
    "over": lambda: go(listening(make("T1")), "ann"),
}


@pytest.mark.parametrize("name", PRESENT)
def test_something_that_waits_and_was_not_announced_breaks_the_property(name: str) -> None:
    """The property holds of the board as the rules leave it."""
    of = PRESENT[name]()
    assert notifications.what_waits_is_announced(of.aggregate)
    assert notifications.closed_tasks_are_announced(of.aggregate)
    assert not notifications.what_waits_is_announced(forgotten(of))


def test_a_closed_task_that_was_not_announced_breaks_the_property() -> None:
    """A count of another number is found, too."""
    of = close(ask(listening(make("T1"))), "T1")
    assert notifications.closed_tasks_are_announced(of.aggregate)
    assert not notifications.closed_tasks_are_announced(forgotten(of))


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ("announce_task", "fleet-telling"),
        ("announce_budget", "fleet-telling"),
        ("announce_stop", "fleet-telling"),
        ("announce_limit", "fleet-resting"),
        ("announce_service", "fleet-outages"),
    ],
)
def test_a_rule_that_is_lost_breaks_a_property(rule: str, where: str) -> None:
    """In a small fleet with notifiers."""
    target = named(where)
    must_break("what waits for people", without(rule), replace(target.bounds, states=3_000), opening=target.opening)
