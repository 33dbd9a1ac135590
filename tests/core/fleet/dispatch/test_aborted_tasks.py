"""Aborts of tools, siblings and whole subtrees: the aborted tasks, the spared ones, and the effect of a lost rule."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aggregate_hand import Hand
from board_hand import ask, close, fail, finish, happened, make, opened, recalled, rest, say, split, states
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.board.fleet_task import Fate
from lifefold.core.fleet.dispatch import aborts
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Dispatch,
    Opened,
    PropertyKind,
    Transition,
    journal,
    replace,
    rule,
)
from lifefold.core.lifecycles import task
from lifefold.core.policy.abort import AbortPolicy, AbortScope
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.check import check
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

TOOLS = AbortPolicy(tool_to_sibling=True)
EVERYTHING = AbortPolicy(tool_to_sibling=True, sibling_to_session=True)
CONTAINED = AbortPolicy()
SEATS = ("ann", "bob", "cat", "dan")
PARTS = ("T1+1", "T1+2", "T1+3")
SIBLING = fleet_task.AbortWanted(AbortScope.SIBLING, "a dead end")
SESSION = fleet_task.AbortWanted(AbortScope.SESSION, "a dead end")


def parts(policy: AbortPolicy = CONTAINED, *, at_work: int = 3, **fields: Any) -> Hand:
    """Return a board with a task in three parts. A worker has the first one."""
    of = ask(opened(make("T1", most_subtasks=6, fate=Fate(policy), **fields), worker_slots=SEATS))
    say(of, "T1", task.Started)
    split(of, "T1", 3)
    ask(of, *SEATS[1 : 1 + at_work])
    for name in PARTS[:at_work]:
        say(of, name, task.Started)
    return of


def tool(of: Hand, name: str = "T1+1", reason: str = "out of memory") -> Hand:
    """Let the agent at a task say that its tool was aborted, as its command does."""
    return of.give(f"task:{name}", fleet_task.ToolAborted(of.record(f"task:{name}").epoch, "tests", reason))


def aborted(of: Hand) -> dict[str, fleet_task.Aborted]:
    """Return what was aborted in the last reaction, by its name, each once."""
    found = [each for each in of.reaction.transitions if isinstance(each.event, fleet_task.Aborted)]
    events = {
        each.entity.removeprefix("task:"): each.event for each in found if isinstance(each.event, fleet_task.Aborted)
    }
    assert len(events) == len(found)
    return events


def who(of: Hand) -> list[str]:
    """Return who was told by the last reaction to let go."""
    return [to for to, _ in recalled(of)]


def test_the_abort_of_a_tool_is_written_down_and_its_session_goes_on() -> None:
    """No task is affected (document 004, TOOL)."""
    of = tool(parts())
    assert happened(of, "T1+1") == ["ToolAborted"]
    assert states(of, "T1", *PARTS) == ["WAITING_FOR_SUBTASKS", "IN_PROGRESS", "IN_PROGRESS", "IN_PROGRESS"]
    assert (of.record("task:T1+1").fate, of.told()) == (Fate(), [])
    written = journal(of.aggregate.name, of.reaction.transitions[0])
    assert written.transition_reason == "aborted"


def test_only_the_present_claim_says_that_its_tool_was_aborted() -> None:
    """Its lease is what authenticates it (E12)."""
    of = parts()
    of.must_refuse("task:T1+1", fleet_task.ToolAborted(of.record("task:T1+1").epoch + 1, "tests"))
    of.must_refuse("task:T1", fleet_task.ToolAborted(of.record("task:T1").epoch, "tests"))
    of.must_refuse("task:T1+1", fleet_task.ToolAborted(0, "tests"))


def test_a_fleet_that_does_not_ask_for_aborts_has_none() -> None:
    """Neither by word nor by examples; a plan says who has them, for all tasks and their parts."""
    of = say(ask(opened(make("T1", most_subtasks=2))), "T1", task.Started)
    for event in (fleet_task.ToolAborted(1), SIBLING, SESSION, fleet_task.Aborted()):
        of.must_refuse("task:T1", event)
    record = of.record("task:T1")
    assert not any(
        each.examples_for(record) for each in (fleet_task.ToolAborted, fleet_task.AbortWanted, fleet_task.Aborted)
    )
    split(of, "T1")
    assert of.record("task:T1+1").fate is None
    for policy, fate in ((None, None), (TOOLS, Fate(TOOLS))):
        plan = Plan("p", (AgentPlan("ann"),), (TaskPlan("T1", "do it"),), aborts=policy)
        (_, envelope), *_ = opening(plan, 0)
        assert isinstance(envelope.event, Opened)
        assert envelope.event.records["task:T1"].fate == fate


def test_an_abort_of_siblings_spares_the_reporting_task_and_the_parent() -> None:
    """The workers of the aborted tasks are recalled, with the document's word (E20, E36)."""
    of = parts().give("task:T1+1", SIBLING)
    assert set(aborted(of)) == {"T1+2", "T1+3"}
    assert {each.abort_reason for each in aborted(of).values()} == {AbortReason.SIBLING_ABORTED}
    assert states(of, *PARTS) == ["IN_PROGRESS", "CANCELLED", "CANCELLED"]
    reason = "sibling_aborted: the siblings of T1+1 were aborted: a dead end"
    assert {of.record(f"task:{name}").reason for name in PARTS[1:]} == {reason}
    assert who(of) == ["worker/cat", "worker/dan"]
    recalls = [each for _, each in recalled(of) if isinstance(each, assignment.Recalled)]
    assert {(each.reason, each.abort_reason) for each in recalls} == {(reason, AbortReason.SIBLING_ABORTED)}
    assert of.record("task:T1+1").owner == "bob"
    assert of.state("task:T1") == "BLOCKED"
    assert close(of, "T1+1").state("task:T1+1") == "CLOSED"


