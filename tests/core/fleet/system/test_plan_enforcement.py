"""A changed plan comes into force as a whole, or is refused as a whole, and nothing that is under way is lost by it."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from aggregate_hand import Hand
from board_hand import ask, assigned, brief, close, fail, finish, go, park, rest, say, split, states
from lifefold.core.fleet import (
    AgentPlan,
    Budget,
    GatePlan,
    Plan,
    Preemption,
    ServicePlan,
    Talks,
    TaskPlan,
    opening,
    system,
)
from lifefold.core.fleet.board import budget, fleet_task, service_slot, worker_slot
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.system import plan_change, plan_enforcement
from lifefold.core.fleet.system.board_properties import view_agrees
from lifefold.core.fleet.system.plan import budget_of, fleet_task_of
from lifefold.core.fleet.system.plan_adoption import adopted, raised
from lifefold.core.fleet.system.plan_difference import difference, rules_of
from lifefold.core.fleet.system.plan_obstacles import obstacles, over
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Created, Envelope, Event, Opened, Reaction, react, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.approval import ApprovalGranted
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps
from lifefold.core.lifecycles.session import Limits
from lifefold.core.lifecycles.session_profiles import LimitsChanged
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.retry import RetryPolicy
from lifefold.interpreters.explain import task_status

DRAIN: Final = desired_state.DrainWanted(plan_enforcement.REMOVED)
GO_HOME: Final = desired_state.StopWanted("no work is left", None)
ANN, BOB = AgentPlan("ann"), AgentPlan("bob")


RULES: Final = Plan("f", (), ())


def t(name: str, *needs: str, **fields: Any) -> TaskPlan:
    """Return a task of a plan."""
    given: dict[str, Any] = {"max_retries": 0, **fields}
    return TaskPlan(name, f"do {name}", depends_on=needs, **given)


def plan(*tasks: TaskPlan, agents: tuple[AgentPlan, ...] = (ANN,), **fields: Any) -> Plan:
    """Return a plan; without another name, ann works on it."""
    return Plan("f", agents, tasks, **fields)


def begun(of: Plan) -> Hand:
    """Return the board that a plan opens."""
    first = next(envelope for name, envelope in opening(of, 0) if name == "board")
    assert isinstance(first.event, Opened)
    return Hand("board", dict(first.event.records))


def drafted(of: Hand, old: Plan, new: Plan) -> plan_change.PlanChange:
    """Return the change from one plan to another, as an operator accepts it now."""
    accepted = plan_change.State.ACCEPTED
    changes = difference(old, new, adopted(of.aggregate, old, new))
    after = plan_change.last_in_force(of.aggregate)
    return plan_change.PlanChange(accepted, changes, rules_of(new), after, meaning="file")


def accept(of: Hand, old: Plan, new: Plan, *, partial: bool = False) -> Hand:
    """Let an operator accept a change that must be in force then."""
    number = len(list(plan_change.changes_of(of.aggregate))) + 1
    of.give(plan_change.ref_of(number), Created(replace(drafted(of, old, new), partial=partial)))
    assert of.state(plan_change.ref_of(number)) == "InForce", of.record(plan_change.ref_of(number)).reasons
    assert view_agrees(of.aggregate)
    assert plan_enforcement.has_the_terms_in_force(of.aggregate)
    assert plan_enforcement.has_the_agents_of_the_plan(of.aggregate)
    assert plan_enforcement.is_not_claimed(of.aggregate)
    assert difference(plan_change.in_force(old, of.aggregate), new) == ()
    return of


def added(of: Hand, each: TaskPlan, rules: Plan = RULES, *, retries: int = 0) -> Hand:
    """Let a command add a task to the board, with so many retries already used."""
    return of.give(f"task:{each.id}", Created(replace(fleet_task_of(each, 7, rules), retries=retries)))


def told(of: Hand, to: str) -> list[tuple[str, object]]:
    """Return what the last reaction tells an aggregate."""
    return [(entity, event) for name, entity, event in of.told() if name == to]


def why_not(of: Hand, old: Plan, new: Plan) -> list[tuple[str, str]]:
    """Return what is in the way of a change, with the command that helps; then nothing of it is in force."""
    before, found = of.aggregate, obstacles(of.aggregate, drafted(of, old, new))
    number = len(list(plan_change.changes_of(before))) + 1
    of.give(plan_change.ref_of(number), Created(drafted(of, old, new)))
    assert of.state(plan_change.ref_of(number)) == "Refused"
    assert of.record(plan_change.ref_of(number)).reasons == tuple(map(str, found))
    assert {**of.aggregate.entities} == {**before.entities, (ref := plan_change.ref_of(number)): of.entity(ref)}
    assert of.told() == []
    return [(each.what, each.instead) for each in found]


# Tasks


def test_a_wrong_verify_is_corrected_at_every_stage_and_the_work_goes_on() -> None:
    """An open task is claimed with the new commands; its worker is told, under the same claim."""
    old, new = plan(t("T1"), t("T2")), plan(t("T1", verify=(("a",),)), t("T2", verify=(("b",),)))
    of = accept(ask(begun(old)), old, new)
    assert told(of, "worker/ann") == [("assignment", assignment.Rebriefed("T1", 1, (("a",),)))]
    assert (of.record("task:T1").owner, of.record("task:T1").epoch) == ("ann", 1)
    close(of, "T1")
    assert brief(ask(of)).verify == (("b",),)


def test_a_prompt_is_changed_for_the_next_claim() -> None:
    """The session that is at the task goes on; who claims it after it has failed is told the new prompt."""
    old = plan(t("T1", max_retries=1))
    of = accept(ask(begun(old)), old, plan(replace(t("T1", max_retries=1), prompt="better")))
    assert told(of, "worker/ann") == []
    assert brief(ask(rest(fail(of, "T1"), "T1"))).prompt == "better"


def test_new_tasks_are_given_out_and_wait_for_what_they_need() -> None:
    """Also for each other, and for what is closed already."""
    old = plan(t("T1"), t("T2"))
    of = close(ask(begun(old)), "T1")
    accept(of, old, plan(t("T3", "T1"), t("T1"), t("T2"), t("T4", "T2")))
    assert [of.record(f"task:{name}").ordinal for name in ("T3", "T2", "T4")] == [0, 2, 3]
    assert assigned(ask(of)) == [("worker/ann", "T3")]


def test_a_task_that_is_removed_is_not_done_and_may_come_back() -> None:
    """Its place in the plan is what it lacks; what was added by the way stays."""
    old, new = plan(t("T1"), t("T2")), plan(t("T1"))
    of = accept(begun(old), old, new)
    assert (of.state("task:T2"), of.record("task:T2").blocked_by) == ("BLOCKED", fleet_task.PLAN)
    assert plan_change.removed(of.aggregate) == {"T2"}
    accept(of, new, old)
    assert states(of, "T1", "T2") == ["OPEN", "OPEN"]
    assert plan_change.removed(of.aggregate) == set()


@pytest.mark.parametrize("name", ["T1", "T2"])
def test_a_removed_task_stays_removed_until_a_change_of_its_own_puts_it_back(name: str) -> None:
    """T1 has failed, and T2 was not begun. Other tasks, their places and the fleet's rules put neither back."""
    old = plan(t("T1"), t("T2"), t("T3"))
    without = plan(*(each for each in old.tasks if each.id != name))
    of = accept(fail(ask(begun(old)), "T1"), old, without)
    later = plan(t("T0"), *without.tasks)
    accept(of, without, later)
    slower = replace(later, retry=RetryPolicy(backoff_base_ms=7))
    accept(of, later, slower)
    assert of.record(f"task:{name}").removed
    back = replace(slower, tasks=(*slower.tasks, t(name)))
    accept(of, slower, back)
    assert not of.record(f"task:{name}").removed
    assert of.record(f"task:{name}").retry == RetryPolicy(backoff_base_ms=7)


