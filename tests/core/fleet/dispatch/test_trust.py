"""Trust gates who may take a task and whose work is merged unseen, and is earned by what is closed (E34, E35)."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregate_hand import Hand
from board_hand import (
    ask,
    assigned,
    brief,
    close,
    fail,
    finish,
    go,
    make,
    opened,
    park,
    recalled,
    rest,
    say,
    split,
    states,
)
from lifefold.core.fleet import AgentPlan, GatePlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.dispatch import trust
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system import board, board_properties, fleet_properties
from lifefold.core.fleet.system.plan import fleet_task_of
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Event,
    IllegalTransition,
    Rule,
    Step,
    System,
    Transition,
    rule,
)
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.session import Limits
from lifefold.core.policy.access import AccessLevel, Trust, demoted, may, promoted, succeeded, violated
from lifefold.interpreters.check import Bounds, check

UNTRUSTED, PROBATIONARY, TRUSTED, ELEVATED = AccessLevel


def board_of(*tasks: fleet_task.FleetTask, **trust: Trust) -> Hand:
    """Return a board of tasks and of agents with their records."""
    return opened(
        *tasks,
        worker_slots={},
        **{f"worker_slot:{name}": worker_slot.WorkerSlot(trust=each) for name, each in trust.items()},
    )


def level(of: Hand, name: str) -> AccessLevel:
    """Return how far an agent is trusted."""
    found: AccessLevel = of.record(f"worker_slot:{name}").level
    return found


# Who may take what


def test_a_task_goes_to_the_longest_waiting_worker_with_enough_trust() -> None:
    """A worker without that trust goes on waiting, and takes the next task that it may."""
    of = board_of(
        make("T1", level=TRUSTED), make("T2", ordinal=1), ann=Trust(), bob=Trust(TRUSTED), cid=Trust(ELEVATED)
    )
    ask(of, "ann")
    assert assigned(of) == [("worker/ann", "T2")]
    ask(of, "cid", "bob")
    assert of.record("task:T1").owner == "cid"


def test_where_nothing_is_gated_trust_does_not_count() -> None:
    """A claim is the document's, no agent earns trust, and commands about trust are refused."""
    of = close(ask(opened(make("T1", level=ELEVATED))), "T1")
    assert (of.record("worker_slot:ann").trust, of.record("task:T1").author) == (None, "")
    for event in (worker_slot.Promoted(), worker_slot.Demoted(), worker_slot.Violated()):
        of.must_refuse("worker_slot:ann", event)
        assert type(event).examples_for(of.record("worker_slot:ann")) == ()


def test_a_task_takes_what_its_gate_or_itself_says_whichever_is_more() -> None:
    """A task that says nothing takes what the gate does."""
    plan = Plan("p", (), (), gates=GatePlan(claim=TRUSTED, merge=ELEVATED))
    levels = [fleet_task_of(TaskPlan("T1", "do it", trust=each), 0, plan) for each in AccessLevel]
    assert [(each.level, each.merges) for each in levels] == [
        (TRUSTED, ELEVATED), (TRUSTED, ELEVATED), (TRUSTED, ELEVATED), (ELEVATED, ELEVATED)
    ]  # fmt: skip


@given(st.sampled_from(AccessLevel), st.sampled_from(AccessLevel), st.sampled_from(AccessLevel), st.booleans())
def test_a_claim_is_taken_and_merged_unseen_if_and_only_if_the_formula_says_so(
    has: AccessLevel,
    claim: AccessLevel,
    merge: AccessLevel,
    needs_approval: bool,  # noqa: FBT001 - drawn
) -> None:
    """The task's own table refuses what the map of ``policy.access`` does, for every sender (E34)."""
    gates = {("OPEN", "CLAIMED"): claim, ("DONE", "CLOSED"): merge}
    plan = Plan("p", (), (), gates=GatePlan(claim, merge))
    step = fleet_task.machine.step(
        fleet_task_of(TaskPlan("T1", "do it", needs_approval=needs_approval), 0, plan), fleet_task.Entrusted("ann", has)
    )
    if not may(has, "OPEN", "CLAIMED", gates):
        assert isinstance(step, IllegalTransition)
        return
    assert isinstance(step, Step)
    assert step.record.needs_approval is (needs_approval or not may(has, "DONE", "CLOSED", gates))
    assert (step.record.owner, step.record.author) == ("ann", "ann")


