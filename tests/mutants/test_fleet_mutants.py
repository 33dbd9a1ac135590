"""Mutants of the fleet's rules are found: some of those that ``every_fleet_mutant`` tries."""

from collections import Counter
from functools import cache
from typing import Final

import pytest

from mutation_results import PAGE
from rule_campaign import Campaign, Fate, SearchedFleet
from rule_modules import elsewhere
from rule_mutation import RuleMutant
from rule_results import PARTS, kept, reason, section, whole_page
from small_fleets import SMALL

WHERE: Final = "one agent, one task after another"
"""The small fleet in which they are tried."""

FOUND: Final = {
    "board: hand_over on task: is not there": "no task has two owners, and every owner is at its task",
    "board: recall on task: is not triggered if it leaves CLAIMED": (
        "each worker holds the task it owns, or finishes a merge"
    ),
    "board: is_at_work: `Stage.WORK` is VERIFY": "the task index agrees with tasks and worker slots",
    "worker: next_round on assignment: is triggered if it enters WANTING instead of IDLE": "every task is closed",
    "worker: work_begins on session: is triggered without enters=": (
        "nothing is in progress that no session has run at"
    ),
    "worker: close_mailbox: `yield Dispatch('mailbox', mailbox.MailboxClosed())` is not asked for": (
        "messages are accepted exactly while an agent may read them"
    ),
    "worker: _GIVEN_UP: `assignment.State.WORKING` is ORPHANED": "a stopped agent has no work to do",
    "worker: report: `task.Failed(brief.epoch, reason, diagnosis)` is Orphaned": (
        "no task has two owners, and every owner is at its task"
    ),
    "worker: _interrupt: `yield Dispatch('session', by)` is asked for twice": "interrupted once",
    "worker: next_round: `worker.record('session').state is session.State.SESSION_COMPLETE` is compared otherwise": (
        "an agent waits until its first place is made"
    ),
}
"""Some mutants of different kinds, each with words of the property that finds it."""


FEATURED_FOUND: Final = (
    (
        "stall_detector: give_up on stall_detector: is triggered without enters=",
        "one agent that is watched",
        "no session is ended for its silence that has not stalled",
    ),
    (
        "orphans: has_died: `session.Error() | session.Timeout()` has no case `session.Timeout()`",
        "one agent, what its dead session has left is given back",
        "what becomes of work whose session dies is what its task says",
    ),
    (
        (
            "trust: is_allowed: `record.needs_approval or owner.level >= record.merges` does not ask "
            "`record.needs_approval`"
        ),
        "two agents, of whom one is trusted to merge",
        "nothing is taken from whoever is trusted far enough",
    ),
    (
        "budgets: settle on worker_slot: is not triggered by WorkerGone",
        "one agent, a little money",
        "every holder of a reservation is at a task",
    ),
    (
        "budgets: _cost: `p.charges_the_silent and event.silent` does not ask `event.silent`",
        "one agent, a little money",
        "a claim is charged what it has cost, or its share",
    ),
)
"""Some mutants of the rules of optional parts, each with a fleet and the property that finds it."""


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """Return the campaign in one fleet."""
    return Campaign(WHERE)


@cache
def mutants() -> dict[str, RuleMutant]:
    """Return all mutants by name."""
    return {each.name: each for source in PARTS.values() for each in source.mutants()}


@pytest.mark.parametrize(
    ("name", "prop"),
    [
        pytest.param(*each, id=each[0], marks=pytest.mark.campaign if place % 3 else ())
        for place, each in enumerate(FOUND.items())
    ],
)
def test_a_mutant_of_the_rules_breaks_a_property(campaign: Campaign, name: str, prop: str) -> None:
    """The campaign tries all of each kind."""
    ended = campaign.attempt(mutants()[name])
    assert ended.fate is Fate.KILLED
    assert prop in ended.by


@pytest.mark.parametrize(
    ("name", "where", "prop"),
    [
        pytest.param(*each, id=each[0], marks=pytest.mark.campaign if place % 3 else ())
        for place, each in enumerate(FEATURED_FOUND)
    ],
)
def test_a_mutant_of_an_optional_part_breaks_a_property(name: str, where: str, prop: str) -> None:
    """In a small fleet with that part."""
    ended = Campaign(where, sources=()).attempt(mutants()[name])
    assert (ended.fate, ended.by) == (Fate.KILLED, prop)


def test_a_mutant_without_a_difference_is_equivalent(campaign: Campaign) -> None:
    """An event that is sent twice is refused the second time."""
    action = "yield Dispatch(f'worker_slot:{record.owner}', worker_slot.TaskGiven(record.id))"
    twice = f"board: hand_over: `{action}` is asked for twice"
    ended = campaign.attempt(mutants()[twice])
    assert (ended.fate, ended.differs) == (Fate.EQUIVALENT, ())


