"""Agents of one account rest together; agents of another one go on, and nothing is counted."""

from typing import Any

import pytest

from aggregate_hand import Hand
from board_hand import ask, assigned, close, fail, finish, go, make, opened, say, states
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import account, fleet_task, worker_slot
from lifefold.core.fleet.dispatch import accounts, preemption
from lifefold.core.fleet.system import plan_change, plan_difference
from lifefold.core.fleet.worker import quota
from lifefold.core.kernel import Aggregate, Created, Opened, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.approval import ApprovalGranted
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.targets.simulation_targets import fleet_of
from lost_rules import without

HOUR_MS = 3_600_000
TOLD = account.LimitReported(HOUR_MS, 2 * HOUR_MS, "five_hour")
UNKNOWN = account.LimitReported()
RESTS, OPENS = quota.AccountRests(), quota.AccountOpens()


def board(*tasks: fleet_task.FleetTask, preempts: bool = False, **owners: str) -> Hand:
    """Return a board with these tasks, and workers with these accounts; ann and ben of one, cat of another."""
    owners = owners or {"ann": "left", "ben": "left", "cat": "right"}
    requests: dict[str, Any] = dict(preemption.preemption_requests(tuple(owners), 0)) if preempts else {}
    slots = {f"worker_slot:{name}": worker_slot.WorkerSlot(account=each) for name, each in owners.items()}
    there = {accounts.ref_of(each): account.Account() for each in owners.values() if each}
    return opened(*tasks, worker_slots=(), **slots, **there, **requests)


def limit(of: Hand, name: str, said: account.LimitReported = TOLD, *, of_account: str = "left") -> Hand:
    """Let the session of a worker meet a limit: its account learns it, its task is given back, and it asks again."""
    of.hear(f"worker/{name}", accounts.ref_of(of_account), said)
    at = of.record(f"worker_slot:{name}").task
    return ask(say(of, at, task.Released, reason="limited") if at else of, name)


def news(of: Hand) -> list[tuple[str, str]]:
    """Return what the last reaction tells workers of their account."""
    return [(to, type(event).__name__) for to, entity, event in of.told() if entity == quota.REF]


def test_the_task_of_a_limited_session_goes_to_an_agent_of_another_account() -> None:
    """Nothing is counted against it, and the agents of the account wait."""
    of = ask(board(make("T1", max_retries=1), make("T2", max_retries=1)), "ann", "cat")
    ask(finish(of, "T2"), "ben")
    close(of, "T2")
    ask(of, "cat")
    of.hear("worker/ann", accounts.ref_of("left"), TOLD)
    say(of, "T1", task.Released, reason="limited")
    assert assigned(of) == [("worker/cat", "T1")]
    record: fleet_task.FleetTask = of.record("task:T1")
    assert (record.owner, record.retries, record.failure) == ("cat", 0, "")


def test_agents_of_one_account_rest_together() -> None:
    """None of them is given a task before the told end; then both work again."""
    of = ask(board(make("T1"), make("T2"), ann="left", ben="left"), "ann")
    limit(of, "ann")
    ask(of, "ben")
    assert states(of, "T1", "T2") == ["OPEN", "OPEN"]
    of.elapse(accounts.ref_of("left"), "RestOver")
    assert of.now_ms == HOUR_MS
    assert sorted(name for name, _ in assigned(of)) == ["worker/ann", "worker/ben"]


def test_workers_are_told_that_their_account_rests_and_that_it_is_open() -> None:
    """Workers of other accounts and workers that are gone are not."""
    of = go(ask(board(), "ann"), "ben")
    of.hear("worker/ann", accounts.ref_of("left"), TOLD)
    assert news(of) == [("worker/ann", "AccountRests")]
    of.elapse(accounts.ref_of("left"), "RestOver")
    assert news(of) == [("worker/ann", "AccountOpens")]


def test_a_crash_does_not_shorten_the_rest() -> None:
    """The timer is in the log and keeps its deadline."""
    of = limit(ask(board(make("T1")), "ann"), "ann")
    of.crash(1_000)
    of.elapse(accounts.ref_of("left"), "RestOver")
    assert of.now_ms == HOUR_MS


def probed() -> Hand:
    """Return a board whose account is tried again with ann, while ben waits."""
    of = limit(ask(board(make("T1"), make("T2"), ann="left", ben="left"), "ann"), "ann", UNKNOWN)
    return ask(of, "ben").elapse(accounts.ref_of("left"), "RestOver")


def test_an_account_is_tried_again_with_one_session() -> None:
    """Its worker is told that the account is open for it, before it has the task."""
    of = probed()
    assert assigned(of) == [("worker/ann", "T1")]
    told = [(to, type(event).__name__) for to, _, event in of.told()]
    assert told == [("worker/ann", "AccountOpens"), ("worker/ann", "Assigned")]


