"""The properties of turns hold in every reachable state, and detect mistakes in the rules."""

from typing import Any, Final

import pytest

from declared import Mutants, instead, must_be_found, must_hold, rebuilt
from lifefold.core.kernel import Machine, Step, replace, row
from lifefold.core.lifecycles import turn
from lifefold.core.lifecycles.turn import (
    AgentReaped,
    AgentSpawned,
    State,
    TaskCompleted,
    TaskFailed,
    Turn,
    VerifyRequested,
    completing_fails,
    is_news,
    machine,
)


@pytest.mark.no_cover
@pytest.mark.parametrize("of", [machine, completing_fails], ids=lambda of: of.name)
def test_a_turn_has_all_its_properties(of: Machine[Any]) -> None:
    """In all of its states, with every row and every guard used both ways."""
    assert must_hold(of).missing == ()


def _forgotten(t: Turn, _e: AgentSpawned) -> Step[Turn, Any]:
    return Step(t)


def _is_of_this_turn(t: Turn, e: AgentSpawned) -> bool:
    return e.turn == t.number


def _is_unseen(t: Turn, e: TaskFailed) -> bool:
    return e.id not in t.seen


def _blamed(t: Turn, e: VerifyRequested) -> Step[Turn, Any]:
    return Step(replace(turn.noted(t, e), reason="slow"))


RUNNING, FAILED, REAPED = State.RUNNING, State.FAILED, State.REAPED

MUTANTS: Final[Mutants] = {
    "a repeated launch is readiness": (
        "a repeated report",
        lambda: instead(
            machine, row(State.SPAWNING, AgentSpawned, RUNNING, turn.remember, when=_is_of_this_turn), is_news
        ),
    ),
    "an earlier turn's failure is this one's": (
        "another turn",
        lambda: instead(machine, row(RUNNING, TaskFailed, FAILED, turn.fail, when=_is_unseen), is_news),
    ),
    "a turn completes without verification": (
        "only from its verification",
        lambda: machine.with_rows(row(RUNNING, TaskCompleted, State.COMPLETING, turn.remember, when=is_news)),
    ),
    "a report is forgotten": (
        "is remembered",
        lambda: instead(machine, row(State.CLAIMING, AgentSpawned, State.SPAWNING, _forgotten, when=is_news), is_news),
    ),
    "a failed turn continues": (
        "reaped, and nothing else",
        lambda: machine.with_rows(row(FAILED, AgentSpawned, RUNNING, turn.remember, when=is_news)),
    ),
    "a turn is reaped while it is verified": (
        "only when it has completed",
        lambda: machine.with_rows(row(State.VERIFYING, AgentReaped, REAPED, turn.remember, when=is_news)),
    ),
    "a compaction cannot fail": (
        "every turn that began",
        lambda: rebuilt(
            machine,
            rows=[
                each
                for each in machine.rows
                if (each.sources, each.event) != (frozenset({State.COMPACTING}), TaskFailed)
            ],
        ),
    ),
    "a failed turn is never reaped": (
        "every turn that began",
        lambda: instead(machine, row(FAILED, AgentReaped, State.CLAIMING, turn.remember, when=is_news), is_news),
    ),
    "a continuing turn has a reason of failure": (
        "failed only with a reason",
        lambda: instead(machine, row(RUNNING, VerifyRequested, State.VERIFYING, _blamed, when=is_news), is_news),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_in_the_rules_of_turns_breaks_a_property(mutant: Any) -> None:
    """Each of these mutants breaks the property with these words."""
    must_be_found(mutant)
