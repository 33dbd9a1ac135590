"""What is limited is set aside before it is spent, of everything that a claim concerns, and settled once."""

from typing import Any

import pytest

from aggregate_hand import Hand
from board_hand import assigned, brief, close, fail, go, make, opened, rest, split, states
from declared import Mutants, instead, must_be_found
from lifefold.core.fleet import AgentPlan, Budget, Plan, opening
from lifefold.core.fleet.board import budget, fleet_task, worker_slot
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.kernel import Created, Machine, row
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps, Resource
from lifefold.interpreters.explain import pending
from lifefold.interpreters.explain.accounts import balances
from lifefold.interpreters.targets.check_targets import named

FLEET = budgets.FLEET


def limited(
    *tasks: fleet_task.FleetTask, all_budgets: dict[str, budget.Budget], worker_slots: tuple[str, ...] = ("ann", "bob")
) -> Hand:
    """Return a board with these tasks, worker slots and budgets."""
    return opened(*tasks, worker_slots=worker_slots, **all_budgets)


def sessions(cap: int, **fields: Any) -> budget.Budget:
    """Return a budget for so many sessions."""
    return budget.Budget(lines=(budget.Line(Resource.SESSIONS, 1, Account(cap=cap)),), **fields)


def money(cap: int, share: int, **fields: Any) -> budget.Budget:
    """Return a budget for so many micro-dollars, of which a claim is given a share."""
    return budget.Budget(lines=(budget.Line(Resource.MONEY, share, Account(cap=cap)),), **fields)


def ask(of: Hand, name: str = "ann", *, silent: bool = False, **spent: int) -> Hand:
    """Let a worker ask for work, and say what it has spent."""
    return of.hear(f"worker/{name}", f"worker_slot:{name}", worker_slot.WorkWanted(Amounts(**spent), silent))


def account(of: Hand, ref: str = FLEET) -> tuple[int, int, int]:
    """Return what is spent, set aside and overrun of a budget with one line."""
    (line,) = of.record(ref).lines
    return line.account.spent, line.account.reserved, line.account.overrun


def test_a_share_is_set_aside_from_every_budget_that_a_claim_concerns() -> None:
    """The fleet's, the agent's and the task's; not those of others."""
    own, other = budgets.of_agent("ann"), budgets.of_agent("bob")
    all_budgets = {FLEET: sessions(3), own: sessions(3), other: sessions(3), budgets.of_task("T1"): sessions(3)}
    of = ask(limited(make("T1"), all_budgets=all_budgets))
    assert {ref: account(of, ref) for ref in all_budgets} == {
        FLEET: (0, 1, 0),
        own: (0, 1, 0),
        other: (0, 0, 0),
        "budget:task/T1": (0, 1, 0),
    }


def test_what_was_set_aside_is_settled_with_what_it_has_cost() -> None:
    """A claim that was never begun gives its share back."""
    of = ask(limited(make("T1"), make("T2"), all_budgets={FLEET: money(100, 30)}))
    assert account(of) == (0, 30, 0)
    ask(close(of, "T1"), microusd=20)
    assert account(of) == (20, 30, 0)
    of.give("task:T2", task.Cancelled())
    assert account(of) == (20, 30, 0), "its agent may still be at it"
    ask(of)
    assert account(of) == (20, 0, 0)


def test_the_reservation_of_a_gone_worker_is_settled() -> None:
    """And another worker has a reservation for the same task."""
    of = ask(limited(make("T1"), all_budgets={FLEET: money(100, 60)}))
    ask(of, "bob")
    assert assigned(of) == []
    go(of, "ann")
    assert (assigned(of), account(of)) == ([("worker/bob", "T1")], (0, 60, 0))


def test_no_worker_begins_with_less_than_its_reservation() -> None:
    """What is set aside may come back, so the task waits."""
    of = ask(limited(make("T1"), make("T2"), all_budgets={FLEET: sessions(1)}))
    ask(of, "bob")
    assert (states(of, "T1", "T2"), of.state(FLEET)) == (["CLAIMED", "OPEN"], "Held")
    of.give("task:T1", task.Cancelled())
    ask(of)
    assert (assigned(of), of.state(FLEET), account(of)) == ([("worker/bob", "T2")], "Held", (0, 1, 0))