def test_an_abort_of_siblings_reaches_all_their_parts_and_no_other_task() -> None:
    """Also parts of parts (E36); another task and its parts have nothing to do with it."""
    of = parts()
    of.give("task:T2", Created(make("T2", fate=Fate())))
    split(of, "T1+2", 2)
    of.give("task:T1+1", SIBLING)
    reasons = {name: event.abort_reason.value for name, event in aborted(of).items()}
    below = dict.fromkeys(("T1+2+1", "T1+2+2"), "parent_aborted")
    assert reasons == {"T1+2": "sibling_aborted", "T1+3": "sibling_aborted", **below}
    assert of.state("task:T2") == "OPEN"


def test_an_abort_of_a_session_ends_the_task_and_everything_below_it() -> None:
    """Its siblings go on, and so does their parent as its rules say (E7)."""
    of = parts()
    split(of, "T1+1", 2)
    of.give("task:T1+1", SESSION)
    reasons = {name: event.abort_reason.value for name, event in aborted(of).items()}
    assert reasons == {"T1+1": "user_interrupt", "T1+1+1": "parent_aborted", "T1+1+2": "parent_aborted"}
    assert states(of, "T1", *PARTS) == ["BLOCKED", "CANCELLED", "IN_PROGRESS", "IN_PROGRESS"]
    whole = parts().give("task:T1", SESSION)
    assert states(whole, "T1", *PARTS) == ["CANCELLED"] * 4
    assert who(whole) == ["worker/bob", "worker/cat", "worker/dan"]


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        (AbortPolicy(), []),
        (AbortPolicy(sibling_to_session=True), []),
        (TOOLS, ["T1+2", "T1+3"]),
        (EVERYTHING, ["T1", "T1+1", "T1+2", "T1+3"]),
    ],
)
def test_the_policy_says_what_the_abort_of_a_tool_comes_to(policy: AbortPolicy, ends: list[str]) -> None:
    """Both flags are needed for the whole family (E37)."""
    of = tool(parts(policy))
    assert sorted(aborted(of)) == ends
    assert all("the tool tests was aborted at T1+1: out of memory" in each.reason for each in aborted(of).values())


def test_an_abort_of_siblings_is_one_of_their_parent_if_the_policy_says_so() -> None:
    """With the operator that has asked for it (E37)."""
    of = parts(AbortPolicy(sibling_to_session=True)).give("task:T1+1", SIBLING)
    assert states(of, "T1", *PARTS) == ["CANCELLED"] * 4
    assert {name: each.abort_reason.value for name, each in aborted(of).items()} == {
        "T1": "user_interrupt",
        **dict.fromkeys(PARTS, "parent_aborted"),
    }


def test_a_task_that_is_no_part_has_no_siblings() -> None:
    """Nothing comes of it, under any policy."""
    of = say(ask(opened(make("T1", fate=Fate(EVERYTHING)), make("T2", fate=Fate(EVERYTHING)))), "T1", task.Started)
    assert aborted(of.give("task:T1", SIBLING)) == aborted(tool(of, "T1")) == {}
    assert states(of, "T1", "T2") == ["IN_PROGRESS", "OPEN"]