def test_what_is_removed_is_not_counted_and_says_so() -> None:
    """Also what had failed: its failure is said, too."""
    old, new = plan(t("T1"), t("T2"), t("T3")), plan(t("T3"))
    of = accept(fail(ask(begun(old)), "T1"), old, new)
    found = task_status.tasks({"board": of.aggregate})
    assert [each.id for each in task_status.counted(found)] == ["T3"]
    assert [each.reason for each in found if each.removed] == [
        f"broken; {plan_enforcement.REMOVED}",
        plan_enforcement.REMOVED,
    ]


def test_closed_work_is_counted_also_when_its_task_is_no_longer_in_the_plan() -> None:
    """Its removal has no effect. A cancelled task that is removed is not counted: an operator wanted neither."""
    old, new = plan(t("T1"), t("T2"), t("T3")), plan(t("T3"))
    of = close(ask(begun(old).give("task:T2", task.Cancelled("no"))), "T1")
    accept(of, old, new, partial=True)
    found = task_status.tasks({"board": of.aggregate})
    assert [(each.id, each.state) for each in task_status.counted(found)] == [("T1", "CLOSED"), ("T3", "OPEN")]


def test_a_removed_task_that_rests_is_not_tried_again_until_it_is_back() -> None:
    """Its rest runs out, and changes nothing; back in the plan it has the retry that it had."""
    old, new = plan(t("T1", max_retries=1), t("T2")), plan(t("T2"))
    of = accept(fail(ask(begun(old)), "T1"), old, new)
    assert states(rest(of, "T1"), "T1") == ["FAILED"]
    accept(of, new, old)
    assert (of.state("task:T1"), of.record("task:T1").retries) == ("OPEN", 1)


def test_a_task_that_failed_for_good_and_was_removed_is_not_retried_and_comes_back_as_it_was() -> None:
    """Its place in the plan is what it lacks. Back in the plan it has the retries that the plan gives it."""
    old, new = plan(t("T1"), t("T2")), plan(t("T2"))
    of = accept(fail(ask(begun(old)), "T1"), old, new)
    assert (of.state("task:T1"), of.record("task:T1").blocked_by) == ("FAILED", fleet_task.PLAN)
    accept(of, new, old)
    assert (of.state("task:T1"), of.record("task:T1").blocked_by) == ("FAILED", "")
    accept(of, old, plan(t("T1", max_retries=1), t("T2")))
    assert states(of, "T1") == ["OPEN"]


@pytest.mark.parametrize("word", [task.Unblocked(), fleet_task.RetryGranted()], ids=["unblocked", "retried"])
def test_no_word_puts_a_removed_task_to_work(word: Event) -> None:
    """Whether it was not begun, or has failed: what it lacks is its place in the plan, and it is not claimed."""
    old, new = plan(t("T1"), t("T2"), t("T3")), plan(t("T3"))
    of = accept(fail(ask(begun(old)), "T1"), old, new)
    ask(of).give("task:T2" if isinstance(word, task.Unblocked) else "task:T1", word)
    assert set(states(of, "T1", "T2")) <= {"BLOCKED", "FAILED"}
    assert {of.record(f"task:{name}").blocked_by for name in ("T1", "T2")} == {fleet_task.PLAN}
    assert plan_enforcement.is_not_claimed(of.aggregate)
    assert assigned(close(of, "T3")) == []


def test_a_removed_task_is_not_done_because_the_same_change_lets_more_be_spent() -> None:
    """No task is assigned before all of the change is in force; then the others are."""
    old = plan(t("T1"), t("T2"), t("T3"), budget=Budget(Caps(sessions=1)), agents=(ANN, BOB))
    of = close(ask(begun(old)), "T1").hear("worker/ann", "worker_slot:ann", worker_slot.WorkWanted(Amounts(sessions=1)))
    assert states(of, "T2", "T3") == ["BLOCKED", "BLOCKED"]
    new = replace(old, tasks=(old.tasks[0], old.tasks[2]), budget=Budget(Caps(sessions=9)))
    accept(of, old, new)
    assert (states(of, "T2", "T3"), of.record("task:T2").blocked_by) == (["BLOCKED", "CLAIMED"], fleet_task.PLAN)
    accept(of, new, replace(old, budget=new.budget))
    assert states(ask(of, "bob"), "T2") == ["CLAIMED"]


def test_new_tasks_for_old_ones_end_no_fleet_in_between() -> None:
    """A change that leaves nothing to do ends it, when all of it is in force."""
    old, new = plan(t("T1")), plan(t("T2"))
    of = accept(begun(old), old, new)
    assert told(of, "worker/ann") == []
    done = replace(old, tasks=(t("T1"), t("T2")))
    left = accept(close(ask(begun(done)), "T1"), done, old)
    assert told(left, "worker/ann") == [("desired_state", GO_HOME)]


def test_a_removed_task_of_an_unapproved_plan_is_not_done() -> None:
    """It was not begun, and is declined for good."""
    old = plan(t("T1"), t("T2"), approve_plan=True)
    assert states(accept(begun(old), old, plan(t("T1"), approve_plan=True)), "T2") == ["CANCELLED"]


