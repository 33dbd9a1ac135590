"""Mistakes planted in the fleet's rules are found: some of those that ``every_fleet_mutant`` tries."""

from collections import Counter
from functools import cache
from typing import Final

import pytest

from mutation_results import PAGE
from rule_campaign import Campaign, Fate
from rule_modules import elsewhere
from rule_mutation import Mistake
from rule_results import PARTS, kept, reason, section, whole_page

WHERE: Final = "one agent, one task after another"
"""The small fleet in which some are tried here."""

FOUND: Final = {
    "board: hand_over on task: is not there": "no task has two owners, and every owner sits at its task",
    "board: is_at_work: `Stage.WORK` is VERIFY": "what is looked up is what the tasks and worker slots are",
    "worker: close_mailbox: `transition.entered in _ENDS` is compared otherwise": "messages are taken exactly as long",
    "worker: _GIVEN_UP: `assignment.State.WORKING` is ORPHANED": "an agent that has stopped has no work to be done",
    "worker: report: `task.Failed(brief.epoch, reason, diagnosis)` is Orphaned": (
        "no task has two owners, and every owner sits at its task"
    ),
    "worker: _interrupt: `yield Dispatch('session', by)` is asked for twice": "interrupted once",
    "worker: next_round: `transition.entered is assignment.State.IDLE and completed` does not ask `completed`": (
        "an agent waits until its first place is made"
    ),
}
"""Some mistakes, of different kinds, and words of the property that finds each."""


FEATURED_FOUND: Final = (
    (
        "pulse: give_up: `transition.entered is State.STALLED` is compared otherwise",
        "one agent that is watched",
        "no session is ended for its silence that has not stalled",
    ),
    (
        "orphans: has_died: `session.Error() | session.Timeout()` has no case `session.Timeout()`",
        "one agent, what its dead session has left is given back",
        "what becomes of work whose session dies is what its task says",
    ),
    (
        "trusting: is_allowed: `record.asks or owner.level >= record.merges` does not ask `record.asks`",
        "two agents, of whom one is trusted to merge",
        "nothing is taken from whoever is trusted far enough",
    ),
    (
        "budgets: _cost: `p.charges_the_silent and event.silent` does not ask `event.silent`",
        "one agent, a little money",
        "a claim is charged what it has cost, or its share",
    ),
)
"""Some mistakes in rules that only some fleets need, in which fleet, and the property that finds each."""


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """Return the campaign in one fleet."""
    return Campaign(WHERE)


@cache
def mistakes() -> dict[str, Mistake]:
    """Return all mistakes by name."""
    return {each.name: each for source in PARTS.values() for each in source.mistakes()}


@pytest.mark.parametrize(("name", "promise"), FOUND.items(), ids=FOUND)
def test_a_mistake_in_the_rules_breaks_a_property(campaign: Campaign, name: str, prop: str) -> None:
    """Whichever of its kind: these are some."""
    ended = campaign.attempt(mistakes()[name])
    assert ended.fate is Fate.KILLED
    assert prop in ended.by


@pytest.mark.parametrize(("name", "where", "promise"), FEATURED_FOUND, ids=[each[0] for each in FEATURED_FOUND])
def test_a_mistake_in_what_only_some_fleets_have_breaks_a_property(name: str, where: str, prop: str) -> None:
    """In a small fleet that has it."""
    ended = Campaign(where, sources=()).attempt(mistakes()[name])
    assert (ended.fate, ended.by) == (Fate.KILLED, prop)


def test_what_makes_no_difference_is_the_same_fleet(campaign: Campaign) -> None:
    """What is asked for twice at once is refused the second time."""
    twice = "board: hand_over: `yield Dispatch(f'worker_slot:{record.owner}', worker slot.Seated(record.id))` is asked for twice"
    ended = campaign.attempt(mistakes()[twice])
    assert (ended.fate, ended.differs) == (Fate.SAME, ())


@pytest.mark.campaign
def test_a_mistake_shows_only_where_the_function_runs_that_it_is_in(campaign: Campaign) -> None:
    """So whether a fleet is the same need not be asked anywhere else: for some mistakes both ways are gone."""
    ground = campaign.grounds[WHERE]
    some = [each for each in mistakes().values() if each.within][::30]
    made = [(each, ground.with_rules(each)) for each in some]
    answers = [(ground.is_same(system), ground.is_same(system, each.within)) for each, system in made]
    assert all(plain is quick for plain, quick in answers)
    assert len(set(answers)) > 1


@pytest.mark.campaign
def test_what_is_told_needlessly_changes_nothing(campaign: Campaign) -> None:
    """Who hears twice that a task has failed does nothing the second time; who never hears it is another one."""
    told = "worker: report: `yield Tell('board', to, task.Failed(brief.epoch, reason, diagnosis))`"
    ground, known = campaign.grounds[WHERE], mistakes()
    assert ground.is_needless(ground.with_rules(known[f"{told} is asked for twice"]))
    assert not ground.is_needless(ground.with_rules(known[f"{told} is not asked for"]))


def test_every_mistake_leaves_a_module_that_runs() -> None:
    """Here some are made; the campaign makes all of them."""
    assert all(each.make().rules for each in list(mistakes().values())[::40])


def test_every_survivor_has_a_reason() -> None:
    """And what is said of it is said of a mistake that there is."""
    assert not any(each.unexplained() for each in kept())
    assert {left.mistake for each in kept() for left in each.survivors} <= mistakes().keys()
    assert all(reason(left.mistake) in section(kept()) for each in kept() for left in each.survivors)
    assert not reason("board: hand_over on task: is not there")


def test_the_page_is_what_the_campaigns_have_found() -> None:
    """Of the lifecycles and of the fleet's rules."""
    assert PAGE.read_text() == whole_page()
    assert {each.name: each.mistakes for each in kept()} == Counter(
        f"fleet-{each.part}" for each in mistakes().values()
    )


@pytest.mark.parametrize(
    ("ref", "other"),
    [("task:T0", "task:T1"), ("task:T0+1", "task:T0+2"), ("worker/a1", "worker/a0"), ("assignment", "assignment")],
)
def test_who_stands_beside_somebody_is_another_one_of_his_kind(ref: str, other: str) -> None:
    """Who is one of a kind stands alone."""
    assert elsewhere(ref) == other
