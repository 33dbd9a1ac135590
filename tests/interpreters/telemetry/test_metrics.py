"""Costs and tokens as metrics: what sessions have reported, by agent, and nothing that no session has reported."""

from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from fleet_log import FleetLog
from lifefold.core.fleet import AgentPlan, TaskPlan, system
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.telemetry import genai
from lifefold.interpreters.telemetry.metrics import Distribution, Kind, Metric, Metrics, Point

TASKS = (TaskPlan("T1", "do it"), TaskPlan("T2", "do that", depends_on=("T1",)))


def decisions(log: Path) -> list[Decision]:
    """Fold a log."""
    with SqliteStore.peek(log) as store:
        return list(Ledger(system).fold(anyio.run(store.read)))


def counted(found: Iterable[Decision]) -> dict[str, Metric]:
    """Return the metrics of a log by name."""
    metrics = Metrics(is_fleet=True)
    for decision in found:
        metrics.take(decision)
    return {each.name: each for each in metrics.metrics()}


def session_of(log: FleetLog, agent: str, usage: Usage) -> None:
    """Let the session of an agent, which has a task, end with a cost."""
    for event in (
        session.WorktreeReady(),
        session.PromptReady("do it"),
        session.SessionStarted(0),
        session.SessionExited(session.Success(), usage=usage),
    ):
        log.reported(f"worker/{agent}", "session", event)


@pytest.fixture(name="log")
def a_fleet_that_has_reported_costs(tmp_path: Path) -> FleetLog:
    """The session of ann cost money and tokens; bob had none."""
    log = FleetLog(tmp_path / "fleet.db", *TASKS, agents=(AgentPlan("ann"), AgentPlan("bob")))
    session_of(log, "ann", Usage(cost_microusd=1_250_000, input_tokens=3_000, output_tokens=200))
    return log


def test_costs_and_tokens_are_those_that_sessions_have_reported(log: FleetLog) -> None:
    """In dollars, and in a distribution of tokens by agent and kind, as the GenAI conventions have it."""
    found = counted(decisions(log.path))
    cost = found["lifefold.cost"]
    assert (cost.kind, cost.unit) == (Kind.SUM, "USD")
    assert cost.points == (Point(((genai.AGENT, "ann"),), 1.25),)
    tokens = found[genai.TOKEN_USAGE]
    assert (tokens.kind, tokens.unit) == (Kind.HISTOGRAM, "{token}")
    by_kind = {dict(each.attributes)[genai.TOKEN_TYPE]: each for each in tokens.points}
    assert set(by_kind) == {genai.INPUT, genai.OUTPUT}
    for kind, count in ((genai.INPUT, 3_000), (genai.OUTPUT, 200)):
        point = by_kind[kind]
        assert isinstance(point, Distribution)
        assert dict(point.attributes)[genai.AGENT] == "ann"
        assert (point.total, point.least, point.most, sum(point.counts)) == (count, count, count, 1)
        (place,) = (place for place, number in enumerate(point.counts) if number)
        assert place == sum(bound < count for bound in point.bounds)


def test_the_sum_of_the_metrics_is_what_the_status_shows(log: FleetLog) -> None:
    """By agent, in money and in tokens."""
    every, spending = decisions(log.path), Spending()
    for decision in every:
        for step in decision.reaction.transitions:
            spending = spend(spending, decision.entry.stream, step)
    found = counted(every)
    dollars = sum(each.value for each in found["lifefold.cost"].points if isinstance(each, Point))
    tokens = sum(each.total for each in found[genai.TOKEN_USAGE].points if isinstance(each, Distribution))
    assert dollars * 1_000_000 == spending.total.cost_microusd
    assert tokens == spending.total.input_tokens + spending.total.output_tokens > 0


def test_a_fleet_whose_programs_report_no_cost_has_no_metric_of_costs(tmp_path: Path) -> None:
    """A zero would say that the work was free."""
    log = FleetLog(tmp_path / "fleet.db", *TASKS)
    session_of(log, "ann", Usage())
    found = counted(decisions(log.path))
    assert "lifefold.cost" not in found
    assert genai.TOKEN_USAGE not in found
    assert "lifefold.tasks" in found


def test_a_session_that_reports_only_tokens_has_tokens_and_no_cost(tmp_path: Path) -> None:
    log = FleetLog(tmp_path / "fleet.db", *TASKS)
    session_of(log, "ann", Usage(input_tokens=7))
    found = counted(decisions(log.path))
    assert "lifefold.cost" not in found
    (point,) = found[genai.TOKEN_USAGE].points
    assert dict(point.attributes)[genai.TOKEN_TYPE] == genai.INPUT