def test_what_is_over_can_be_removed_and_stays_what_it_is() -> None:
    """A task that has failed for good, and one that was cancelled."""
    old = plan(t("T1"), t("T2"), t("T3"))
    of = fail(ask(begun(old)), "T1").give("task:T2", task.Cancelled("no"))
    accept(of, old, plan(t("T3")))
    assert states(of, "T1", "T2", "T3") == ["FAILED", "CANCELLED", "OPEN"]


def test_more_retries_bring_back_what_has_failed_for_good_and_fewer_end_it() -> None:
    """The retries that were used are never taken back."""
    old, more = plan(t("T1"), t("T2")), plan(t("T1", max_retries=2), t("T2"))
    of = accept(fail(ask(begun(old)), "T1"), old, more)
    assert (of.state("task:T1"), of.record("task:T1").retries) == ("OPEN", 1)
    assert close(ask(fail(ask(of), "T1")), "T2").state("task:T1") == "FAILED"
    resting = fail(ask(begun(more)), "T1")
    accept(resting, more, old)
    assert task.settled(resting.record("task:T1"))


def test_a_failure_that_cannot_pass_stays_one() -> None:
    """More retries in the plan do not try it again: no task runs twice because of a change."""
    old, new = plan(t("T1", max_retries=3), t("T2")), plan(t("T1", max_retries=5), t("T2"))
    of = fail(ask(begun(old)), "T1", "invalid api key")
    assert states(accept(of, old, new), "T1") == ["FAILED"]


def test_what_waits_for_another_task_may_wait_no_more_and_the_other_way_round() -> None:
    """Files and dependencies of a task that is not begun: it is ready at once, or has to wait."""
    old = plan(t("T1", files=("a",)), t("T2", "T1", files=("b",)))
    of = ask(begun(old))
    assert of.told()[-1][0] == "worker/ann"
    new = plan(t("T1", files=("a",)), t("T2", files=("a/x",)))
    accept(of, old, new)
    last = accept(of, new, plan(t("T1", files=("a",)), t("T2", files=("c",), priority=1)))
    assert last.record("task:T2").files == ("c",)
    accept(last, plan(t("T1", files=("a",)), t("T2", files=("c",), priority=1)), old)


def test_what_was_blocked_is_looked_at_by_its_new_terms() -> None:
    """It depends no more on what is lost; or on something else that is."""
    old = plan(t("T1"), t("T2", "T1"), t("T3"))
    of = fail(ask(begun(old)), "T1")
    assert states(of, "T2") == ["BLOCKED"]
    prompted = plan(t("T1"), replace(t("T2", "T1"), prompt="better"), t("T3"))
    assert states(accept(of, old, prompted), "T2") == ["BLOCKED"]
    assert states(accept(of, prompted, plan(t("T1"), t("T2"), t("T3"))), "T2") == ["OPEN"]


def test_a_task_that_was_split_keeps_its_place_and_its_parts() -> None:
    """A part that is lost is no matter of its terms."""
    old, new = plan(t("T1", most_subtasks=4)), plan(t("T0"), t("T1", most_subtasks=4, verify=(("a",),)))
    of = split(ask(begun(old)), "T1")
    fail(ask(of), "T1+1")
    accept(of, old, new)
    assert (of.record("task:T1").ordinal, of.state("task:T1"), of.record("task:T1").blocked_by) == (
        0,
        "BLOCKED",
        "T1+1",
    )


def test_a_split_task_that_has_failed_can_be_removed() -> None:
    """Nothing of it is under way any more."""
    old = plan(t("T1", most_subtasks=2), t("T2"))
    of = split(ask(begun(old)), "T1", parts=1)
    close(ask(of), "T1+1")
    say(ask(of), "T1", task.Rejected)
    assert states(accept(of, old, plan(t("T2"))), "T1") == ["FAILED"]


def test_the_fleets_rules_reach_all_tasks_that_are_not_over() -> None:
    """Those that were added, and parts."""
    old, new = plan(t("T1"), t("T2")), plan(t("T1"), t("T2"), approval_ms=7, retry=RetryPolicy(backoff_base_ms=5))
    of = close(ask(begun(old)), "T1")
    of.give("task:X", Created(fleet_task.FleetTask(task.State.OPEN, "X")))
    accept(of, old, new)
    assert [of.record(f"task:{name}").approval_ms for name in ("T2", "X")] == [7, 7]
    assert of.record("task:T2").retry.backoff_base_ms == 5


def test_whether_a_person_is_asked_can_change_until_the_work_is_begun() -> None:
    """Both ways."""
    old, new = plan(t("T1")), plan(t("T1", needs_approval=True))
    of = accept(begun(old), old, new)
    assert of.record("task:T1").needs_approval
    assert not accept(of, new, old).record("task:T1").needs_approval


# Agents


def test_a_new_agent_begins_as_one_that_was_there_from_the_start() -> None:
    """The board tells its worker to open: by a message, which is numbered and comes once."""
    limited = Budget(Caps(sessions=9, time_ms=9), Amounts(sessions=1, time_ms=1))
    old = plan(t("T1"), budget=limited, preemption=Preemption(), restarts=Intensity())
    new = replace(old, agents=(ANN, BOB))
    of = accept(begun(old), old, new)
    ((entity, event),) = told(of, "worker/bob")
    expected = dict(opening(new, 0))["worker/bob"].event
    assert (entity, event) == ("", expected)
    assert set(begun(new).aggregate.entities) <= {*of.aggregate.entities}
    first = Envelope("", expected, 0, "board", sender="board", ordinal=1)
    born = react(system.type_of("worker/bob"), system.type_of("worker/bob").start("worker/bob"), first)
    assert isinstance(born, Reaction)
    assert born.aggregate.record("session").name == "bob"


def test_a_new_agent_frees_what_was_blocked_for_want_of_its_role() -> None:
    """And what asks for another role stays blocked."""
    old = plan(
        t("T1", role="tester"), t("T2", role="pilot"), t("T3"), agents=(replace(ANN, roles=("tester", "pilot")), BOB)
    )
    of = go(begun(old), "ann")
    assert states(of, "T1", "T2") == ["BLOCKED", "BLOCKED"]
    new = replace(old, agents=(*old.agents, AgentPlan("cat", roles=("tester",))))
    assert states(accept(of, old, new), "T1", "T2") == ["OPEN", "BLOCKED"]


CAT = AgentPlan("cat", roles=("pilot",))
NEW_WORK: Final = {
    "a new agent": ((ANN,), (ANN, CAT)),
    "another agent in its place": ((ANN, AgentPlan("dan", roles=("pilot",))), (ANN, CAT)),
    "an agent that has the role from now on": ((ANN, AgentPlan("cat")), (ANN, CAT)),
    "an agent that takes it over from another one": (
        (AgentPlan("ann", roles=("pilot",)), AgentPlan("cat")),
        (ANN, CAT),
    ),
}