# Whose work is seen


def test_work_of_an_agent_without_trust_to_merge_waits_for_an_approval() -> None:
    """And that of one who is does not, of the same task."""
    of = ask(board_of(make("T1", merges=TRUSTED, max_retries=1), ann=Trust(), bob=Trust(TRUSTED)))
    assert brief(of).needs_approval
    assert states(park(of, "T1"), "T1") == ["PENDING_APPROVAL"]
    of.give("task:T1", approval.ApprovalRefused("no"))
    rest(of, "T1")
    assert not brief(ask(of, "bob")).needs_approval


def test_a_success_counts_for_the_worker_of_the_work_and_not_of_the_merge() -> None:
    """So that one whose work is always seen can earn to be trusted."""
    of = park(ask(board_of(make("T1", merges=TRUSTED), ann=Trust(), bob=Trust(TRUSTED))), "T1")
    close(ask(of.give("task:T1", approval.ApprovalGranted()), "bob"), "T1")
    assert (of.record("worker_slot:ann").trust, of.record("worker_slot:bob").trust) == (
        Trust(PROBATIONARY, 1),
        Trust(TRUSTED),
    )


def test_what_is_gone_on_from_is_seen_as_long_as_it_had_to_be() -> None:
    """Whatever one who is not trusted has left is in it; what was turned down is not."""
    of = fail(ask(board_of(make("T1", merges=TRUSTED, max_retries=2), ann=Trust(), bob=Trust(TRUSTED))), "T1")
    assert of.record("task:T1").kept == 1
    ask(rest(of, "T1"), "bob")
    assert brief(of).needs_approval
    say(finish(of, "T1"), "T1", task.Rejected, reason="wrong")
    rest(of, "T1")
    assert not brief(ask(of, "bob")).needs_approval


def test_parts_are_gated_as_their_whole_is() -> None:
    """An agent that splits its task comes by no trust that way."""
    whole = make("T1", level=PROBATIONARY, merges=ELEVATED, most_subtasks=2)
    part = split(ask(board_of(whole, ann=Trust(TRUSTED))), "T1").record("task:T1+1")
    assert (part.level, part.merges) == (PROBATIONARY, ELEVATED)


# Tasks that no worker may take


def test_a_task_above_all_trust_levels_is_blocked_until_an_agent_earns_one() -> None:
    """With the reason, and its dependents, too. No worker is released, although all else is settled."""
    of = board_of(make("T1"), make("T2", level=PROBATIONARY), make("T3", "T2"), ann=Trust())
    assert states(of, "T1", "T2", "T3") == ["OPEN", "BLOCKED", "BLOCKED"]
    assert of.record("task:T2").reason == "takes an agent that is probationary, and there is none"
    close(ask(of), "T1")
    assert states(of, "T2", "T3") == ["OPEN", "OPEN"]
    assert not of.told()
    assert assigned(ask(of)) == [("worker/ann", "T2")]


def test_a_fleet_whose_last_tasks_no_agent_may_take_ends() -> None:
    """It does not wait for an absent operator: every worker is released."""
    of = close(ask(board_of(make("T1"), make("T2", level=ELEVATED), ann=Trust())), "T1")
    assert states(of, "T2") == ["BLOCKED"]
    assert [to for to, entity, _ in of.told() if entity == "desired_state"] == ["worker/ann"]
    assert board.finished(of.aggregate)