def test_the_success_of_that_session_lets_the_others_go_on() -> None:
    """They need not wait for the verification and the merge."""
    of = finish(probed(), "T1")
    assert of.state(accounts.ref_of("left")) == "Open"
    assert assigned(of) == [("worker/ben", "T2")]


def test_a_failure_of_that_session_lets_another_one_try() -> None:
    """A failed session tells nothing of the account. Its worker waits like the others."""
    of = ask(fail(probed(), "T1"), "ann")
    assert news(of) == [("worker/ann", "AccountRests"), ("worker/ben", "AccountOpens")]
    assert assigned(of) == [("worker/ben", "T2")]


def test_another_limit_lets_the_account_rest_longer() -> None:
    """No other agent tries it meanwhile."""
    of = limit(probed(), "ann", UNKNOWN)
    assert (of.state(accounts.ref_of("left")), states(of, "T1", "T2")) == ("Resting", ["OPEN", "OPEN"])
    before_ms = of.now_ms
    assert of.elapse(accounts.ref_of("left"), "RestOver").now_ms == before_ms + 2 * account.FIRST_MS


def test_a_worker_that_goes_frees_the_account_for_another_one() -> None:
    """Its own task is open again, too."""
    of = go(probed(), "ann")
    assert assigned(of) == [("worker/ben", "T2")]
    assert of.record(accounts.ref_of("left")).users == ("ben",)


def test_an_operator_may_end_a_rest() -> None:
    """One session tries it."""
    of = ask(limit(ask(board(make("T1"), make("T2"), ann="left", ben="left"), "ann"), "ann"), "ben")
    of.give(accounts.ref_of("left"), account.RestLifted("paid"))
    assert [name for name, _ in assigned(of)] == ["worker/ann"]


def test_finished_work_is_merged_while_the_account_rests() -> None:
    """That begins no session."""
    of = ask(board(make("T1", needs_approval=True), make("T2"), ann="left", ben="left"), "ann")
    say(of, "T1", task.Completed, fleet_task.Parked)
    of.hear("worker/ben", accounts.ref_of("left"), TOLD)
    ask(of, "ann")
    of.give("task:T1", ApprovalGranted())
    assert assigned(of) == [("worker/ann", "T1")]
    assert of.record(accounts.ref_of("left")).users == ()


def test_a_worker_whose_account_rests_is_not_preempted() -> None:
    """It could not begin with the urgent task."""
    of = ask(board(make("T1", priority=2), preempts=True, ann="left"), "ann")
    of.hear("worker/ann", accounts.ref_of("left"), TOLD)
    of.give("task:X", Created(make("X", priority=1)))
    assert of.state("preemption_request:ann") == "Free"
    of.elapse(accounts.ref_of("left"), "RestOver")
    assert of.state("preemption_request:ann") == "Asked"


def test_a_request_is_passed_on_when_the_agent_that_tries_an_account_takes_its_task() -> None:
    """The preempted agent then makes room for the next urgent task that waits."""
    of = ask(board(make("T7", priority=3), preempts=True), "cat", "ann")
    of.give("task:T1", Created(make("T1", priority=1)))
    limit(of, "ann", UNKNOWN)
    of.give("task:T9", Created(make("T9", priority=1)))
    assert of.record("preemption_request:cat").task == "T1"
    of.elapse(accounts.ref_of("left"), "RestOver")
    assert assigned(of) == [("worker/ann", "T1")]
    assert of.record("preemption_request:cat").task == "T9"


def test_a_fleet_without_accounts_has_none_of_this() -> None:
    """Neither the board nor a worker has an entity for it."""
    plans = (AgentPlan("ann", account="left"), AgentPlan("ben")), (TaskPlan("T1", "do it"),)
    (_, of_board), (_, ann), (_, ben) = opening(Plan("small", *plans), 0)
    assert isinstance(of_board.event, Opened)
    assert isinstance(ann.event, Opened)
    assert isinstance(ben.event, Opened)
    assert [ref for ref in of_board.event.records if ref.startswith("account:")] == ["account:left"]
    assert (quota.REF in ann.event.records, quota.REF in ben.event.records) == (True, False)


def changed(of: Hand, *agents: AgentPlan) -> Hand:
    """Let an operator accept a plan with these agents instead of ann, who has the account left."""
    old, new = (Plan("f", each, (TaskPlan("T1", "do it"),)) for each in ((AgentPlan("ann", account="left"),), agents))
    accepted = plan_change.State.ACCEPTED
    draft = plan_change.PlanChange(accepted, plan_difference.difference(old, new), plan_difference.rules_of(new))
    return of.give(plan_change.ref_of(1), Created(draft))