@pytest.mark.parametrize("name", NEW_WORK)
def test_a_new_task_is_open_for_an_agent_of_the_same_plan_change(name: str) -> None:
    """The order within one change makes no difference; what was there and asks for the role is open, too."""
    before, after = NEW_WORK[name]
    old = plan(t("T1"), t("T2", role="pilot"), agents=before)
    new = plan(t("T1"), t("T2", role="pilot"), t("T3", role="pilot"), agents=after)
    of = accept(ask(begun(old), "ann"), old, new)
    assert states(of, "T1", "T2", "T3") == ["CLAIMED", "OPEN", "OPEN"]
    assert assigned(ask(of, "cat")) == [("worker/cat", "T2")]


def test_a_task_with_more_trust_is_open_for_an_agent_of_the_same_plan_change() -> None:
    """And one that lacked a role as well is blocked by what it lacks then."""
    old = plan(t("T1"), t("T2", role="pilot", trust=AccessLevel.ELEVATED), gates=GatePlan())
    of = begun(old)
    agents = (ANN, AgentPlan("cat", roles=("pilot",), trust=AccessLevel.TRUSTED))
    new = plan(*old.tasks, t("T3", role="pilot", trust=AccessLevel.TRUSTED), agents=agents, gates=GatePlan())
    accept(of, old, new)
    assert states(of, "T2", "T3") == ["BLOCKED", "OPEN"]
    assert of.record("task:T2").blocked_by == f"{fleet_task.LEVEL}elevated"


def test_an_agent_that_is_removed_drains() -> None:
    """It finishes what it has in hand; one that is gone already is told nothing."""
    old = plan(t("T1"), agents=(ANN, BOB))
    of = accept(begun(old), old, plan(t("T1")))
    assert told(of, "worker/bob") == [("desired_state", DRAIN)]
    gone = accept(go(begun(old), "bob"), old, plan(t("T1")))
    assert told(gone, "worker/bob") == []


def test_an_agent_that_is_removed_is_given_nothing_by_the_same_change_and_later() -> None:
    """Neither a waiting task nor a new one, also if it asks for work before it knows that it is to leave."""
    old = plan(t("T1"), t("T2"), agents=(ANN, BOB))
    of = ask(begun(old), "bob")
    assert of.record("task:T1").owner == "bob"
    accept(of, old, plan(t("T1"), t("T2"), t("T3")))
    assert assigned(close(of, "T1")) == []
    assert assigned(ask(of, "bob")) == []
    assert assigned(ask(of, "ann")) == [("worker/ann", "T2")]
    late = plan(t("T0", files=("a",)), t("T1", files=("a",)), agents=(ANN, BOB))
    idle = ask(ask(begun(late), "ann"), "bob")
    assert idle.state("worker_slot:bob") == "Waiting"
    accept(idle, late, replace(late, agents=(ANN,), tasks=(*late.tasks, t("T2"))))
    assert (states(idle, "T2"), assigned(idle)) == (["OPEN"], [])


def test_a_fleet_does_not_wait_for_what_an_agent_that_leaves_has_earned() -> None:
    """The task that needs its new level is not assigned, so nothing is left."""
    old = plan(t("T1"), t("T2", trust=AccessLevel.PROBATIONARY), gates=GatePlan())
    of = ask(begun(old))
    accept(of, old, replace(old, agents=(BOB,)))
    close(of, "T1")
    assert (states(of, "T2"), told(of, "worker/bob")) == (["BLOCKED"], [("desired_state", GO_HOME)])


def test_what_only_a_removed_agent_could_do_is_blocked_at_once() -> None:
    """No worker is left with its role; the present task of the agent goes on."""
    old = plan(t("T1", role="pilot"), t("T2", role="pilot"), agents=(ANN, AgentPlan("cat", roles=("pilot",))))
    of = ask(begun(old), "cat")
    accept(of, old, replace(old, agents=(ANN,)))
    assert states(of, "T1", "T2") == ["CLAIMED", "BLOCKED"]


def test_agents_hear_of_their_new_limits_and_roles() -> None:
    """What did not change is not told."""
    old = plan(t("T1"), t("T2", role="pilot"), agents=(replace(ANN, roles=("pilot",)), BOB))
    limits = Limits(session_timeout_ms=5)
    agents = (AgentPlan("ann", limits, verify_timeout_ms=9, roles=(), adaptive=True), BOB)
    of = accept(begun(old), old, replace(old, agents=agents))
    said = [("session", LimitsChanged(limits)), ("assignment", assignment.VerifyTimeoutChanged(9))]
    assert (told(of, "worker/ann"), told(of, "worker/bob")) == (said, [])
    assert (of.record("worker_slot:ann").roles, of.record("worker_slot:ann").adaptive) == ((), True)
    assert states(of, "T2") == ["BLOCKED"], "no worker has its role any more"


def test_services_come_and_go() -> None:
    """A new one is told to open, one that is removed drains, and one that is gone is told nothing."""
    web = ServicePlan("web", takes_messages=True)
    old, new = plan(t("T1")), plan(t("T1"), services=(web,))
    of = accept(begun(old), old, new)
    assert told(of, "service/web") == [("", dict(opening(new, 0))["service/web"].event)]
    accept(of, new, old)
    assert told(of, "service/web") == [("desired_state", DRAIN)]
    gone = begun(new).hear("service/web", "service_slot:web", service_slot.ServiceGone("down"))
    assert told(accept(gone, new, old), "service/web") == []


# Budgets


def test_budgets_have_their_new_caps_at_once() -> None:
    """A higher budget lets waiting tasks go on, and a lower one may end the rest. Spent and reserved amounts stay."""
    few, many = Budget(Caps(sessions=1)), Budget(Caps(sessions=3))
    old, new = plan(t("T1"), t("T2"), budget=few), plan(t("T1"), t("T2"), budget=many)
    of = accept(ask(begun(old)), old, new)
    (line,) = of.record("budget:fleet").lines
    assert (line.account.cap, line.account.reserved) == (3, 1)
    accept(of, new, old)
    assert of.state("budget:fleet") == "Held"
    fresh = begun(new)
    accept(fresh, new, old)
    assert fresh.state("budget:fleet") == "Full"


