"""The story of a fleet: what an operator calls an event is told once, with its whole reason, and bookkeeping is not."""

from pathlib import Path
from typing import Final

import pytest

from fleet_driver import Driver
from fleet_log import ME, FleetLog
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, system
from lifefold.core.fleet.board import intake
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.worker import desired_state, mailbox, output, question
from lifefold.core.kernel import (
    Aggregate,
    Entity,
    EntityQuarantined,
    EntityReleased,
    Envelope,
    Event,
    Reaction,
    RunnerRecovered,
    Transition,
)
from lifefold.core.lifecycles import process, session
from lifefold.interpreters.cli import logs
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.explain.chronicle import Chronicle, News
from lifefold.interpreters.explain.chronicle_words import Mood
from lifefold.interpreters.explain.words import unwrapped

LONG: Final = f"{'the cause is far away; ' * 40}disk full"


def story(path: Path) -> list[News]:
    """Return the story of a log."""
    chronicle = Chronicle()
    with logs.peek(str(path)) as store:
        decisions = list(logs.decisions(store, Ledger(system)))
    return [news for each in decisions for news, _ in chronicle.told(each.entry.stream, each.reaction)]


def lines(path: Path) -> list[str]:
    """Return the story of a log as sentences."""
    return [f"{each.about} {each.said}" for each in story(path)]


def test_a_task_is_begun_fails_with_its_whole_reason_and_is_begun_again(tmp_path: Path) -> None:
    """The attempts are counted; claims, slots and sessions have no line of their own."""
    log = FleetLog(tmp_path / "x.db", TaskPlan("T1", "do it"), TaskPlan("T2", "do that")).failed("T1", LONG)
    assert lines(log.path) == [
        "the plan begins with 2 tasks",
        "T1 begun by ann",
        f"T1 attempt 1 failed: {LONG}",
    ]
    assert [each.mood for each in story(log.path)] == [Mood.PLAIN, Mood.PLAIN, Mood.FAILED]


def test_a_failure_that_is_not_tried_again_says_so_and_a_retry_of_an_operator_is_told(tmp_path: Path) -> None:
    """A retry by the fleet itself is told by the next attempt."""
    log = FleetLog(tmp_path / "x.db", TaskPlan("T1", "do it", max_retries=0)).failed("T1")
    assert lines(log.path)[-1] == "T1 attempt 1 failed: tests fail (it is not tried again)"


VERIFIED: Final = TaskPlan("T1", "do it", verify=(("true",),))


def test_a_whole_fleet_is_told_from_its_plan_to_its_end() -> None:
    """Each task is done, verified and merged, and the end is told once."""
    driver = Driver(Plan("plan", (AgentPlan("bob"),), (VERIFIED, TaskPlan("T2", "that"))))
    chronicle, told = Chronicle(), list[str]()
    driver.watch = lambda name, reaction: told.extend(
        f"{each.about} {each.said}" for each, _ in chronicle.told(name, reaction)
    )
    driver.run()
    assert told[0] == "the plan begins with 2 tasks"
    assert sorted(each.partition(" as ")[0] for each in told if each.startswith("T1 ")) == [
        "T1 begun by bob",
        "T1 its verification succeeded",
        "T1 merged",
        "T1 the work is done, and is to be verified",
    ]
    assert told[-1] == "the fleet is over: 2 of 2 tasks closed"
    assert sum("is over" in each for each in told) == 1


def test_a_runner_that_only_waited_is_not_called_dead() -> None:
    """Its agents have no work before the plan is approved, so nothing was interrupted when it ended."""
    driver = Driver(Plan("plan", (AgentPlan("ann"), AgentPlan("bob")), (VERIFIED,), approve_plan=True))
    chronicle, told = Chronicle(), list[str]()
    driver.watch = lambda name, reaction: told.extend(each.said for each, _ in chronicle.told(name, reaction))
    driver.run(until=lambda now: all(map(_is_idle, (now.aggregates.get(f"worker/{each}") for each in ("ann", "bob")))))
    left = chronicle.recovered(RunnerRecovered(90_000), 0)
    assert left is not None
    assert (left.said, left.mood) == ("goes on; the last entry was 1 min old", Mood.PLAIN)
    assert not any("begun by" in each for each in told)


def _is_idle(of: Aggregate | None) -> bool:
    return of is not None and of.record("session").state is session.State.BUILDING_PROMPT


def _is_at_work(of: Aggregate) -> bool:
    return of.record("session").state is session.State.RUNNING


