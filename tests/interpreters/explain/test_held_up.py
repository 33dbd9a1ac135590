"""What holds a task up, and how many attempts it had: the same values for every screen."""

import pytest

from fleet_log import FleetLog, folded
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Entity, Reaction, Transition, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.session import State as SessionState
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.explain import status, task_status, words
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.explain.timers import Timer


def held_up(log: FleetLog) -> dict[str, str]:
    """Return what holds each task up that something does."""
    return {each.id: each.held_up for each in task_status.tasks(folded(log.path).aggregates) if each.held_up}


def test_a_task_names_those_that_it_waits_for_and_their_states(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A task that is begun waits for nothing."""
    tasks = (TaskPlan("a", "do it"), TaskPlan("b", "do it"), TaskPlan("c", "do it", depends_on=("a", "b")))
    log = FleetLog(tmp_path_factory.mktemp("x") / "x.db", *tasks)
    assert held_up(log) == {"c": "waits for a (not begun), b (not begun)"}
    assert held_up(log.claimed("a")) == {"c": "waits for a (running), b (not begun)"}


def test_a_blocked_task_names_the_failure_at_the_end_of_the_chain(tmp_path_factory: pytest.TempPathFactory) -> None:
    """With its reason, which an operator would otherwise look up task by task."""
    tasks = (
        TaskPlan("a", "do it", max_retries=0),
        TaskPlan("b", "do it", depends_on=("a",)),
        TaskPlan("c", "do it", depends_on=("b",)),
    )
    log = FleetLog(tmp_path_factory.mktemp("x") / "x.db", *tasks).failed("a", "Error(no field 'price')")
    assert held_up(log) == {
        "b": "blocked by a (failed): no field 'price'",
        "c": "blocked by b, and that by a (failed): no field 'price'",
    }


def test_every_state_has_its_words() -> None:
    """Of a task and of a session; a service has words of its own."""
    assert set(OF_TASKS) == set(task.State)
    assert all(words.of_agent(each, "T1").islower() for each in SessionState)
    assert words.of_agent("awaiting", "") == "awaiting"


def test_an_agent_that_can_begin_nothing_is_idle() -> None:
    """Whatever its machine prepares."""
    assert words.of_agent("BuildingPrompt", "") == "idle"
    assert words.of_agent("BuildingPrompt", "T1") == "preparing"
    assert words.of_agent("BuildingPrompt", "T1", "Pause") == "idle"


def test_a_failure_is_retried_only_while_its_timer_runs() -> None:
    """In a fleet that does not go on, no timer brings anything."""
    failed = fleet_task.FleetTask(state=task.State.FAILED, id="T1", max_retries=1)
    found = task_status.task_status(Entity("task:T1", failed))
    retried = replace(found, timer=Timer("Rested", 1))
    assert (found.in_words, retried.in_words) == ("failed", "to be retried")
    assert task_status.at_rest([retried]) == (found,)


def test_a_task_that_is_open_after_an_attempt_is_not_said_to_be_not_begun() -> None:
    """Its retry waits for an agent."""
    fresh = task_status.task_status(Entity("task:T1", fleet_task.FleetTask(state=task.State.OPEN, id="T1")))
    assert (fresh.in_words, replace(fresh, attempts=1).in_words) == ("not begun", "open again")


def assigned(epoch: int, stage: task.Stage = task.Stage.WORK) -> Reaction:
    """Return the reaction of a worker that gets a claim."""
    event = assignment.Assigned(task.Brief("T1", epoch, stage=stage))
    of = Entity("assignment", assignment.Assignment())
    step = Transition("assignment", of, of, event, 0, "board", ())
    return Reaction(Aggregate("worker/ann"), transitions=(step,))


def test_attempts_are_counted_once_whether_the_board_or_the_worker_tells_of_them() -> None:
    """A run that continues a log folds its workers alone. A handover of done work is no attempt."""
    account = Account()
    for epoch in (1, 1, 2):
        account.observe("worker/ann", assigned(epoch))
    account.observe("worker/ann", assigned(3, task.Stage.MERGE))
    of = Entity("task:T1", fleet_task.FleetTask(id="T1", epoch=2))
    claimed = Transition("task", of, of, task.Claimed("ann"), 0, "rule:match", ())
    account.observe("board", Reaction(Aggregate("board"), transitions=(claimed,)))
    assert account.attempts == {"T1": 2}


def test_an_agent_has_the_number_of_the_attempt_at_its_task(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Not that of its own sessions; without a task it has none."""
    log = FleetLog(tmp_path_factory.mktemp("x") / "x.db", TaskPlan("T1", "do it"), agents=(AgentPlan("ann"),))
    aggregates = folded(log.path).aggregates
    (agent,) = status.agents(aggregates)
    tasks = [replace(each, attempts=3) for each in task_status.tasks(aggregates)]
    assert [each.attempt for each in status.at_attempts([agent, replace(agent, task="T1")], tasks)] == [0, 3]