def test_new_tasks_and_agents_have_their_own_budgets() -> None:
    """And remaining tasks get new ones. A task that comes back has its old one."""
    limited = Budget(Caps(sessions=9))
    own = Caps(sessions=2)
    old = plan(t("T1", caps=own), agents=(replace(ANN, caps=own),), budget=limited)
    more = Caps(sessions=3)
    new = plan(
        t("T1", caps=more), t("T2", caps=own), agents=(replace(ANN, caps=more), replace(BOB, caps=own)), budget=limited
    )
    of = accept(begun(old), old, new)
    caps = {ref: of.record(ref).lines[0].account.cap for ref in of.aggregate.entities if ref.startswith("budget:")}
    assert caps == {
        "budget:fleet": 9, "budget:agent/ann": 3, "budget:agent/bob": 2, "budget:task/T1": 3, "budget:task/T2": 2,
    }  # fmt: skip
    without = replace(new, tasks=(new.tasks[0],))
    accept(accept(of, new, without), without, new)
    back = replace(new, tasks=(new.tasks[0], replace(new.tasks[1], caps=Caps(sessions=5))))
    accept(accept(of, new, without), without, back)
    assert of.record("budget:task/T2").lines[0].account.cap == 5


def test_a_changed_cap_of_the_file_is_in_force_whatever_an_operator_has_added_to_the_former_one() -> None:
    """An unchanged cap keeps what was added. A lower cap is compared with what is spent and reserved."""
    old = plan(t("T1"), budget=Budget(Caps(sessions=2, tokens=5), Amounts(sessions=1, tokens=1)))
    of = begun(old).give("budget:fleet", budget.Raise(Amounts(sessions=1, tokens=1)))
    new = replace(old, budget=replace(old.budget, caps=Caps(sessions=9, tokens=5)))
    accept(of, old, new)
    assert budgets.caps_of(of.aggregate, budgets.FLEET) == Caps(sessions=9, tokens=6)
    of.give("budget:fleet", budget.Raise(Amounts(sessions=5)))
    accept(ask(of), new, replace(old, budget=replace(old.budget, caps=Caps(sessions=1, tokens=5))))
    assert budgets.caps_of(of.aggregate, budgets.FLEET) == Caps(sessions=1, tokens=6)
    assert budgets.caps_of(of.aggregate, "budget:task/T1") == Caps()


def test_a_changed_cap_that_a_command_has_raised_is_named_with_both_amounts() -> None:
    """Of the fleet, of an agent and of a task; an unchanged cap, and one that no command has raised, is not."""
    few, own, more = Caps(sessions=5, tokens=9), Caps(sessions=2), Amounts(sessions=1)
    old = plan(
        t("T1", caps=own), t("T2", caps=own), agents=(replace(ANN, caps=own), BOB),
        budget=Budget(few, Amounts(sessions=1, tokens=1)),
    )  # fmt: skip
    of = begun(old)
    for ref in (budgets.FLEET, budgets.of_agent("ann"), budgets.of_task("T1")):
        of.give(ref, budget.Raise(more))
    new = replace(
        plan(t("T1", caps=Caps(sessions=4)), t("T2", caps=Caps(sessions=4)), t("T3"), agents=(replace(ANN, caps=few),)),
        budget=replace(old.budget, caps=Caps(sessions=8, tokens=8)),
    )
    here = Caps(sessions=3)
    assert raised(of.aggregate, drafted(of, old, new)) == {
        "fleet": (Caps(sessions=5), Caps(sessions=6)), "agents.ann": (own, here), "tasks.T1": (own, here),
    }  # fmt: skip


# Tasks that a command has added


ADDED: Final = t("T9", "T1", files=("a", "b"), max_retries=2, trust=AccessLevel.ELEVATED, needs_approval=True)


def test_a_task_that_a_command_has_added_and_the_file_has_as_well_is_no_change() -> None:
    """From then on it is a task of the plan: its removal from the file removes it."""
    old = plan(t("T1"))
    of = added(begun(old), ADDED)
    new = plan(t("T1"), replace(ADDED, files=("b", "a")))
    assert adopted(of.aggregate, old, new) == {"T9": new.tasks[1]}
    before = of.record("task:T9")
    accept(of, old, new)
    assert of.record("task:T9") == replace(before, files=("b", "a"), ordinal=1)
    assert adopted(of.aggregate, new, new) == {}
    accept(of, new, old)
    assert of.record("task:T9").removed
    assert adopted(of.aggregate, old, new) == {}, "it was a task of the plan"


def test_retries_that_were_granted_to_an_added_task_are_no_change_but_more_in_the_file_are() -> None:
    """``lifefold retry`` raises the number on the board; the same definition has the former one."""
    old = plan(t("T1"))
    of = added(begun(old), replace(ADDED, max_retries=3), retries=3)
    for planned, known in ((0, 0), (2, 2), (3, 3), (4, 3)):
        new = plan(t("T1"), replace(ADDED, max_retries=planned))
        assert adopted(of.aggregate, old, new)["T9"].max_retries == known


def test_fewer_retries_of_an_added_task_are_a_change_unless_all_of_them_are_used() -> None:
    """An operator grants a retry only to a task that has none left, so nothing has raised this number."""
    old, new = plan(t("T1")), plan(t("T1"), replace(ADDED, max_retries=1))
    of = added(begun(old), replace(ADDED, max_retries=3), retries=2)
    assert adopted(of.aggregate, old, new)["T9"].max_retries == 3
    accept(of, old, new)
    assert of.record("task:T9").max_retries == 2, "those that were used stay counted"


def test_other_terms_of_a_task_that_a_command_has_added_are_a_change_of_that_task() -> None:
    """Only the terms that differ do; the budget is that in force."""
    ann = replace(ANN, trust=AccessLevel.ELEVATED)
    old = plan(t("T1"), agents=(ann,), budget=SESSIONS, orphaned=task.OnDeath.REQUEUE, gates=GatePlan())
    of = added(begun(old), replace(ADDED, caps=Caps(sessions=1)), old)
    for ref, money in budget_of("budget:task/T9", Caps(sessions=1), old.budget):
        of.give(ref, Created(money))
    now = replace(ADDED, prompt="better", depends_on=(), orphaned=task.OnDeath.FAIL, caps=Caps(sessions=2))
    new = replace(old, tasks=(t("T1"), now))
    was = replace(ADDED, orphaned=task.OnDeath.REQUEUE, caps=Caps(sessions=1))
    assert adopted(of.aggregate, old, new) == {"T9": was}
    accept(of, old, new)
    assert (of.record("task:T9").prompt, budgets.caps_of(of.aggregate, "budget:task/T9")) == ("better", now.caps)


# What cannot be


OVER = "lifefold run {fleet} --again"
FRESH = "lifefold run {fleet} --db {fresh}"
ACCEPT = "lifefold run {fleet} --accept"
REST = "lifefold run {fleet} --accept --rest"
REJECT = "lifefold reject T1 --reason 'the fleet file has changed'"
SESSIONS = Budget(Caps(sessions=3))

