"""Timers that are lost, fire late, or race with other events: a mutant and a short trace of each."""

from typing import Any, Final

from declared import instead
from lifefold.core.kernel import STAY, Row, Step, after, replace, row
from lifefold.core.lifecycles import agent, process, session, task_profiles
from lifefold.core.lifecycles.agent import Heartbeat, SpawnOverdue, TaskFinished
from lifefold.core.lifecycles.process import Process
from lifefold.core.lifecycles.process_properties import COMING_BACK
from lifefold.core.lifecycles.process_restart import Limits
from lifefold.core.lifecycles.session import GraceExceeded, force_stop
from lifefold.core.lifecycles.task import Approved, Claimed, Started, State, Task
from lifefold.core.lifecycles.task_profiles import LeaseExpired
from mutated import ALL, STUCK, lasting, shipped, way_to
from property_checks import changed, without_timer

RESTARTING: Final = process.machine.starting(Process(limits=Limits(restart_policy="on_failure", max_restarts=1)))


def _unless_restored(p: Process) -> int | None:
    return None if p.failure == "orphaned" or p.comeback is process.Comeback.NONE else p.limits.restart_backoff_ms


def test_a_pause_is_over_at_last_after_a_restore_too() -> None:
    """statelyai/xstate#5331: a restored state has lost its delay, and is stuck."""
    lost = RESTARTING.with_rows(during={process.DOWN: after(_unless_restored, process.BackoffElapsed)})
    said = (process.StartRequested, process.Orphaned)
    trace = way_to(
        "a planned restart happens, unless a stop or a start is requested",
        lost.with_properties(*COMING_BACK),
        states=ALL,
        said=said,
    )
    assert "Orphaned()" in trace[1]
    assert trace[-1] == STUCK


def test_a_pause_that_was_entered_ends() -> None:
    """statelyai/xstate#1334: a delayed transition does not happen after rehydration."""
    copy = without_timer(shipped("session-prompt-failures"), "BackoffElapsed")
    trace = way_to("CoolingDown does not last for ever", copy, states=ALL)
    assert "→ CoolingDown" in trace[-2]
    assert trace[-1] == STUCK


def test_every_state_that_waits_has_its_timer() -> None:
    """basiltt/xstate-statemachine#128: timers are not set again."""
    said = (Heartbeat, TaskFinished)
    trace = way_to(
        "an idle agent is assigned a task in the end, or is dead",
        without_timer(shipped("agent-supervised"), "Recycled"),
        ALL,
        said,
    )
    assert "working → idle" in trace[-2]
    assert trace[-1] == STUCK


def test_a_grace_that_has_begun_ends() -> None:
    """basiltt/xstate-statemachine#221: a delayed event that a state raises for itself is lost."""
    trace = way_to("EXPIRED does not last for ever", without_timer(shipped("lease"), "GraceExceeded"), ALL, ())
    assert "ACTIVE → EXPIRED" in trace[-2]
    assert trace[-1] == STUCK


def test_a_time_out_takes_its_branch() -> None:
    """fgmacedo/python-statemachine#434: a persisted state that times out takes none of its branches."""
    blind = instead(shipped("task-governed"), row(State.CLAIMED, LeaseExpired, STAY))
    trace = way_to("CLAIMED does not last for ever", blind, ALL, (Approved, Claimed))
    assert trace[-2].endswith("LeaseExpired elapses   CLAIMED")
    assert trace[-1] == STUCK


def test_a_timer_ends_with_its_state() -> None:
    """StoneCypher/jssm#723: a stale timer fires after its state was left early."""
    at_work = (session.State.SPAWNING, session.State.RUNNING)
    kill = row(at_work, GraceExceeded, session.State.BUILDING_PROMPT, force_stop)
    wait: Row[Any] = row(session.State.BUILDING_PROMPT, GraceExceeded, STAY)
    states = (session.State.INTERRUPTING, session.State.BUILDING_PROMPT, *at_work)
    copy = lasting(shipped("session"), "GraceExceeded", states, kill, wait)
    trace = way_to("only an interrupted session is killed", copy, said=(session.UrgentMessage,))
    assert "GraceExceeded elapses   Spawning → BuildingPrompt" in trace[-1]


def test_a_launch_that_has_worked_is_not_given_up() -> None:
    """spring-attic/spring-statemachine#728: a timer fires although its state was left."""
    ends = row(agent.State.WORKING, SpawnOverdue, agent.State.DEAD, agent.expire)
    copy = lasting(shipped("agent-supervised"), "SpawnOverdue", (agent.State.STARTING, agent.State.WORKING), ends)
    trace = way_to("a working agent dies by the end of its process only", copy, said=(Heartbeat,))
    assert "starting → working" in trace[-2]
    assert "SpawnOverdue elapses   working → dead" in trace[-1]


def test_a_worker_that_begins_in_time_keeps_the_task() -> None:
    """pytransitions/transitions#459: a timeout and a trigger race, and both are accepted."""
    ends: Row[Any] = row(State.IN_PROGRESS, LeaseExpired, State.OPEN, task_profiles.lose)
    copy = lasting(shipped("task-governed"), "LeaseExpired", (State.CLAIMED, State.IN_PROGRESS), ends)
    trace = way_to("a lease expires only before its owner has begun", copy, said=(Approved, Claimed, Started))
    assert "Started(epoch=1)   CLAIMED → IN_PROGRESS" in trace[-2]
    assert "LeaseExpired elapses   IN_PROGRESS → OPEN" in trace[-1]


def _in_two_parts(t: Task, e: Claimed) -> Step[Task, Any]:
    return Step(replace(t, owner=e.owner))


def test_a_transition_is_taken_whole() -> None:
    """pytransitions/transitions#640: an observer sees the first half of a transition."""
    halved = instead(shipped("task"), row(State.OPEN, Claimed, State.CLAIMED, _in_two_parts))
    trace = way_to("every claim has a number of its own", halved)
    assert "Claimed(owner='worker')   OPEN → CLAIMED" in trace[-1]


def _moves_on(a: agent.Agent, e: Any) -> Step[agent.Agent, Any]:
    return Step(agent.expire(a, e).record)


def test_a_time_out_ends_the_work_with_the_state() -> None:
    """pytransitions/transitions#682: the timeout changes the state, and the work continues."""
    copy = changed(shipped("agent-supervised"), "SpawnOverdue", action=_moves_on)
    trace = way_to("an agent that is given up has its session ended", copy)
    assert "SpawnOverdue" in trace[-1]
    assert "starting → dead" in trace[-1]