def planned() -> Hand:
    """Return the board of a plan with ann alone."""
    whole = Plan("f", (AgentPlan("ann", account="left"),), (TaskPlan("T1", "do it"),))
    first = next(envelope for name, envelope in opening(whole, 0) if name == "board")
    assert isinstance(first.event, Opened)
    return Hand("board", dict(first.event.records))


def test_a_new_agent_learns_that_its_account_rests() -> None:
    """It comes with a plan change. A new account is open."""
    ann = AgentPlan("ann", account="left")
    of = limit(planned(), "ann")
    changed(of, ann, AgentPlan("ben", account="left"), AgentPlan("cat", account="right"), AgentPlan("dan"))
    assert news(of) == [("worker/ben", "AccountRests")]
    assert of.state(accounts.ref_of("right")) == "Open"
    assert not [event for to, _, event in of.told() if to == "worker/dan" and isinstance(event, quota.AccountRests)]


def test_the_account_of_an_agent_is_settled_when_it_begins() -> None:
    """Its sessions may be in use of it."""
    of = changed(planned(), AgentPlan("ann", account="right"))
    assert of.state(plan_change.ref_of(1)) == "Refused"
    (reason,) = of.record(plan_change.ref_of(1)).reasons
    assert reason.startswith("agents.ann.account: is settled when an agent begins")


def test_a_projection_of_a_service_knows_no_accounts() -> None:
    """Nor does a worker without one."""
    assert accounts.known(Aggregate("service/web")) == accounts.Known()
    assert accounts.known(Aggregate("worker/ann")) == accounts.Known()


def test_the_properties_of_a_board_see_what_is_wrong() -> None:
    """A claim without an admission, an agent that uses an account without a task, and a success that opens none."""
    of = probed()
    assert all(each(of.aggregate) for each in WATCHES)
    unasked = put(of, accounts.ref_of("left"), users=())
    assert not accounts.claims_are_admitted(unasked)
    idle = put(of, "worker_slot:ann", state=worker_slot.State.WAITING)
    assert not accounts.users_are_at_a_task(idle)
    done = put(of, "task:T1", state=task.State.DONE)
    assert not accounts.success_opens(done)


WATCHES = (accounts.claims_are_admitted, accounts.users_are_at_a_task, accounts.success_opens)


def put(of: Hand, ref: str, **fields: Any) -> Aggregate:
    """Return the board with other fields of one record."""
    entity = of.entity(ref)
    record = replace(entity.record, **fields)
    return replace(of.aggregate, entities=of.aggregate.entities.set(ref, replace(entity, record=record)))


def test_an_agent_without_an_account_is_given_tasks_while_others_rest() -> None:
    """No account has to admit it."""
    of = limit(ask(board(make("T1"), ann="left", dan=""), "ann"), "ann")
    assert assigned(ask(of, "dan")) == [("worker/dan", "T1")]


def test_a_limit_has_its_name_or_the_words_of_the_agent() -> None:
    """For messages."""
    assert accounts.reason_of(account.Account(scope="five_hour", message="limit reached")) == "five_hour limit"
    assert accounts.reason_of(account.Account(message="limit reached")) == "limit reached"


QUOTA = fleet_of(3, 9, kind="quota-")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["quota-", ""], ids=["with accounts", "without"])
def test_fleets_keep_their_properties(kind: str, seed: int) -> None:
    """Sessions with an account meet limits at any time, and runners die at any time."""
    fleet = fleet_of(3, 9, kind=kind)
    assert simulate(system, opening=fleet.opening, environment=fleet.environment, seed=seed).found is None


LOST = {
    ("board", "admit"): (1, "every claim is admitted by the account of its agent"),
    ("board", "leave_account"): (1, "every agent that uses an account is at a task"),
    ("board", "tell_workers"): (5, "with no message in flight, every agent knows whether its account rests"),
    ("worker", "ask_account"): (1, "no session begins while its worker knows that the account rests"),
    ("worker", "report_limit"): (5, "a worker whose account rests has given its task back"),
}
"""By rule: a seed with which a fleet without it breaks a property."""


@pytest.mark.parametrize(("kind", "name"), LOST, ids=[name for _, name in LOST])
def test_a_fleet_without_one_of_these_rules_breaks_a_property(kind: str, name: str) -> None:
    """Each rule is needed."""
    seed, prop = LOST[kind, name]
    lost = without(name, kind)
    found = simulate(lost, opening=QUOTA.opening, environment=QUOTA.environment, seed=seed).found
    assert found is not None
    assert found.prop == prop
