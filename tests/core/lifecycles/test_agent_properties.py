"""The properties of agents hold in every reachable state, and detect mistakes in the rules."""

from typing import Any, Final

import pytest

from declared import Mutants, instead, must_be_found, must_hold, rebuilt
from lifefold.core.kernel import STAY, Machine, Step, replace, row
from lifefold.core.lifecycles import agent
from lifefold.core.lifecycles.agent import (
    Agent,
    Heartbeat,
    Limits,
    SpawnOverdue,
    State,
    TaskFinished,
    Watched,
    machine,
    supervised,
)
from lifefold.effects import KillOverdue

NEAR: Final = Limits(
    spawn_timeout_ms=5,
    idle_ms=5,
    silence_ms=(1, 2, 3, 4),
    wall_clock_ms=6,
    fresh_ms=3,
    extension_ms=2,
    longest_ms=9,
)
"""Limits in the order of the usual ones, near enough for all times between them to be looked at."""


def nearest(of: Machine[Any]) -> Machine[Any]:
    """Return a machine with these limits."""
    return of.starting(Agent(limits=NEAR))


@pytest.mark.parametrize("of", [machine, supervised], ids=lambda of: of.name)
def test_an_agent_has_all_its_properties(of: Machine[Any]) -> None:
    """In all of its states, at all times up to the longest that a task may take, with every row used."""
    assert must_hold(nearest(of)).missing == ()


def _again(a: Agent, e: Watched) -> Step[Agent, Any]:
    return agent.watch(replace(a, escalated=0), e)


def _killed_again(a: Agent, e: Watched) -> Step[Agent, Any]:
    return agent.watch(replace(a, overdue=False), e)


def _without_end(a: Agent, e: Watched) -> Step[Agent, Any]:
    done = agent.watch(a, e).record
    longer = replace(done, allowed_ms=done.allowed_ms + 2) if done.allowed_ms else done
    return Step(longer, agent.watch(a, e).effects)


def _never_overdue(a: Agent, e: Watched) -> Step[Agent, Any]:
    done = agent.watch(a, e)
    return Step(replace(done.record, overdue=False), tuple(x for x in done.effects if type(x) is not KillOverdue))


def _deaf(a: Agent, _e: Heartbeat) -> Step[Agent, Any]:
    return Step(replace(a, heartbeat_at_ms=a.at_ms))


def _forgiving(a: Agent, e: Watched) -> Step[Agent, Any]:
    done = agent.watch(a, e)
    return Step(replace(done.record, escalated=min(done.record.escalated, 3)), done.effects)


def _keeps_task(a: Agent, _e: TaskFinished) -> Step[Agent, Any]:
    return Step(replace(a, task="T1", escalated=0))


def _expires_alone(a: Agent, e: SpawnOverdue) -> Step[Agent, Any]:
    return Step(agent.expire(a, e).record)


WORKING, IDLE, DEAD = State.WORKING, State.IDLE, State.DEAD

MUTANTS: Final[Mutants] = {
    "steps are taken again": (
        "that are due, each once",
        lambda: instead(machine, row(WORKING, Watched, STAY, _again)),
    ),
    "the last step is forgotten": (
        "that are due, each once",
        lambda: instead(machine, row(WORKING, Watched, STAY, _forgiving)),
    ),
    "the end is requested again and again": (
        "requested, once",
        lambda: instead(machine, row(WORKING, Watched, STAY, _killed_again)),
    ),
    "a task has more and more time": (
        "more time than the longest",
        lambda: instead(machine, row(WORKING, Watched, STAY, _without_end)),
    ),
    "no task is overdue": ("is overdue", lambda: instead(machine, row(WORKING, Watched, STAY, _never_overdue))),
    "a heartbeat does not start the ladder again": (
        "the ladder starts again",
        lambda: instead(machine, row((WORKING, IDLE), Heartbeat, STAY, _deaf)),
    ),
    "an idle agent keeps its task": (
        "idle without a task",
        lambda: instead(machine, row(WORKING, TaskFinished, IDLE, _keeps_task)),
    ),
    "an overdue launch is left behind": (
        "has its session ended",
        lambda: instead(supervised, row(State.STARTING, SpawnOverdue, DEAD, _expires_alone)),
    ),
    "an idle agent is never recycled": (
        "an idle agent is assigned",
        lambda: rebuilt(supervised, during={k: v for k, v in supervised.during.items() if IDLE not in k}),
    ),
    "a launch may take for ever": (
        "a launched agent works",
        lambda: rebuilt(supervised, during={k: v for k, v in supervised.during.items() if IDLE in k}),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_in_the_rules_of_agents_breaks_a_property(mutant: Any) -> None:
    """Each of these mutants breaks the property with these words."""
    words, make = mutant
    must_be_found((words, lambda: nearest(make())))