def test_what_is_over_is_left_as_it_is() -> None:
    """What is closed, cancelled, or has failed for good (E16)."""
    of = parts()
    close(of, "T1+2")
    fail(of, "T1+3")
    assert aborted(of.give("task:T1+1", SIBLING)) == {}
    assert states(of, *PARTS) == ["IN_PROGRESS", "CLOSED", "FAILED"]
    of.must_refuse("task:T1+2", SIBLING)


def test_an_aborted_resting_task_is_cancelled_when_it_is_opened() -> None:
    """Until then it is known to be (E16)."""
    of = parts(max_retries=2)
    fail(of, "T1+2")
    ask(of, "cat")
    of.give("task:T1+1", SIBLING)
    assert set(aborted(of)) == {"T1+2", "T1+3"}
    assert states(of, "T1+2", "T1+3") == ["FAILED", "CANCELLED"]
    rest(of, "T1+2")
    assert happened(of, "T1+2") == ["Rested", "Aborted"]
    assert of.state("task:T1+2") == "CANCELLED"
    assert of.record("task:T1+2").reason.startswith("sibling_aborted")


def test_what_rests_below_a_task_that_is_aborted_is_cancelled_by_its_own_abort() -> None:
    """And not once more because its whole is cancelled."""
    of = parts(max_retries=2)
    fail(of, "T1+2")
    of.give("task:T1", SESSION)
    assert happened(rest(of, "T1+2"), "T1+2") == ["Rested", "Aborted"]
    assert of.record("task:T1+2").reason.startswith("parent_aborted")


def test_what_is_done_is_handed_over_all_the_same() -> None:
    """But if it is not accepted, it is not tried again (E16)."""
    of = finish(parts(max_retries=2), "T1+2")
    of.give("task:T1+1", SIBLING)
    assert (of.state("task:T1+2"), who(of)) == ("DONE", ["worker/dan"])
    home = close(of, "T1+2")
    assert home.state("task:T1+2") == "CLOSED"
    other = finish(parts(max_retries=2), "T1+2").give("task:T1+1", SIBLING)
    say(other, "T1+2", task.Rejected, reason="no")
    assert rest(other, "T1+2").state("task:T1+2") == "CANCELLED"


def test_a_retry_by_an_operator_cancels_the_abort() -> None:
    """It is open at once, and an abort that is said later reaches it again."""
    of = parts(max_retries=2, at_work=2)
    fail(of, "T1+2")
    of.give("task:T1+1", SIBLING)
    of.give("task:T1+2", fleet_task.RetryGranted())
    assert of.state("task:T1+2") == "OPEN"
    assert set(aborted(of.give("task:T1+1", SIBLING))) == {"T1+2"}
    assert of.state("task:T1+2") == "CANCELLED"


def test_two_aborts_at_once_reach_each_part_once() -> None:
    """The second finds nothing left to do."""
    of = parts(max_retries=2)
    fail(of, "T1+2")
    assert set(aborted(of.give("task:T1+1", SIBLING))) == {"T1+2", "T1+3"}
    assert aborted(of.give("task:T1+1", SIBLING)) == {}


def test_no_worker_begins_a_sibling_while_another_one_is_aborted() -> None:
    """A part that was hindered by an aborted one is aborted first."""
    of = ask(opened(make("T1", most_subtasks=6, fate=Fate()), worker_slots=SEATS))
    say(of, "T1", task.Started)
    split(of, "T1", 3, files=("same",))
    ask(of, "bob", "cat")
    at_work = next(name for name in PARTS if of.record(f"task:{name}").owner)
    spared = next(name for name in PARTS if name != at_work)
    of.give(f"task:{spared}", SIBLING)
    assert states(of, *sorted({*PARTS} - {spared})) == ["CANCELLED", "CANCELLED"]
    third = next(name for name in PARTS if name not in {spared, at_work})
    assert "Claimed" not in happened(of, third)


Rule = Callable[[Aggregate, Transition], Iterator[Dispatch]]


def broken(of: Hand) -> set[str]:
    """Return the properties about aborts that do not hold after the last reaction."""
    subjects: dict[PropertyKind, tuple[Any, ...]] = {
        PropertyKind.ALWAYS: (of.aggregate,),
        PropertyKind.ALWAYS_STEP: of.reaction.transitions,
    }
    return {
        each.name for each in aborts.PROPERTIES for subject in subjects[each.property_kind] if not each.holds(subject)
    }


