"""Status: what the log says of a fleet, computed from its aggregates."""

import pytest

from fleet_driver import Driver
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, mailbox, status
from lifefold.core.session import Limits

PLAN = Plan(
    "plan",
    (AgentPlan("bob"), AgentPlan("ann")),
    (TaskPlan("T2", "do that", (), (), 1, 2), TaskPlan("T1", "do it", depends_on=("T2",), max_retries=0)),
)


def stopped_when(state: str) -> Driver:
    """Return a fleet at the moment when bob's session has come to a state."""
    return Driver(PLAN).run(until=lambda driver: bob_state(driver) == state)


def bob_state(driver: Driver) -> str:
    """Return the state of bob's session; empty before there is one."""
    return driver.record("worker/bob", "session").state.value if "worker/bob" in driver.aggregates else ""


def bob(driver: Driver) -> status.AgentStatus:
    """Return bob's status."""
    return status.agent_status(driver.aggregates["worker/bob"])


def test_a_working_agent_shows_its_task_and_its_process() -> None:
    """Who, what was asked, what it does, since when."""
    shown = bob(stopped_when("Running"))
    assert (shown.name, shown.intent, shown.state, shown.task, shown.doing) == (
        "bob",
        "Run",
        "Running",
        "T2",
        "Working",
    )
    assert (shown.session_seq, shown.attempt, shown.processes, shown.timer, shown.reason) == (0, 1, 1, None, "")
    assert (shown.consecutive_errors, shown.total_errors, shown.letters) == (0, 0, 0)


def test_an_agent_without_work_shows_no_task() -> None:
    """Also after it has had one."""
    driver = stopped_when("BuildingPrompt")
    assert (bob(driver).doing, bob(driver).task, bob(driver).processes) == ("Wanting", "", 0)
    done = bob(driver.run())
    assert (done.state, done.doing, done.task, done.intent, done.reason) == (
        "Stopped",
        "Idle",
        "",
        "Stop",
        "no work is left",
    )


def test_an_interrupted_agent_shows_its_letters_and_the_timer_that_comes_next() -> None:
    """The timer with its deadline; the process is there until its end is confirmed."""
    driver = stopped_when("Running")
    driver.post("worker/bob", "mailbox", mailbox.LetterArrived("look"))
    driver.run(until=lambda now: bob_state(now) == "Interrupting")
    shown = bob(driver)
    assert (shown.letters, shown.processes) == (1, 1)
    assert shown.timer == status.Timer("GraceExceeded", shown.since_ms + 5_000)


def test_a_running_session_shows_when_its_time_is_up() -> None:
    """Its time-out comes from the start; where there is none, nothing is shown."""
    plan = Plan("plan", (AgentPlan("bob", Limits(session_timeout_ms=60_000)),), PLAN.tasks)
    driver = Driver(plan).run(until=lambda now: bob_state(now) == "Running")
    shown = bob(driver)
    assert shown.timer == status.Timer("SessionTimeout", shown.since_ms + 60_000)


def test_agents_come_by_name_and_tasks_in_the_order_of_the_plan() -> None:
    """Whatever the order in which they were made."""
    driver = Driver(PLAN).run()
    assert [each.name for each in status.agents(driver.aggregates)] == ["ann", "bob"]
    assert [each.id for each in status.tasks(driver.aggregates)] == ["T2", "T1"]


@pytest.mark.parametrize("when", ["Running", "end"])
def test_a_task_shows_what_the_board_has_of_it(when: str) -> None:
    """Owner and claims while it is worked on, its commit when it is closed."""
    driver = stopped_when("Running") if when == "Running" else Driver(PLAN).run()
    first, second = status.tasks(driver.aggregates)
    assert (first.id, first.priority, first.depends_on, first.max_retries) == ("T2", 1, (), 2)
    assert (second.id, second.priority, second.depends_on, second.max_retries) == ("T1", 2, ("T2",), 0)
    if when == "Running":
        assert (first.state, first.settled, first.owner, first.claims, first.commit) == ("CLAIMED", False, "bob", 1, "")
        assert (second.state, second.settled, second.claims) == ("OPEN", False, 0)
    else:
        assert [(each.state, each.settled, each.owner, each.commit) for each in (first, second)] == [
            ("CLOSED", True, "", "c0ffee")
        ] * 2
        assert (first.retries, first.reason) == (0, "")
        assert first.since_ms <= second.since_ms