REFUSED: Final[dict[str, tuple[Plan, Callable[[Hand], Hand], Plan, list[tuple[str, str]]]]] = {
    "a closed task": (
        plan(t("T1"), t("T2")),
        lambda of: close(ask(of), "T1"),
        plan(t("T1", verify=(("a",),)), t("T2")),
        [("tasks.T1", REST)],
    ),
    "a closed task that is removed": (
        plan(t("T1"), t("T2")),
        lambda of: close(ask(of), "T1"),
        plan(t("T2")),
        [("tasks.T1", REST)],
    ),
    "a task at work that is removed": (
        plan(t("T1"), t("T2")),
        ask,
        plan(t("T2")),
        [("tasks.T1", "lifefold cancel T1")],
    ),
    "a task that waits for its parts and is removed": (
        plan(t("T1", most_subtasks=2), t("T2")),
        lambda of: split(ask(of), "T1"),
        plan(t("T2")),
        [("tasks.T1", "lifefold cancel T1")],
    ),
    "files of a task at work": (
        plan(t("T1"), t("T2")),
        ask,
        plan(t("T1", files=("a",), role="r"), t("T2")),
        [("tasks.T1.role", "lifefold why T1"), ("tasks.T1.files", "lifefold why T1")],
    ),
    "the removal of work that waits for a person": (
        plan(t("T1", needs_approval=True), t("T2")),
        lambda of: park(ask(of), "T1"),
        plan(t("T2")),
        [("tasks.T1", REJECT)],
    ),
    "the removal of work that is being verified": (
        plan(t("T1"), t("T2")),
        lambda of: finish(ask(of), "T1"),
        plan(t("T2")),
        [("tasks.T1", "lifefold why T1")],
    ),
    "approval of what waits for a person": (
        plan(t("T1", needs_approval=True), t("T2")),
        lambda of: park(ask(of), "T1"),
        plan(t("T1"), t("T2")),
        [("tasks.T1.approval", REJECT)],
    ),
    "the priority of what was split": (
        plan(t("T1", most_subtasks=2), t("T2")),
        lambda of: fail(ask(split(ask(of), "T1")), "T1+1"),
        plan(t("T1", most_subtasks=2, priority=1), t("T2")),
        [("tasks.T1.priority", FRESH)],
    ),
    "no commands for the work of a dead session": (
        plan(t("T1", verify=(("a",),), orphaned=task.OnDeath.VERIFY)),
        lambda of: finish(ask(of), "T1"),
        plan(t("T1", orphaned=task.OnDeath.VERIFY)),
        [("tasks.T1.verify", "lifefold why T1")],
    ),
    "a file with other terms of an added task that is closed": (
        plan(t("T1")),
        lambda of: close(ask(added(of, t("T0", priority=1))), "T0"),
        plan(t("T1"), t("T0")),
        [("tasks.T0", REST)],
    ),
    "budgets where nothing is counted": (
        plan(t("T1")),
        lambda of: of,
        plan(t("T1"), t("T2", caps=Caps(sessions=1)), agents=(ANN, replace(BOB, caps=Caps(sessions=1)))),
        [("agents.bob.budget", FRESH), ("tasks.T2.budget", FRESH)],
    ),
    "a budget that was not there, and one that is not there any more": (
        plan(t("T1", caps=Caps(sessions=1)), budget=SESSIONS),
        lambda of: of,
        plan(t("T1"), agents=(replace(ANN, caps=Caps(sessions=1)),), budget=SESSIONS),
        [("agents.ann.budget", FRESH), ("tasks.T1.budget", FRESH)],
    ),
    "less than is spent or set aside": (
        plan(t("T1"), t("T2"), agents=(ANN, BOB), budget=SESSIONS),
        lambda of: ask(of, "ann", "bob"),
        plan(t("T1"), t("T2"), agents=(ANN, BOB), budget=Budget(Caps(sessions=1))),
        [("fleet.budget", "lifefold pause")],
    ),
    "how budgets are kept": (
        plan(t("T1"), budget=Budget(Caps(time_ms=9), Amounts(time_ms=1))),
        lambda of: of,
        plan(t("T1"), budget=Budget(Caps(time_ms=9), Amounts(time_ms=2))),
        [("fleet.budget", FRESH)],
    ),
    "an agent that was there": (
        plan(t("T1")),
        lambda of: accept(
            accept(of, plan(t("T1")), plan(t("T1"), agents=(ANN, BOB))), plan(t("T1"), agents=(ANN, BOB)), plan(t("T1"))
        ),
        plan(t("T1"), agents=(ANN, BOB)),
        [("agents.bob", ACCEPT)],
    ),
    "what is settled when an agent begins": (
        plan(t("T1")),
        lambda of: of,
        plan(t("T1"), agents=(replace(ANN, trust=AccessLevel.TRUSTED, restart=Restart(max_restarts=9)),)),
        [("agents.ann.trust", ACCEPT), ("agents.ann.restart", ACCEPT)],
    ),
    "more trust": (
        plan(t("T1"), gates=GatePlan()),
        lambda of: of,
        plan(t("T1"), agents=(replace(ANN, trust=AccessLevel.TRUSTED),), gates=GatePlan()),
        [("agents.ann.trust", "lifefold trust ann --promote --reason 'the fleet file said trusted'")],
    ),
    "less trust": (
        plan(t("T1"), agents=(replace(ANN, trust=AccessLevel.TRUSTED),), gates=GatePlan()),
        lambda of: of,
        plan(t("T1"), gates=GatePlan()),
        [("agents.ann.trust", "lifefold trust ann --demote --reason 'the fleet file said untrusted'")],
    ),
    "trust of one who is gone": (
        plan(t("T1"), agents=(ANN, BOB), gates=GatePlan()),
        lambda of: go(of, "bob"),
        plan(t("T1"), agents=(ANN, replace(BOB, trust=AccessLevel.TRUSTED)), gates=GatePlan()),
        [("agents.bob.trust", ACCEPT)],
    ),
    "a task at work that all others wait for, and another one for it": (
        plan(t("T1"), t("T2", "T1"), t("T3", "T2")),
        ask,
        plan(t("T2", "T9"), t("T3", "T2"), t("T9")),
        [("tasks.T1", ACCEPT)],
    ),
    "a task at work that is the last": (
        plan(t("T1")),
        ask,
        plan(),
        [("tasks.T1", "lifefold cancel T1")],
    ),
    "a task whose session has died that is removed": (
        plan(t("T1", verify=(("a",),), orphaned=task.OnDeath.VERIFY), t("T2")),
        lambda of: say(ask(of), "T1", task.Started, task.Orphaned),
        plan(t("T2")),
        [("tasks.T1", "lifefold why T1")],
    ),
    "a removed task that would be limited now": (
        plan(t("T1"), t("T2"), budget=SESSIONS),
        lambda of: accept(of, plan(t("T1"), t("T2"), budget=SESSIONS), plan(t("T2"), budget=SESSIONS)),
        plan(t("T1", caps=Caps(sessions=2)), t("T2"), budget=SESSIONS),
        [("tasks.T1.budget", FRESH)],
    ),
    "the role of an agent at work": (
        plan(t("T1", role="r"), agents=(replace(ANN, roles=("r",)),)),
        ask,
        plan(t("T1", role="r")),
        [("agents.ann.roles", "lifefold cancel T1")],
    ),
    "a service that is triggered otherwise": (
        plan(t("T1"), services=(ServicePlan("web"),)),
        lambda of: of,
        plan(t("T1"), services=(ServicePlan("web", runs=Limits(grace_ms=1), takes_messages=True),)),
        [("agents.web", ACCEPT)],
    ),
    "a service that was there": (
        plan(t("T1"), services=(ServicePlan("web"),)),
        lambda of: accept(of, plan(t("T1"), services=(ServicePlan("web"),)), plan(t("T1"))),
        plan(t("T1"), services=(ServicePlan("web"),)),
        [("agents.web", ACCEPT)],
    ),
    "a plan that was put before a person": (
        plan(t("T1"), approve_plan=True),
        lambda of: of,
        plan(t("T1")),
        [("fleet.approve_plan", "lifefold approve")],
    ),
    "the fleet's foundations": (
        plan(t("T1")),
        lambda of: of,
        plan(t("T1"), approve_plan=True, gates=GatePlan(), restarts=Intensity(), orphaned=task.OnDeath.REQUEUE),
        [(f"fleet.{key}", FRESH) for key in ("approve_plan", "gates", "orphaned", "restart")],
    ),
    "the conversations of the fleet, and of an agent": (
        plan(t("T1")),
        lambda of: of,
        plan(t("T1"), anew=True, agents=(replace(ANN, talks=Talks(chooses=True, resumes=True)),)),
        [("fleet.on_retry", FRESH), ("agents.ann.kind", ACCEPT)],
    ),
    "a task that was cancelled": (
        plan(t("T1", needs_approval=True), t("T2")),
        lambda of: of.give("task:T1", task.Cancelled("no")),
        plan(t("T1"), t("T2")),
        [("tasks.T1", REST)],
    ),
    "a task that was removed before the plan was approved": (
        plan(t("T1"), t("T2"), approve_plan=True),
        lambda of: accept(of, plan(t("T1"), t("T2"), approve_plan=True), plan(t("T2"), approve_plan=True)),
        plan(t("T1"), t("T2"), approve_plan=True),
        [("tasks.T1", ACCEPT)],
    ),
    "a fleet that is over": (
        plan(t("T1")),
        lambda of: close(ask(of), "T1"),
        plan(t("T1"), t("T2")),
        [("the plan", OVER)],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_by_name_and_nothing_of_the_change_is_applied(name: str) -> None:
    """Each refusal has the command that helps."""
    old, bring, new, expected = REFUSED[name]
    of: Hand = bring(begun(old))
    here = plan_change.in_force(old, of.aggregate)
    assert why_not(of, here, new) == expected


def test_the_rest_of_a_change_is_in_force_without_the_tasks_that_are_over() -> None:
    """The operator accepts that: closed and cancelled tasks stay as they are, and all other parts hold.

    A closed task that was removed may be put back as it was. Other terms have no effect on it then, either.
    """
    limited = Budget(Caps(sessions=9))
    old = plan(t("T1", caps=Caps(sessions=2)), t("T2"), t("T3"), t("T4"), budget=limited)
    of = close(ask(begun(old)), "T1").give("task:T2", task.Cancelled("no"))
    new = plan(t("T1", caps=Caps(sessions=1)), t("T2", priority=1), t("T3", verify=(("b",),)), t("T4"), budget=limited)
    change = drafted(of, old, new)
    assert over(of.aggregate, change) == {"T1": task.State.CLOSED, "T2": task.State.CANCELLED}
    accept(of, old, new, partial=True)
    assert states(of, "T1", "T2", "T3") == ["CLOSED", "CANCELLED", "OPEN"]
    assert of.record("task:T3").verify == (("b",),)
    assert budgets.caps_of(of.aggregate, "budget:task/T1") == Caps(sessions=2)
    without = replace(new, tasks=new.tasks[2:])
    accept(of, new, without, partial=True)
    assert accept(of, without, replace(new, tasks=(new.tasks[0], *new.tasks[2:]))).state("task:T1") == "CLOSED"


def test_a_partial_change_is_refused_for_all_other_obstacles() -> None:
    """An operator accepts no more than that tasks which are over stay as they are."""
    old = plan(t("T1"), t("T2"))
    of = ask(close(ask(begun(old)), "T1"))
    change = replace(drafted(of, old, plan(t("T1", priority=1), t("T2", files=("a",)))), partial=True)
    assert [each.what for each in obstacles(of.aggregate, change)] == ["tasks.T2.files"]


def test_what_only_the_next_claim_or_a_split_asks_for_changes_while_an_agent_has_the_task() -> None:
    """The present claim goes on: its parts, its wait for them, its result without a change, and its conversation."""
    old = plan(t("T1", most_subtasks=2))
    new = plan(t("T1", most_subtasks=3, subtasks_ms=9, on_nothing=task.OnNothing.CLOSE, anew=True))
    of = accept(ask(begun(old)), old, new)
    assert (of.state("task:T1"), of.record("task:T1").epoch) == ("CLAIMED", 1)
    assert of.record("task:T1").anew
    assert brief(ask(rest(fail(accept(of, new, plan(t("T1", max_retries=1, most_subtasks=3))), "T1"), "T1"))).epoch == 2
    parted = split(ask(begun(old)), "T1")
    assert why_not(parted, old, plan(t("T1", most_subtasks=3))) == [("tasks.T1.max_subtasks", FRESH)]


def test_one_obstacle_refuses_the_whole_change() -> None:
    """Also what would be possible by itself."""
    old = plan(t("T1"), t("T2"))
    of = close(ask(begun(old)), "T1")
    why_not(of, old, plan(t("T1", verify=(("a",),)), t("T2", verify=(("b",),)), t("T3")))
    assert of.record("task:T2").verify == ()
    assert "task:T3" not in of.aggregate.entities


def test_one_of_two_concurrent_plan_changes_is_refused() -> None:
    """The second one has not seen what the first has changed."""
    old = plan(t("T1"))
    of = begun(old)
    late = drafted(of, old, plan(t("T1", priority=1)))
    accept(of, old, plan(t("T1"), t("T2")))
    (found,) = obstacles(of.aggregate, late)
    assert (found.what, found.instead) == ("the plan", "lifefold plan {fleet}")
    of.give(plan_change.ref_of(2), Created(late))
    assert of.state(plan_change.ref_of(2)) == "Refused"
    assert plan_change.removed(of.aggregate) == frozenset(), "a refused change takes no task out"
    assert isinstance(of.must_refuse(plan_change.ref_of(1), Created(late)).reason, str), "a change is taken once"


def test_a_draft_changes_nothing_until_it_is_accepted() -> None:
    """Then it is in force in the same step."""
    old, new = plan(t("T1")), plan(t("T1"), t("T2"))
    of = begun(old)
    of.give(plan_change.ref_of(1), Created(replace(drafted(of, old, new), state=plan_change.State.DRAFT)))
    assert "task:T2" not in of.aggregate.entities
    of.give(plan_change.ref_of(1), plan_change.ChangeAccepted())
    assert (of.state(plan_change.ref_of(1)), of.state("task:T2")) == ("InForce", "OPEN")


def test_the_meaning_in_force_is_that_of_the_last_change() -> None:
    """Of the file that the log began with, if there is none; a refused change has none."""
    old, new = plan(t("T1")), plan(t("T1"), t("T2"))
    of = begun(old)
    assert plan_change.meaning_of(of.aggregate, "begun") == "begun"
    assert plan_change.in_force_since(of.aggregate) == (0, 0)
    accept(of, old, new)
    why_not(of, new, replace(new, approve_plan=True))
    assert plan_change.meaning_of(of.aggregate, "begun") == "file"
    assert plan_change.in_force_since(of.aggregate) == (1, of.now_ms)
    assert difference(plan_change.in_force(old, of.aggregate), new) == ()


def test_an_agent_may_err_once_more_than_it_has_whatever_the_new_limits_say() -> None:
    """A lower limit stops no agent by itself: the next error does."""
    worker = next(envelope for name, envelope in opening(plan(t("T1")), 0) if name == "worker/ann").event
    assert isinstance(worker, Opened)
    of = Hand("worker/ann", dict(worker.records))
    of.hear("board", "session", LimitsChanged(Limits(max_consecutive_errors=1)))
    assert of.record("session").limits.max_consecutive_errors == 1
    of.hear("board", "assignment", assignment.VerifyTimeoutChanged(3))
    assert of.record("assignment").verify_timeout_ms == 3


# Changed tasks that nothing begins again


def test_a_changed_task_has_failed_for_good_unless_its_new_terms_leave_a_retry() -> None:
    """A task that is removed, new, or still has a retry is none of them."""
    old = plan(t("T1"), t("T2", max_retries=1), t("T3"), t("T4"), agents=(ANN, BOB))
    of = fail(ask(fail(ask(fail(ask(begun(old)), "T1")), "T2")), "T3")
    right = {"verify": (("a",),)}
    new = plan(t("T1", **right), t("T2", max_retries=1, **right), t("T4", **right), t("T5"))
    assert plan_enforcement.failed_for_good(of.aggregate, drafted(of, old, new)) == {"T1"}
    more = plan(t("T1", max_retries=1, **right), t("T2", max_retries=1), t("T3", **right), t("T4"), agents=(ANN, BOB))
    assert plan_enforcement.failed_for_good(of.aggregate, drafted(of, old, more)) == {"T3"}


def test_work_that_was_verified_before_its_commands_changed_is_named() -> None:
    """It waits for its approval, and is verified again; or for its merge after that, and is not."""
    old = plan(t("T1", needs_approval=True, verify=(("b",),)), t("T2"))
    of = park(ask(begun(old)), "T1")
    assert of.state("task:T1") == "PENDING_APPROVAL"
    new = plan(t("T1", needs_approval=True, verify=(("a",),)), t("T2", verify=(("a",),)))
    other = plan(replace(old.tasks[0], prompt="other"), t("T3"), agents=(ANN, BOB))
    none = plan(t("T1", needs_approval=True), t("T2"))
    assert plan_enforcement.verified_before(of.aggregate, drafted(of, old, new)) == {"T1": True}
    assert plan_enforcement.verified_before(of.aggregate, drafted(of, old, other)) == {}
    assert plan_enforcement.verified_before(of.aggregate, drafted(of, old, none)) == {"T1": False}
    of.give("task:T1", ApprovalGranted())
    assert plan_enforcement.verified_before(of.aggregate, drafted(of, old, new)) == {"T1": False}


def test_work_that_waits_for_its_approval_is_verified_again_by_other_commands() -> None:
    """An agent gets the kept work, and parks it again. Only then can it be approved, and it is merged as kept last."""
    old, new = (
        plan(t("T1", needs_approval=True, verify=(("b",),))),
        plan(t("T1", needs_approval=True, verify=(("a",),))),
    )
    of = park(ask(begun(old)), "T1")
    kept = of.record("task:T1").result
    accept(of, old, new)
    assert (of.state("task:T1"), of.record("task:T1").stage) == ("DONE", task.Stage.REVERIFY)
    assert isinstance(of.must_refuse("task:T1", ApprovalGranted()).reason, str)
    given = brief(ask(of))
    assert (given.stage, given.verify, given.result, given.needs_approval) == (
        task.Stage.REVERIFY,
        (("a",),),
        kept,
        True,
    )
    say(of, "T1", fleet_task.Parked)
    assert (of.state("task:T1"), of.record("task:T1").result) == ("PENDING_APPROVAL", given.epoch)
    of.give("task:T1", ApprovalGranted())
    assert brief(ask(of)).stage is task.Stage.MERGE


def test_work_that_the_other_commands_refuse_is_not_merged() -> None:
    """It has failed, as after any verification; without other commands the work goes on waiting."""
    old, new = (
        plan(t("T1", needs_approval=True, verify=(("b",),))),
        plan(t("T1", needs_approval=True, verify=(("a",),))),
    )
    of = accept(park(ask(begun(old)), "T1"), old, new)
    say(ask(of), "T1", task.Rejected)
    assert of.state("task:T1") == "FAILED"
    still = park(ask(begun(old)), "T1")
    accept(still, old, plan(t("T1", needs_approval=True)))
    assert still.state("task:T1") == "PENDING_APPROVAL"