def test_a_runner_that_died_is_told_and_one_that_left_is_not_taken_for_it() -> None:
    """A hold of the agents tells the two apart; each agent is held, and the story has it once."""
    driver = Driver(Plan("plan", (AgentPlan("ann"), AgentPlan("bob")), (VERIFIED,)))
    chronicle, told = Chronicle(), list[str]()
    driver.watch = lambda name, reaction: told.extend(
        f"{each.about} {each.said}" for each, _ in chronicle.told(name, reaction)
    )
    driver.run(until=lambda now: {"board", "worker/ann", "worker/bob"} <= now.aggregates.keys())
    driver.run(until=lambda now: _is_at_work(now.aggregates["worker/ann"]))
    died = chronicle.recovered(RunnerRecovered(90_000), 0)
    assert died is not None
    assert (died.about, died.said) == ("the runner", "goes on after one that has died; the last entry was 1 min old")
    for event, said in (
        (desired_state.HoldWanted(), "the runner leaves; the next run goes on"),
        (desired_state.RunWanted(), "the runner goes on"),
    ):
        for name in ("worker/ann", "worker/bob"):
            driver.deliver(name, Envelope("desired_state", event, driver.now_ms, "runner"))
        assert [each for each in told if each.startswith("the runner")][-1:] == [said]
        assert (chronicle.recovered(RunnerRecovered(90_000), 0) is None) == isinstance(event, desired_state.HoldWanted)
    assert sum(each.startswith("the runner") for each in told) == 2


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (desired_state.PauseWanted("lunch"), "ann is paused: lunch"),
        (desired_state.StopWanted("enough"), "ann is stopped for good: enough"),
        (mailbox.OperatorMessageArrived("hurry", urgent=True), "ann got an urgent message: hurry"),
    ],
)
def test_a_command_of_an_operator_is_told_with_its_operator(tmp_path: Path, event: Event, said: str) -> None:
    """What follows from it between the machines is not."""
    entity = "mailbox" if isinstance(event, mailbox.OperatorMessageArrived) else "desired_state"
    log = FleetLog(tmp_path / "x.db", VERIFIED)
    before = lines(log.path)
    log.happens("worker/ann", entity, event, actor=ME)
    assert lines(log.path) == [*before, said]
    assert story(log.path)[-1].by == ME.removeprefix("operator:")


def test_the_same_event_from_a_rule_is_no_command(tmp_path: Path) -> None:
    """The board stops its agents when no work is left."""
    log = FleetLog(tmp_path / "x.db", VERIFIED)
    before = lines(log.path)
    assert lines(log.happens("worker/ann", "desired_state", desired_state.StopWanted("no work is left")).path) == before


def test_an_agent_that_its_errors_have_stopped_is_told_with_the_last_one(tmp_path: Path) -> None:
    """Its task is told as well."""
    agent = AgentPlan("ann", session.Limits(max_consecutive_errors=1))
    log = FleetLog(tmp_path / "x.db", VERIFIED, agents=(agent,)).claimed("T1").fallen("ann", "no api key")
    assert any(
        each.startswith("ann has stopped because of errors: ") and "no api key" in each for each in lines(log.path)
    )


@pytest.mark.parametrize(
    ("aggregate", "machine", "event", "said"),
    [
        ("worker/ann", "session", EntityQuarantined("a bug"), "ann its session is quarantined: a bug"),
        ("worker/ann", "session", EntityReleased(), "ann its session is released from quarantine"),
        ("worker/ann", "output", output.LimitSeen(1, None, "five_hour", "no more"), "ann met a limit of its account"),
        ("service/web", "process", process.RunFailed("exit status 1"), "web a run failed: exit status 1"),
        ("service/web", "process", process.Crashed("no file"), "web failed: no file"),
        ("service/web", "inbox", inbox.MessageArrived("look"), "web got a message: look"),
        ("board", "intake", intake.LastTaskIn(), "the fleet gets no more tasks"),
    ],
)
def test_what_happens_beside_the_tasks_is_told(aggregate: str, machine: str, event: Event, said: str) -> None:
    """Each by its own words."""
    of = Entity(machine, output.Output())
    step = Transition(machine, of, of, event, 0, "runner", ())
    ((news, steps),) = Chronicle().told(aggregate, Reaction(Aggregate(aggregate), transitions=(step,)))
    assert f"{news.about} {news.said}".startswith(said)
    assert steps == (step,)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (question.QuestionAsked("T1", 1, "t", "a", text="which " * 90), f"asked (Q1): {'which ' * 89}which"),
        (
            question.QuestionAsked("T1", 1, "t", "a", text="Which one?", choices=("sqlite", "postgres")),
            "asked (Q1): Which one? (sqlite or postgres)",
        ),
    ],
)
def test_a_question_is_told_whole_after_its_number(asked: question.QuestionAsked, said: str) -> None:
    """However long it is, and with its choices behind it."""
    before, after = (Entity(question.REF, question.Questions(asked=number)) for number in (0, 1))
    step = Transition(question.machine.name, before, after, asked, 0, "x", ())
    ((news, _),) = Chronicle().told("worker/ann", Reaction(Aggregate("worker/ann"), transitions=(step,)))
    assert news.said == said


def test_the_end_of_a_session_is_told_without_the_name_of_its_kind() -> None:
    """The kinds are words of the program, not of an operator."""
    assert unwrapped("Error(exit status 1:\n  (no) file)") == "exit status 1: (no) file"
    assert unwrapped("a (plain) reason") == "a (plain) reason"