def test_what_costs_more_than_its_share_is_paid_from_what_is_free_and_kept_beyond_that() -> None:
    """Nothing is set aside as long as more was spent than there is."""
    of = ask(limited(make("T1"), make("T2"), all_budgets={FLEET: money(100, 40)}))
    ask(close(of, "T1"), microusd=130)
    assert (account(of), of.state(FLEET), of.state("task:T2")) == ((100, 0, 30), "Spent", "BLOCKED")
    of.give(FLEET, budget.Raise(Amounts(microusd=30)))
    assert (of.state(FLEET), of.state("task:T2")) == ("Spent", "BLOCKED")
    of.give(FLEET, budget.Raise(Amounts(microusd=40)))
    assert (account(of), of.state("task:T2")) == ((130, 40, 0), "CLAIMED")


def test_what_needs_a_budget_that_is_spent_is_blocked_with_the_reason() -> None:
    """Also what is opened only later; and it goes on when a person lets more be spent."""
    of = ask(
        limited(
            make("T1"), make("T2"), make("T3", max_retries=1), worker_slots=("ann",), all_budgets={FLEET: sessions(1)}
        )
    )
    ask(fail(of, "T1"), sessions=1)
    assert states(of, "T1", "T2", "T3") == ["FAILED", "BLOCKED", "BLOCKED"]
    assert of.record("task:T2").blocked_by == FLEET
    assert of.record("task:T2").reason == "the fleet's budget is spent: 1 of 1 session"
    of.give("task:T3", task.Unblocked())
    assert of.state("task:T3") == "BLOCKED"
    of.give(FLEET, budget.Raise(Amounts(sessions=2)))
    assert states(of, "T2", "T3") == ["CLAIMED", "OPEN"]


def test_a_task_blocked_by_a_spent_budget_waits_for_an_operator() -> None:
    """All tasks together that need the same one, with the reason and the command: the fleet does not end."""
    of = opened(make("T1"), make("T2"), make("T3"), worker_slots=("ann",), **{FLEET: sessions(1)})
    ask(fail(ask(of), "T1"), sessions=1)
    (found,) = [each for each in pending.waiting({"board": of.aggregate}) if each.about is pending.Awaited.BUDGET]
    assert (found.names, found.command) == (("T2", "T3"), "budget --add-sessions 1")
    assert found.reason == of.record("task:T2").reason


def test_a_task_whose_own_budget_is_spent_is_blocked_alone() -> None:
    """When it is to be tried again."""
    every = make("T1", max_retries=3), make("T2"), make("T3")
    of = ask(limited(*every, all_budgets={budgets.of_task("T1"): sessions(1)}))
    ask(fail(of, "T1"), sessions=1)
    assert states(of, "T1", "T2", "T3") == ["FAILED", "CLAIMED", "OPEN"]
    rest(of, "T1")
    assert of.state("task:T1") == "BLOCKED"
    assert of.record("task:T1").reason == "its budget is spent: 1 of 1 session"


def test_the_parts_of_a_task_have_the_budget_of_the_whole() -> None:
    """And are blocked with it, which blocks the whole, and go on with it."""
    of = ask(
        limited(
            make("T1", most_subtasks=2), worker_slots=("ann", "bob"), all_budgets={budgets.of_task("T1"): sessions(2)}
        )
    )
    split(of, "T1")
    ask(ask(of, sessions=1), "bob")
    assert (states(of, "T1+1", "T1+2"), of.state("budget:task/T1")) == (["CLAIMED", "OPEN"], "Held")
    ask(close(of, "T1+1"), sessions=1)
    assert states(of, "T1", "T1+1", "T1+2") == ["BLOCKED", "CLOSED", "BLOCKED"]
    of.give("budget:task/T1", budget.Raise(Amounts(sessions=5)))
    assert states(of, "T1", "T1+1", "T1+2") == ["WAITING_FOR_SUBTASKS", "CLOSED", "CLAIMED"]