@pytest.mark.parametrize("policy", [AbortPolicy(), TOOLS, EVERYTHING])
@pytest.mark.parametrize("event", [SIBLING, SESSION])
def test_what_an_abort_comes_to_keeps_every_property(policy: AbortPolicy, event: fleet_task.AbortWanted) -> None:
    """So a broken property elsewhere has its cause in the change there."""
    of = parts(policy, max_retries=1)
    split(of, "T1+2", 2)
    fail(of, "T1+3")
    of.give("task:T1+1", event)
    assert broken(of) == set()
    assert broken(rest(of, "T1+3")) == set()


def with_rule(of: Hand, name: str, instead: Rule | None = None) -> Hand:
    """Let a board go on without a rule, or with another one in its place."""
    there = of.of
    more = () if instead is None else (rule(on=fleet_task.machine)(instead),)
    rules = (*more, *(each for each in there.rules if each.name != name))
    of.of = AggregateType(
        there.kind, machines=there.machines.values(), rules=rules, views=there.views, commands=there.commands
    )
    return of


def forgets_what_is_below(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Abort the siblings alone."""
    below = AbortReason.PARENT_ABORTED
    return (each for each in rightly(board, transition) if each.event.abort_reason is not below)


def forgets_one(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Abort all siblings but one."""
    return (each for each in rightly(board, transition) if each.entity != "task:T1+3")


def takes_the_caller_along(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Abort the sender, too."""
    found = [*rightly(board, transition)]
    return iter([*found, *(replace(each, entity=transition.entity) for each in found[:1])])


def takes_the_parent_along(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Abort the parent, too."""
    found = [*rightly(board, transition)]
    return iter([*found, *(replace(each, entity="task:T1") for each in found[:1])])


def repeats_itself(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Abort a task twice that rests."""
    found = [*rightly(board, transition)]
    return iter([*found, *(each for each in found if each.entity == "task:T1+3")])


def rightly(board: Aggregate, transition: Transition) -> Iterator[Any]:
    """Do what the rule does."""
    return iter(aborts.spread(board, transition))


def test_an_aborted_session_of_a_resting_task_ends_no_other_task() -> None:
    """The task is not tried again, and its siblings go on."""
    of = fail(parts(max_retries=1), "T1+2").give("task:T1+2", SESSION)
    assert states(of, *PARTS) == ["IN_PROGRESS", "FAILED", "IN_PROGRESS"]
    assert broken(of) == set()


@pytest.mark.parametrize(
    ("wrong", "prop"),
    [
        (forgets_what_is_below, "an abort reaches all parts below a task"),
        (forgets_one, "an abort reaches every task in its scope"),
        (takes_the_caller_along, "an abort of siblings spares the caller and their parent"),
        (takes_the_parent_along, "an abort of siblings spares the caller and their parent"),
        (repeats_itself, "no task is aborted twice, nor after it is over"),
    ],
)
def test_a_rule_that_is_wrong_breaks_a_property(wrong: Rule, prop: str) -> None:
    """A rule that reaches too few tasks, too many, or one twice is found."""
    of = parts(max_retries=1)
    split(of, "T1+2", 2)
    fail(of, "T1+3")
    with_rule(of, "spread", wrong).give("task:T1+1", SIBLING)
    assert prop in broken(of)


def test_without_the_rule_that_catches_up_a_property_is_broken() -> None:
    """What was aborted while it rested would be done after all."""
    of = fail(parts(max_retries=1), "T1+2")
    with_rule(of, "abort_when_opened").give("task:T1+1", SIBLING)
    assert broken(rest(of, "T1+2")) == {"an aborted task is neither worked at nor given out"}


def test_a_part_that_knows_no_policy_breaks_a_property() -> None:
    """It would be the only one of its family that cannot be aborted."""
    of = parts(TOOLS)
    lost = replace(of.record("task:T1+1"), fate=None)
    entities = of.aggregate.entities.set("task:T1+1", replace(of.entity("task:T1+1"), record=lost))
    of.aggregate = replace(of.aggregate, entities=entities)
    assert "a part has the abort policy of its whole" in broken(of)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("lost", "prop"),
    [
        ("spread", "an abort reaches every task in its scope"),
        ("recall", "with no message in flight, each worker holds the task it owns, or finishes a merge"),
    ],
)
def test_the_check_finds_that_a_rule_is_lost(lost: str, prop: str) -> None:
    """In the shipped question, with nothing else looked at than in that."""
    target = named("fleet-aborts")
    bounds = replace(target.bounds, states=3_000, compared=0)
    assert prop in [each.name for each in check(without(lost), opening=target.opening, bounds=bounds).broken()]
