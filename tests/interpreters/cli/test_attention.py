"""What needs an operator comes first where there is no room for everything."""

import itertools
from typing import Any

import pytest

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.kernel import Entity, replace
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli.attention import agents_first, tasks_first
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus, task_status
from lifefold.interpreters.explain.timers import Timer


def a_task(state: State, name: str = "", *, retries: int = 0) -> TaskStatus:
    """Return a task in a state; one with retries left is about to be retried, as its timer says."""
    found = task_status(Entity("task:x", FleetTask(state=state, id=name or str(state), max_retries=retries)))
    return replace(found, timer=Timer("Rested", 1)) if retries else found


def an_agent(name: str, **fields: Any) -> AgentStatus:
    counts = dict.fromkeys(
        ("session_seq", "sessions", "consecutive_errors", "total_errors", "messages", "processes"), 0
    )
    texts = {"name": name, "desired_state": "Run", "state": "Running", "task": "", "doing": "", "reason": ""}
    given: dict[str, Any] = {**texts, "since_ms": 0, "timer": None, **counts, **fields}
    return AgentStatus(**given)


ORDER = [
    [a_task(State.FAILED, "for good")],
    [a_task(State.BLOCKED)],
    [a_task(State.PENDING_APPROVAL)],
    [a_task(State.PLANNED)],
    [a_task(State.ORPHANED), a_task(State.FAILED, "retried", retries=1)],
    *([a_task(state)] for state in (State.IN_PROGRESS, State.CLAIMED, State.DONE, State.WAITING_FOR_SUBTASKS)),
    *([a_task(state)] for state in (State.OPEN, State.CANCELLED, State.CLOSED)),
]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(range(len(ORDER)), 2)))
def test_a_task_that_needs_an_operator_more_comes_first(one: int, other: int) -> None:
    """First final failures, blocked tasks and waiting decisions; then running tasks, and closed ones."""
    for first, second in itertools.product(ORDER[one], ORDER[other]):
        assert tasks_first([second, first]) == [first, second]


def test_every_state_of_a_task_has_its_place() -> None:
    """None is left out of the order."""
    assert {State(each.state) for group in ORDER for each in group} == set(State)


def test_tasks_that_are_alike_stay_in_the_order_of_the_plan() -> None:
    """The plan says which of them matters more."""
    plan = [a_task(State.OPEN, name) for name in ("b", "c", "a")]
    assert tasks_first(plan) == plan


def test_agents_that_need_an_operator_come_first() -> None:
    """Stopped by errors or quarantined, silent, paused, at work; at last those that have stopped as they were asked."""
    fallen = [an_agent("a", state="Stopped"), an_agent("b", supervisor="Quarantined"), an_agent("c", state="failed")]
    others = [
        an_agent("d", silent_since_ms=5),
        an_agent("e", desired_state="Pause"),
        an_agent("f"),
        an_agent("g", state="Stopped", desired_state="Stop", reason="no work is left"),
    ]
    assert agents_first([*reversed(others), *fallen]) == [*fallen, *others]