def test_the_nearest_states_decide_only_if_they_are_all_or_a_property_is_broken() -> None:
    """The deepest mistakes need the search of all states."""
    fleet = SearchedFleet(SMALL["one agent, a task that comes to a declined plan"])
    doubled = "worker: leave_to_others on assignment: comes after begin_inspection"
    right = fleet.with_rules(mutants()[doubled])
    assert [fleet.killer(right, near) for near in (10, fleet.states, None)] == [None, "", ""]
    wrong = fleet.with_rules(mutants()["worker: go_on: `assignment.Prompted()` is Verified"])
    killed = "with no message in flight, exactly the tasks with a session are in progress"
    assert [fleet.killer(wrong, near) for near in (2, fleet.states, None)] == [None, killed, killed]


def test_small_fleets_are_tried_before_larger_ones() -> None:
    """The order of their description is another one."""
    names = ("one agent, one task that a person agrees to", "one agent, a task that comes to a declined plan")
    assert tuple(Campaign(*names, sources=()).fleets) == names[::-1]


@pytest.mark.campaign
def test_a_mutant_differs_only_where_its_function_runs(campaign: Campaign) -> None:
    """So equivalence is decided by the inputs that run the function: for some mutants both answers are compared."""
    fleet = campaign.fleets[WHERE]
    some = [each for each in mutants().values() if each.within][::30]
    made = [(each, fleet.with_rules(each)) for each in some]
    answers = [(fleet.is_equivalent(system), fleet.is_equivalent(system, each.within)) for each, system in made]
    assert all(plain is quick for plain, quick in answers)
    assert len(set(answers)) > 1


@pytest.mark.campaign
def test_a_needless_message_changes_nothing(campaign: Campaign) -> None:
    """A second report of a failed task changes nothing; without any report the fleet differs."""
    told = "worker: report: `yield Tell('board', to, task.Failed(brief.epoch, reason, diagnosis))`"
    fleet, known = campaign.fleets[WHERE], mutants()
    assert fleet.is_needless(fleet.with_rules(known[f"{told} is asked for twice"]))
    assert not fleet.is_needless(fleet.with_rules(known[f"{told} is not asked for"]))


def test_every_name_of_a_source_is_in_its_modules() -> None:
    """A function that was renamed or moved would lose its mutants."""
    assert {name: source.missing() for name, source in PARTS.items() if source.missing()} == {}


def test_every_trigger_of_a_rule_has_mutants() -> None:
    """What a rule declares is mutated like what its function asks."""
    declared = {
        f"{source.name}: {each.name} on {each.on}: is triggered without {trigger}="
        for source in PARTS.values()
        for each in source.of.rules
        if source.has(each)
        for trigger, given in (("event", each.events), ("leaves", each.leaves), ("enters", each.enters))
        if given
    }
    assert declared
    assert declared <= mutants().keys()


def test_every_trigger_has_a_mutant_for_each_of_its_events_and_states() -> None:
    """A rule that cancels a run when its process is down has two states that trigger it."""
    names = "service: cut_off on process: "
    assert {each.removeprefix(names): mutant.kind for each, mutant in mutants().items() if names in each} == {
        "is not there": "rule lost",
        "comes after serve": "rules swapped",
        "is triggered without enters=": "trigger lost",
        "is not triggered if it enters STOPPED": "trigger state lost",
        "is triggered if it enters CREATED instead of STOPPED": "another trigger state",
        "is not triggered if it enters FAILED": "trigger state lost",
        "is triggered if it enters CREATED instead of FAILED": "another trigger state",
    }


def test_every_mutant_is_a_module_that_runs() -> None:
    """Some are made here; the campaign makes all of them."""
    assert all(each.make().rules for each in list(mutants().values())[::40])


def test_every_survivor_has_a_reason() -> None:
    """Every reason is one of an existing mutant."""
    assert not any(each.unexplained() for each in kept())
    assert {left.mutant for each in kept() for left in each.survivors} <= mutants().keys()
    assert all(reason(left.mutant) in section(kept()) for each in kept() for left in each.survivors)
    assert not reason("board: hand_over on task: is not there")


def test_the_page_is_what_the_campaigns_have_found() -> None:
    """Of the lifecycles and of the fleet's rules."""
    assert PAGE.read_text() == whole_page()
    assert {each.name: each.mutants for each in kept()} == Counter(f"fleet-{each.part}" for each in mutants().values())


@pytest.mark.parametrize(
    ("ref", "other"),
    [("task:T0", "task:T1"), ("task:T0+1", "task:T0+2"), ("worker/a1", "worker/a0"), ("assignment", "assignment")],
)
def test_another_entity_is_one_of_the_same_kind(ref: str, other: str) -> None:
    """An entity that is the only one of its kind has no other."""
    assert elsewhere(ref) == other