def test_a_part_that_comes_when_the_budget_has_no_share_left_waits_for_one() -> None:
    """Its whole is still being settled."""
    of = ask(limited(make("T1", most_subtasks=2), all_budgets={budgets.of_task("T1"): sessions(1)}))
    ask(of, "bob")
    split(of, "T1")
    assert (states(of, "T1+1", "T1+2"), assigned(of)) == (["OPEN", "OPEN"], [])
    ask(of)
    assert assigned(of) == [("worker/bob", "T1+1")]


def test_an_agent_whose_budget_is_spent_waits_for_more() -> None:
    """The others go on."""
    of = ask(
        limited(make("T1"), make("T2"), worker_slots=("ann", "bob"), all_budgets={budgets.of_agent("ann"): sessions(1)})
    )
    ask(close(of, "T1"), sessions=1)
    reason = "its budget is spent: 1 of 1 session"
    assert of.told() == []
    assert budgets.reason_of(of.aggregate.entities[budgets.of_agent("ann")]) == reason
    assert (assigned(ask(of, "bob")), of.state("task:T2")) == ([("worker/bob", "T2")], "CLAIMED")


def test_a_verification_or_merge_needs_no_reservation() -> None:
    """What is done is brought home, though nothing is left to spend."""
    done = make("T1", state=task.State.DONE, stage=task.Stage.MERGE, result=1, epoch=1)
    of = ask(limited(done, make("T2"), all_budgets={FLEET: sessions(1)}))
    assert (assigned(of), account(of)) == ([("worker/ann", "T1")], (0, 0, 0))


def test_a_session_without_a_reported_cost_is_charged_its_reservation_if_configured() -> None:
    """Otherwise it has spent nothing that is known; what is known to be more is more."""
    for silent, charges, spent, counted in [
        (True, True, 0, 30),
        (True, True, 50, 50),
        (True, False, 0, 0),
        (False, True, 10, 10),
    ]:
        of = ask(limited(make("T1"), all_budgets={FLEET: money(100, 30, charges_the_silent=charges)}))
        ask(close(of, "T1"), silent=silent, microusd=spent)
        assert account(of) == (counted, 0, 0)


def test_a_period_begins_with_the_first_share_and_ends_with_all_as_it_was() -> None:
    """What waits for it is not blocked, but goes on by itself."""
    of = ask(limited(make("T1"), make("T2"), worker_slots=("ann",), all_budgets={FLEET: sessions(1, period_ms=1_000)}))
    ask(close(of, "T1"), sessions=1)
    assert (of.state(FLEET), states(of, "T2")) == ("Spent", ["OPEN"])
    of.elapse(FLEET, "Refilled")
    assert (of.state(FLEET), states(of, "T2"), account(of)) == ("Held", ["CLAIMED"], (0, 1, 0))
    assert of.part(FLEET, "Refilled").deadline_ms == of.now_ms + 1_000


def _renewed(machine: Machine[Any]) -> Machine[Any]:
    return machine.starting(sessions(2, period_ms=3_600_000), "budget")


UNTOUCHED = row(budget.State.RENEWED, budget.Reopened, budget.State.OPEN, when=budget.is_untouched)