def test_a_promotion_by_an_operator_unblocks_tasks_above_all_levels() -> None:
    """Only up to its level. A task with a role also needs that role."""
    of = board_of(
        make("T0", merges=ELEVATED), make("T1", level=PROBATIONARY), make("T2", level=TRUSTED), ann=Trust(), bob=Trust()
    )
    ask(of, "bob", "ann")
    assert assigned(of.give("worker_slot:ann", worker_slot.Promoted("good"))) == [("worker/ann", "T1")]
    assert states(of, "T2") == ["BLOCKED"]
    of.give("worker_slot:ann", worker_slot.Promoted())
    assert states(of, "T2") == ["OPEN"]
    go(of, "ann")
    assert states(of, "T1", "T2") == ["BLOCKED", "BLOCKED"]


def test_a_missing_role_is_reported_before_missing_trust() -> None:
    """A role does not come back."""
    both = make("T2", level=TRUSTED, role="cook")
    of = opened(
        make("T1"), both, worker_slots={}, **{"worker_slot:ann": worker_slot.WorkerSlot(roles=("cook",), trust=Trust())}
    )
    assert of.record("task:T2").blocked_by == "level:trusted"
    of = opened(make("T1"), both, worker_slots={}, **{"worker_slot:ann": worker_slot.WorkerSlot(trust=Trust(ELEVATED))})
    assert of.record("task:T2").blocked_by == "role:cook"


# What a person says


@pytest.mark.parametrize("event", [worker_slot.Demoted("no"), worker_slot.Violated("no")])
@pytest.mark.parametrize(
    "said", [(), (task.Started,), (task.Started, task.Orphaned)], ids=["claimed", "begun", "orphan"]
)
def test_a_demoted_agent_loses_a_task_above_its_level(event: Event, said: tuple[type[task.OwnerReport], ...]) -> None:
    """It is told so; another one, who may, is given it. Nor is it asked what its dead session has left of it."""
    of = ask(board_of(make("T1", level=TRUSTED), ann=Trust(TRUSTED), bob=Trust(TRUSTED)), "ann")
    say(of, "T1", *said)
    ask(of, "bob").give("worker_slot:ann", event)
    assert [to for to, _ in recalled(of)] == ["worker/ann"]
    assert of.record("task:T1").owner == "bob"


def test_a_demoted_agent_keeps_a_task_within_its_level() -> None:
    """A task with a lower level, one with an approval, and a done one (E16)."""
    for first, fields in (
        (make("T1"), ()),
        (make("T1", merges=TRUSTED, always_needs_approval=True), ()),
        (make("T1", level=TRUSTED), 1),
    ):
        of = ask(board_of(first, ann=Trust(TRUSTED)))
        if fields:
            say(of, "T1", task.Completed)
        of.give("worker_slot:ann", worker_slot.Demoted())
        assert of.record("task:T1").owner == "ann"


SAID: Final[dict[type[Event], Callable[[Trust], Trust]]] = {
    worker_slot.Succeeded: succeeded,
    worker_slot.Promoted: promoted,
    worker_slot.Demoted: demoted,
    worker_slot.Violated: violated,
}


@given(st.sampled_from(AccessLevel), st.lists(st.sampled_from(list(SAID)), max_size=20))
def test_a_level_moves_by_the_formula_and_by_nothing_else(first: AccessLevel, said: list[type[Event]]) -> None:
    """Whatever is said of an agent, in whatever order: the record is what ``policy.access`` makes of it (E34, E35)."""
    of, trust = board_of(make("T1"), ann=Trust(first)), Trust(first)
    for kind in said:
        of.give("worker_slot:ann", kind())
        trust = SAID[kind](trust)
        assert of.record("worker_slot:ann").trust == trust
    ask(of)
    assert of.record("worker_slot:ann").trust == trust


