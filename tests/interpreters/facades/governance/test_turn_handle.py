"""Document 004's turn machine through its own interface."""

import random
import threading
from itertools import pairwise
from typing import Any, Final

import pytest

from lifefold.core.lifecycles import task, turn
from lifefold.interpreters.facades.governance import (
    AbortReason,
    AgentTurnEvent,
    AgentTurnState,
    AgentTurnStateMachine,
    IllegalTransitionError,
)

DOCUMENT: Final = """
IDLE       task_claimed     CLAIMING
CLAIMING   agent_spawned    SPAWNING
CLAIMING   task_failed      FAILED
SPAWNING   agent_spawned    RUNNING
SPAWNING   task_failed      FAILED
RUNNING    tool_started     TOOL_USE
RUNNING    compact_needed   COMPACTING
RUNNING    verify_requested VERIFYING
RUNNING    task_failed      FAILED
TOOL_USE   tool_completed   RUNNING
TOOL_USE   task_failed      FAILED
COMPACTING verify_requested RUNNING
COMPACTING task_failed      FAILED
VERIFYING  task_completed   COMPLETING
VERIFYING  compact_needed   RUNNING
VERIFYING  task_failed      FAILED
COMPLETING agent_reaped     REAPED
FAILED     agent_reaped     REAPED
"""
TABLE: Final = {
    (source, event): target for source, event, target in (line.split() for line in DOCUMENT.strip().splitlines())
}

TO: Final[dict[str, str]] = {
    "IDLE": "",
    "CLAIMING": "task_claimed",
    "SPAWNING": "task_claimed agent_spawned",
    "RUNNING": "task_claimed agent_spawned agent_spawned",
    "TOOL_USE": "task_claimed agent_spawned agent_spawned tool_started",
    "COMPACTING": "task_claimed agent_spawned agent_spawned compact_needed",
    "VERIFYING": "task_claimed agent_spawned agent_spawned verify_requested",
    "COMPLETING": "task_claimed agent_spawned agent_spawned verify_requested task_completed",
    "FAILED": "task_claimed task_failed",
    "REAPED": "task_claimed task_failed agent_reaped",
}
"""How to come to each state."""


def at(state: str) -> AgentTurnStateMachine:
    """Return a machine in this state."""
    machine = AgentTurnStateMachine("A1", "T1")
    for event in TO[state].split():
        machine.transition(event)
    assert machine.state == state
    return machine


@pytest.mark.parametrize("state", TO)
@pytest.mark.parametrize("event", AgentTurnEvent)
def test_a_turn_moves_if_and_only_if_the_document_has_the_line(state: str, event: AgentTurnEvent) -> None:
    """Document 004, "Agent Turn Transition Table (exhaustive)": all 90 pairs."""
    machine = at(state)
    target = TABLE.get((state, event.value))
    assert machine.can_transition(event) is (target is not None)
    if target is None:
        with pytest.raises(IllegalTransitionError, match=f"Illegal agent turn transition: '{state}' -> '{event}'"):
            machine.transition(event)
        assert machine.state == state
    else:
        assert machine.transition(event) is machine.state
        assert machine.state == target
        assert machine.history[-1] == (AgentTurnState(state), event, AgentTurnState(target))


def test_a_whole_turn_as_the_document_tells_it() -> None:
    """Document 004, "Agent Turn State Diagram": claimed, launched, ready, a tool, compaction, verified, reaped."""
    machine = AgentTurnStateMachine("A1", "T1")
    for event in AgentTurnEvent:
        if event is AgentTurnEvent.TASK_FAILED:
            continue
        machine.transition(event)
        if event is AgentTurnEvent.AGENT_SPAWNED:
            machine.transition(event)
        if event is AgentTurnEvent.COMPACT_NEEDED:
            machine.transition(AgentTurnEvent.VERIFY_REQUESTED)
    assert machine.is_terminal
    states = [change.to_state.value for change in machine.history]
    assert " ".join(states) == (
        "CLAIMING SPAWNING RUNNING TOOL_USE RUNNING COMPACTING RUNNING VERIFYING COMPLETING REAPED"
    )


def test_a_launch_that_is_reported_twice_is_no_readiness() -> None:
    """With the same id it changes nothing, and stands in the history once (E26)."""
    machine = at("CLAIMING")
    assert machine.transition("agent_spawned", "launch-1") == "SPAWNING"
    assert machine.transition("agent_spawned", "launch-1") == "SPAWNING"
    assert machine.transition("agent_spawned", "ready-1") == "RUNNING"
    assert len(machine.history) == 3


def test_the_next_turn_has_the_next_number_and_hears_nothing_of_the_one_before() -> None:
    """REAPED is the end of a turn, not of the agent (E27)."""
    machine = at("REAPED")
    assert machine.reset() == machine.turn == 2
    assert (machine.state, machine.history, machine.is_terminal) == ("IDLE", [], False)
    with pytest.raises(IllegalTransitionError):
        machine.transition("task_claimed", turn=1)
    assert machine.transition("task_claimed", turn=2) == "CLAIMING"


@pytest.mark.parametrize("state", [state for state in TO if state != "REAPED"])
def test_a_turn_that_is_not_reaped_cannot_be_left_behind(state: str) -> None:
    """What was started is cleaned up first (E27)."""
    with pytest.raises(IllegalTransitionError, match=f"'{state}' -> 'IDLE'"):
        at(state).reset()


def test_a_crash_while_completing_can_be_provided_for() -> None:
    """By a profile; why it failed is kept (E24)."""
    machine = AgentTurnStateMachine("A1", machine=turn.completing_fails)
    for event in TO["COMPLETING"].split():
        machine.transition(event)
    assert machine.transition("task_failed", reason="gone", abort_reason=AbortReason.OOM) == "FAILED"


MADE_ODDLY: Final[dict[str, dict[str, Any]]] = {
    "no text": {"agent_id": 5},
    "no task": {"task_id": None},
    "no character": {"agent_id": "\ud800"},
    "no machine": {"machine": 5},
    "another's machine": {"machine": task.machine},
}


@pytest.mark.parametrize("given", MADE_ODDLY)
def test_invalid_arguments_are_refused_at_the_call(given: str) -> None:
    """By TypeError or ValueError, and not by the first event that meets with it."""
    with pytest.raises((TypeError, ValueError)):
        AgentTurnStateMachine(**MADE_ODDLY[given])


ODD: Final[list[Any]] = [None, 0, 2.5, "", "x", "\ud800", [], {}, object(), AbortReason.OOM, "timeout"]


def test_ten_thousand_calls_with_odd_arguments_raise_nothing_undocumented() -> None:
    """The seed is fixed, so a failure is found again."""
    chance = random.Random(10)  # noqa: S311 - a fixed seed
    machine = AgentTurnStateMachine("A1")
    for _ in range(10_000):
        event = chance.choice([*AgentTurnEvent, *ODD])
        given: dict[str, Any] = {
            name: chance.choice(ODD) for name in ("event_id", "reason", "abort_reason", "turn") if chance.random() < 0.2
        }
        try:
            machine.can_transition(event)
            machine.transition(event, **given)
            if chance.random() < 0.3:
                machine.reset()
        except (IllegalTransitionError, TypeError, ValueError):
            pass
    assert machine.turn > 1


def test_threads_take_turns() -> None:
    """Every event is taken once, and the history is a chain."""
    machine = at("RUNNING")

    def work() -> None:
        for event in ("tool_started", "tool_completed") * 100:
            try:
                machine.transition(event)
            except IllegalTransitionError:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changes = machine.history
    assert all(one.to_state is next_.from_state for one, next_ in pairwise(changes))
