"""The board under whatever workers, people and time say to it, in any order: it keeps all its properties."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from board_life import BOARD, Board, must_survive_steps, plans
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, system
from lifefold.core.kernel import AggregateType


@pytest.mark.parametrize(
    "course",
    [
        settings(max_examples=20, stateful_step_count=30),
        pytest.param(settings(max_examples=50, stateful_step_count=100), marks=pytest.mark.campaign),
    ],
    ids=["short", "long"],
)
@pytest.mark.cover
def test_a_board_has_its_properties_whatever_is_said_to_it(course: Any) -> None:
    """And what its rules look up is, after every step, what the tasks and worker slots are.

    Of eleven boards without one of their rules the long form finds ten by example 26, and none later by example 250.
    """
    run_state_machine_as_test(Board, settings=course)


@given(plans(), st.integers(0, 2**32))
def test_a_board_has_its_properties_through_long_histories(plan: Plan, seed: int) -> None:
    """The same, for fleets that get far: parts of parts, retries of retries, few workers."""
    must_survive_steps(plan, seed, 200)


PLAN: Final = Plan(
    "any",
    tuple(AgentPlan(f"a{n}") for n in range(3)),
    tuple(
        TaskPlan(f"T{n}", "do it", depends_on=("T0",) * (n == 1), needs_approval=n == 2, most_subtasks=5, max_retries=1)
        for n in range(3)
    ),
    approve_plan=True,
    approval_ms=3_600_000,
)
"""One in which every rule of the board has something to do."""


def must_survive_often(kind: AggregateType) -> None:
    """Let a board with these rules go several ways."""
    for seed in range(12):
        must_survive_steps(PLAN, seed, 200, kind)


NEEDED: Final = (
    "match hand_over release retry_granted divide gather look_again block_waiting free_waiting cancel_parts decide"
)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", NEEDED.split())
def test_a_board_without_one_of_its_rules_breaks_a_property(name: str) -> None:
    """And is found to. Recalls, and the way home, are messages: what they are for is promised by the fleet."""
    left = [each for each in BOARD.rules if each.name != name]
    mistaken = AggregateType(
        BOARD.kind, machines=BOARD.machines.values(), rules=left, views=BOARD.views, commands=BOARD.commands
    ).among(system.aggregates)
    must_survive_often(BOARD)
    with pytest.raises(AssertionError):
        must_survive_often(mistaken)


@pytest.mark.campaign
@settings(max_examples=100)
@given(plans(), st.integers(0, 2**32))
def test_a_board_has_its_properties_through_many_long_histories(plan: Plan, seed: int) -> None:
    """The campaign: a hundred histories, where twelve find every rule in ``NEEDED`` that is lost."""
    must_survive_steps(plan, seed, 400)