def test_a_failure_is_neutral_and_a_gone_worker_earns_nothing() -> None:
    """What was done by him is closed all the same."""
    of = fail(
        ask(board_of(make("T1"), make("T2", always_needs_approval=True, ordinal=1), ann=Trust(), bob=Trust())), "T1"
    )
    assert of.record("worker_slot:ann").trust == Trust()
    go(park(ask(of), "T2"), "ann")
    close(ask(of.give("task:T2", approval.ApprovalGranted()), "bob"), "T2")
    assert (of.state("task:T2"), of.record("worker_slot:bob").trust) == ("CLOSED", Trust())


# What is promised

LIMITS: Final = Limits(max_consecutive_errors=1, max_total_errors=1)


def small(people: tuple[type[Event], ...], rules: list[Rule], **gates: AccessLevel) -> set[str]:
    """Return the properties that a small fleet does not keep in which people say only this."""
    of = system.aggregates["board"]
    said: dict[str, tuple[type[Event], ...]] = dict.fromkeys(of.machines, ()) | {"worker_slot": people}
    desk = AggregateType(
        of.kind, machines=of.machines.values(), rules=rules, views=of.views, commands=said, properties=of.properties
    )
    of = system.aggregates["worker"]
    hands = AggregateType(
        of.kind,
        machines=of.machines.values(),
        rules=of.rules,
        views=of.views,
        commands=dict.fromkeys(of.machines, ()),
        properties=of.properties,
    )
    tasks = (TaskPlan("T0", "do it", max_retries=0), TaskPlan("T1", "do it", max_retries=0, trust=PROBATIONARY))
    plan = Plan("small", (AgentPlan("a0", LIMITS),), tasks, gates=GatePlan(**gates))
    fleet = System("fleet", desk, hands, properties=fleet_properties.PROPERTIES)
    bounds = Bounds(states=20_000, compared=0, commands=2)
    return {each.name for each in check(fleet, opening=list(opening(plan, 0)), bounds=bounds).broken()}


def but(name: str, *instead: Rule) -> list[Rule]:
    """Return the board's rules without those of a name, and others in their place."""
    return [*(each for each in system.aggregates["board"].rules if each.name != name), *instead]


@rule(on=fleet_task.machine)
def _twice(of: Aggregate, transition: Transition) -> Any:
    """Count a success twice."""
    for wish in trust.earn(of, transition):
        yield from (wish, wish)


LOST: Final[dict[str, tuple[str, tuple[type[Event], ...], list[Rule]]]] = {
    "a success is not counted": ("counts as a success of its author", (), but("earn")),
    "a success is counted twice": ("counts as a success of its author", (), but("earn", _twice)),
    "what may go on stays blocked": ("exactly while something that it needs is lost", (), but("trust_again")),
    "what is taken from nobody": ("has the trust that the task requires", (worker_slot.Violated,), but("withdraw")),
    "what nobody may take waits": ("or a trust level that no worker has", (), but("look_again")),
    "what nobody may take any more waits": (
        "or a trust level that no worker has",
        (worker_slot.Demoted,),
        but("lose_role"),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(("words", "people", "rules"), LOST.values(), ids=LOST)
def test_a_rule_of_trust_that_is_lost_breaks_a_property(
    words: str, people: tuple[type[Event], ...], rules: list[Rule]
) -> None:
    """Each of these was planted; the fleet as it is keeps that promise there."""
    found = small(people, rules)
    assert any(words in each for each in found), found
    assert not any(words in each for each in small(people, list(system.aggregates["board"].rules)))


def test_what_is_looked_up_of_trust_is_what_the_seats_and_tasks_are() -> None:
    """After every input of a life with all of it."""
    of = board_of(
        make("T1", merges=TRUSTED), make("T2", level=TRUSTED, ordinal=1), ann=Trust(), bob=Trust(PROBATIONARY)
    )
    assert dict(work_of(of.aggregate).distrusted) == {"T2": ("", TRUSTED)}
    ask(of, "bob")
    for event in (worker_slot.Promoted(), worker_slot.Demoted(), worker_slot.Promoted(), worker_slot.Violated()):
        of.give("worker_slot:bob", event)
        assert board_properties.view_agrees(of.aggregate)