MISTAKES: Mutants = {
    "a period goes on where it begins": (
        "a period ends by time alone, and begins with the first share",
        lambda: _renewed(instead(budget.machine, UNTOUCHED, when=budget.is_untouched)),
    ),
    "a person begins a period": (
        "a period ends by time alone, and begins with the first share",
        lambda: _renewed(
            instead(
                instead(budget.machine, row(budget.State.FULL, budget.Raise, budget.State.OPEN, budget.add)),
                row(budget.State.OPEN, budget.Raise, budget.State.OPEN, budget.add),
            )
        ),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_how_a_period_begins_breaks_a_property(name: str) -> None:
    """It begins with the first share that is taken from a full budget, and with nothing else."""
    must_be_found(MISTAKES[name], named("budget").bounds)


def test_a_share_that_is_set_aside_when_the_period_ends_belongs_to_the_next() -> None:
    """So the next period begins at once."""
    of = ask(limited(make("T1"), all_budgets={FLEET: sessions(2, period_ms=1_000)}))
    of.elapse(FLEET, "Refilled")
    assert (of.state(FLEET), account(of)) == ("Open", (0, 1, 0))
    of = ask(limited(make("T1"), all_budgets={FLEET: sessions(1, period_ms=1_000)}))
    of.elapse(FLEET, "Refilled")
    assert (of.state(FLEET), account(of)) == ("Held", (0, 1, 0))


def test_what_was_overspent_is_paid_from_the_next_period() -> None:
    """That may leave nothing of it."""
    of = ask(limited(make("T1"), make("T2"), all_budgets={FLEET: money(100, 30, period_ms=1_000)}))
    ask(close(of, "T1"), microusd=190)
    assert account(of) == (100, 0, 90)
    of.elapse(FLEET, "Refilled")
    assert (of.state(FLEET), account(of)) == ("Spent", (90, 0, 0))
    of.elapse(FLEET, "Refilled")
    assert (account(of), of.state("task:T2")) == ((0, 30, 0), "CLAIMED")


def test_a_new_task_that_has_no_budget_of_its_own_has_a_share_of_the_fleets() -> None:
    """Only what is limited is set aside."""
    of = ask(limited(make("T1"), worker_slots=("ann",), all_budgets={FLEET: sessions(5)}))
    of.give("task:T2", Created(make("T2")))
    ask(close(of, "T1"), sessions=1)
    assert (of.state("task:T2"), account(of)) == ("CLAIMED", (1, 1, 0))


def test_a_plan_that_limits_what_a_claim_is_given_none_of_is_refused() -> None:
    """Such a limit would have no effect: nothing would be reserved for it."""
    agents = (AgentPlan("ann", caps=Caps(sessions=1)),)
    plan = Plan("any", agents, (), budget=Budget(Caps(tokens=50), Amounts(tokens=20)))
    with pytest.raises(ValueError, match=r"^budget:agent/ann: limits sessions, of which the share of a claim"):
        list(opening(plan, 0))


def test_a_brief_says_what_the_sessions_of_a_claim_may_cost() -> None:
    """Of everything that is limited anywhere for it."""
    of = ask(limited(make("T1"), all_budgets={FLEET: money(100, 30), budgets.of_task("T1"): sessions(3)}))
    assert brief(of).share == Amounts(microusd=30, sessions=1)


@pytest.mark.parametrize(
    ("resource", "amount", "cap", "words"),
    [
        (Resource.MONEY, 1_234_567, None, "1.23 USD"),
        (Resource.TOKENS, 1_200, 2_000, "1,200 of 2,000 tokens"),
        (Resource.TIME, 90_000, 3_600_000, "1.5 of 60.0 min"),
        (Resource.SESSIONS, 2, 3, "2 of 3 sessions"),
    ],
)
def test_amounts_are_shown_in_familiar_units(resource: Resource, amount: int, cap: int | None, words: str) -> None:
    """Of all four resources."""
    assert budgets.in_words(resource, amount, cap) == words


def test_a_reason_says_what_is_left_if_it_is_less_than_a_share() -> None:
    """Otherwise an operator would not see why the rest is not spent."""
    of = ask(limited(make("T1"), make("T2"), all_budgets={FLEET: money(1_000_000, 300_000)}))
    ask(close(of, "T1"), microusd=800_000)
    assert (
        of.record("task:T2").reason
        == "the fleet's budget is too small for another claim: 0.80 of 1.00 USD spent, and a claim is given 0.30 USD"
    )


def test_how_budgets_stand_is_told_the_fleets_first() -> None:
    """With what is set aside, and when all is filled anew; without a board nothing is."""
    assert balances({}) == ()
    ann = budgets.of_agent("ann")
    of = ask(limited(make("T1"), all_budgets={ann: sessions(3), FLEET: money(100, 30, period_ms=5_000)}))
    first, second = balances({"board": of.aggregate})
    assert (first.whose, first.name, first.cap, first.set_aside, first.share) == ("fleet", "", 100, 30, 30)
    assert (first.refilled_ms, second.refilled_ms) == (of.now_ms + 5_000, 0)
    assert (second.whose, second.name, second.in_words()) == ("agent", "ann", "0 of 3 sessions")
    assert [each.is_spent for each in (first, second)] == [False, False]
