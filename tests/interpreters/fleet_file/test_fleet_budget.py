"""The guarantee: the budgets of a fleet file are the limits of the core. Impossible ones are refused."""

from pathlib import Path

import pytest

from lifefold.core.fleet import opening
from lifefold.core.fleet.board import budget
from lifefold.core.kernel import Opened
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, describe_difference, load

FILE = """\
[fleet]
name = "demo"
{fleet}

[[agents]]
name = "coder"
command = ["sh", "{{prompt}}"]
{timeout}
{agent}

[[tasks]]
id = "T1"
prompt = "Write"
{task}
"""


def read(
    folder: Path, *, fleet: str = "", agent: str = "", task: str = "", timeout: str = 'session_timeout = "30m"'
) -> Fleet:
    """Return the fleet of a file with these lines."""
    path = folder / "fleet.toml"
    path.write_text(FILE.format(fleet=fleet, agent=agent, task=task, timeout=timeout))
    return load(path)


def all_budgets(fleet: Fleet) -> dict[str, budget.Budget]:
    """Return the budgets that a fleet begins with."""
    (_, board), *_ = opening(fleet.plan, 0)
    assert isinstance(board.event, Opened)
    return {ref: each for ref, each in board.event.records.items() if isinstance(each, budget.Budget)}


def test_everything_that_is_written_reaches_the_plan(tmp_path: Path) -> None:
    """In millionths of a dollar and in milliseconds; a claim is given the time of the longest session."""
    plan = read(
        tmp_path,
        fleet="""
            [fleet.budget]
            usd = 20
            tokens = 5_000_000
            time = "8h"
            sessions = 100
            session_usd = 0.5
            session_tokens = 200_000
            resets = "5h"
            unreported = "share"
        """,
        agent="budget = { usd = 2.25, sessions = 10 }",
        task='budget = { tokens = 400_000, time = "1h" }',
    ).plan
    assert plan.budget.caps == Caps(20_000_000, 5_000_000, 28_800_000, 100)
    assert plan.budget.share == Amounts(500_000, 200_000, 1_805_000, 1)
    assert (plan.budget.period_ms, plan.budget.charges_the_silent) == (18_000_000, True)
    assert (plan.agents[0].caps, plan.tasks[0].caps) == (
        Caps(microusd=2_250_000, sessions=10),
        Caps(None, 400_000, 3_600_000),
    )


def test_each_limit_has_a_budget_and_nothing_else_has(tmp_path: Path) -> None:
    """And none at all in a fleet without budgets."""
    fleet = read(tmp_path, fleet="budget = { session_usd = 1 }", task="budget = { usd = 3 }")
    assert {ref: [line.share for line in each.lines] for ref, each in all_budgets(fleet).items()} == {
        "budget:task/T1": [1_000_000]
    }
    assert all_budgets(read(tmp_path)) == {}


@pytest.mark.parametrize(
    ("lines", "key", "essentials"),
    [
        (
            {"fleet": "budget.usd = 0"},
            "fleet.budget.usd",
            "found 0, an integer; accepted: an amount in US dollars from",
        ),
        ({"fleet": "budget.usd = true"}, "fleet.budget.usd", "found true, a boolean"),
        ({"fleet": 'budget.usd = "1"'}, "fleet.budget.usd", 'found "1"'),
        ({"fleet": "budget.usd = nan"}, "fleet.budget.usd", "found nan"),
        ({"fleet": "budget.usd = 1"}, "fleet.budget.usd", "write session_usd under [fleet.budget]"),
        ({"agent": "budget.tokens = 1"}, "agents.coder.budget.tokens", "write session_tokens under [fleet.budget]"),
        (
            {"task": 'budget.time = "1h"', "timeout": ""},
            "tasks.T1.budget.time",
            "write a session_timeout for every agent",
        ),
        (
            {"task": 'budget.time = "30m"'},
            "tasks.T1.budget.time",
            "found 30m; accepted: at least the reservation of a session",
        ),
        (
            {"fleet": "budget.session_usd = 2", "task": "budget.usd = 1"},
            "tasks.T1.budget.usd",
            "found 1.0; accepted: at least the reservation of a session, 2.0",
        ),
        ({"fleet": "budget.sessions = 0"}, "fleet.budget.sessions", "an integer from 1 to"),
        ({"fleet": 'budget.unreported = "all"'}, "fleet.budget.unreported", '"free" or "share"'),
        ({"fleet": "budget.dollars = 3"}, "fleet.budget.dollars", "unknown key"),
        ({"task": "budget.session_usd = 3"}, "tasks.T1.budget.session_usd", "unknown key"),
        ({"agent": "budget = 3"}, "agents.coder.budget", "accepted: a table, [agents.budget]"),
    ],
)
def test_what_cannot_be_kept_is_refused_where_it_stands(
    tmp_path: Path, lines: dict[str, str], key: str, essentials: str
) -> None:
    """With what is accepted."""
    with pytest.raises(FleetFileError) as refused:
        read(tmp_path, **lines)
    (problem,) = refused.value.problems
    assert problem.key == key
    assert essentials in problem.message


def test_a_budget_belongs_to_what_a_log_was_begun_with(tmp_path: Path) -> None:
    """What is not limited changes no meaning."""
    none = read(tmp_path)
    assert "budget" not in none.meaning
    one = read(tmp_path, fleet="budget = { sessions = 3 }", agent="budget.sessions = 2")
    assert describe_difference(none.meaning, one.meaning) == (
        "agents.coder.budget.sessions: was absent, is 2",
        "fleet.budget.sessions: was absent, is 3",
    )
    two = read(tmp_path, fleet="budget = { sessions = 4 }", agent="budget.sessions = 2")
    assert describe_difference(one.meaning, two.meaning) == ("fleet.budget.sessions: was 3, is 4",)
