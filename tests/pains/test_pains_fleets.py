"""Stuck fleets: claims of dead agents, dependents of lost tasks, wrong owners; a mutant and a short trace of each."""

from collections.abc import Iterator
from typing import Final

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch import claims, dependencies
from lifefold.core.fleet.dispatch.task_index import TaskIndex, _close, fold, is_lost
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Create, Dispatch, Transition, replace, rule
from lifefold.core.lifecycles import task
from lifefold.effects import Tell
from mutated import ALL, STUCK
from mutated_fleet import BOARD, WORKER, plan, way_through, without

STOP: Final = {"desired_state": (desired_state.StopWanted,)}
CHAIN: Final = plan(tasks=2, chained=True)
SETTLED: Final = "every task is settled at last"
AWAITED: Final = "no task waits for a task that is lost"


def test_the_claim_of_a_gone_worker_is_given_back() -> None:
    """sipyourdrink-ltd/bernstein#4453: the claim of a dead agent is never released, and the run waits for ever."""
    trace = way_through("every owner is at its task", plan(), STOP, board=without(BOARD, "release"))
    assert "WorkerGone" in trace[-1]


def test_a_task_that_no_agent_can_do_is_blocked() -> None:
    """sipyourdrink-ltd/bernstein#5967: skipped tasks keep the run from ending."""
    trace = way_through(SETTLED, CHAIN, board=without(BOARD, "block_waiting"), states=ALL)
    assert any("task:T0 CLAIMED → FAILED" in line for line in trace)
    assert not any("task:T1" in line for line in trace)
    assert trace[-1] == STUCK


def _lost_is_done(work: TaskIndex, transition: Transition) -> TaskIndex:
    now = fold(work, transition)
    lost = transition.machine == "task" and transition.entered is not None and is_lost(transition.after.record)
    return _close(now, transition.after.record.id) if lost else now


def test_a_dependent_of_a_failed_task_is_not_queued_again() -> None:
    """sipyourdrink-ltd/bernstein#3621: the dependent of a failed task is dispatched, fails, and is dispatched again."""
    queued = without(BOARD, "block_waiting")
    prop = "no task is worked at before its dependencies are merged"
    trace = way_through(prop, CHAIN, board=queued, fold=_lost_is_done)
    assert any("task:T0 CLAIMED → FAILED" in line for line in trace)
    assert "task:T1 OPEN → CLAIMED" in trace[-1]


@rule(on=fleet_task.machine)
def _again_as_another(_of: Aggregate, transition: Transition) -> Iterator[Create]:
    """Try a failed task again under another id, so that its dependents need not be blocked."""
    record: fleet_task.FleetTask = transition.after.record
    if transition.entered is task.State.FAILED and not record.id.endswith("-again"):
        fresh = fleet_task.FleetTask(
            task.State.OPEN, f"{record.id}-again", record.prompt, max_retries=record.max_retries
        )
        yield Create(f"task:{fresh.id}", fresh)


def test_a_dependent_waits_for_the_retry_of_its_dependency() -> None:
    """sipyourdrink-ltd/bernstein#4376: the retry has a new id, and dependents of the old id wait for ever."""
    trace = way_through(AWAITED, CHAIN, board=without(BOARD, "block_waiting", _again_as_another))
    assert "task:T0 CLAIMED → FAILED; task:T0-again OPEN" in trace[-1]


@rule(on=fleet_task.machine)
def _block_after_failures(of: Aggregate, transition: Transition) -> Iterator[Dispatch | Create | Tell]:
    """Block what depends on a failed task, and forget what depends on a cancelled one."""
    if transition.entered is task.State.FAILED:
        yield from dependencies.block_waiting(of, transition)


def test_a_dependent_of_a_cancelled_task_is_blocked() -> None:
    """sipyourdrink-ltd/bernstein#2252: a refused task has no effect on its dependents."""
    alone = without(BOARD, "block_waiting", _block_after_failures)
    trace = way_through(SETTLED, CHAIN, {"task": (task.Cancelled,)}, board=alone, states=ALL)
    assert any("task:T0 OPEN → CANCELLED" in line for line in trace)
    assert not any("task:T1" in line for line in trace)
    assert trace[-1] == STUCK


def test_dependencies_are_checked_whenever_a_task_is_opened() -> None:
    """777genius/agent-teams-ai#618: the dependencies of a task are checked at its creation only."""
    people = {"task": (task.Cancelled, task.Unblocked)}
    trace = way_through(AWAITED, CHAIN, people, board=without(BOARD, "look_again"))
    assert "Cancelled(" in trace[-2]
    assert "task:T1 OPEN → BLOCKED" in trace[-2]
    assert trace[-1].endswith("Unblocked()   task:T1 BLOCKED → OPEN")


@rule(on=fleet_task.machine)
def _to_another(of: Aggregate, transition: Transition) -> Iterator[Dispatch | Create | Tell]:
    """Hand the task over to who has not claimed it."""
    for wish in claims.hand_over(of, transition):
        yield replace(wish, aggregate="worker/a1") if isinstance(wish, Tell) else wish


def test_no_worker_works_at_a_claim_of_another() -> None:
    """zenml-io/kitaru#743: a worker takes a task that another agent has claimed."""
    wrong = without(BOARD, "hand_over", _to_another)
    trace = way_through("no worker works at a task of another claim", plan(agents=2), board=wrong)
    assert "task:T0 OPEN → CLAIMED" in trace[1]
    assert "worker/a1 assignment: board tells Assigned(brief=Brief(task='T0', epoch=1" in trace[-1]


def test_a_released_worker_continues() -> None:
    """statelyai/xstate#4627: the activities of an entered state do not begin when the state is restored."""
    people = {"desired_state": (desired_state.HoldWanted, desired_state.RunWanted)}
    trace = way_through(SETTLED, plan(), people, worker=without(WORKER, "go_on", on="desired_state"), states=ALL)
    assert trace[-2].endswith("RunWanted()   desired_state Hold → Run")
    assert trace[-1] == STUCK


def test_the_consequences_of_a_transition_are_complete() -> None:
    """fgmacedo/python-statemachine#503: transitions that follow from others cannot be chained safely."""
    trace = way_through(SETTLED, plan(retries=1), worker=without(WORKER, "next_round"), states=ALL)
    assert any("session Running → SessionComplete" in line for line in trace)
    assert "task:T0 FAILED → OPEN" in trace[-2]
    assert trace[-1] == STUCK


def test_a_worker_at_a_cancelled_task_is_recalled() -> None:
    """NousResearch/hermes-agent#57596: the worker survives its archived task."""
    people = {"task": (task.Cancelled,)}
    unheard = without(BOARD, "recall")
    trace = way_through(
        "a worker whose task was taken learns it, if merges end", plan(), people, board=unheard, states=ALL
    )
    assert any("→ CANCELLED" in line for line in trace)
    assert not any("Recalled" in line for line in trace)
