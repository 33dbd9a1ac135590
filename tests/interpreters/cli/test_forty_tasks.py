"""Forty tasks on 80 columns and 24 lines: what failed, waits or runs is seen at once, and the rest is counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_log import FleetLog
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.lifecycles import task
from terminal import Terminal

WAITS = tuple(f"later-{number:02}" for number in range(1, 34))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a fleet without a runner: one task failed and blocks two, one waits, two run, others wait."""
    bad = TaskPlan("schema", "do it", max_retries=0)
    tasks = (
        *(TaskPlan(name, "do it", priority=900) for name in WAITS),
        bad,
        TaskPlan("uses-schema", "do it", depends_on=("schema",), priority=200),
        TaskPlan("uses-uses", "do it", depends_on=("uses-schema",), priority=200),
        TaskPlan("notes", "do it", needs_approval=True, priority=101),
        TaskPlan("index", "do it", depends_on=("notes",), priority=102),
        TaskPlan("parser", "do it", priority=103),
        TaskPlan("lexer", "do it", priority=104),
    )
    assert len(tasks) == 40
    agents = tuple(AgentPlan(name) for name in ("ann", "bob", "cyd", "dan"))
    log = FleetLog(tmp_path_factory.mktemp("forty") / "x.db", *tasks, agents=agents)
    log.failed("schema", f"exit status 1: {'the stack is long, ' * 20}ValueError: no field 'price'")
    log.claimed("notes", "bob").happens("board", "task:notes", task.Completed(log.task("notes").epoch))
    log.happens("board", "task:notes", fleet_task.Parked(log.task("notes").epoch, "c0ffee"))
    return log.claimed("parser", "cyd").claimed("lexer", "dan").path


def screen(log: Path, *words: str) -> Iterator[str]:
    """Yield the lines that a command leaves on a terminal of 80 columns and 24 lines."""
    with Terminal(log.parent, *words, "--db", str(log)) as terminal:
        drawn = terminal.rest()
    yield from (line.rstrip() for line in drawn.splitlines())


def test_tasks_fit_the_screen_with_what_failed_and_what_waits_at_its_top(log: Path) -> None:
    """Then what runs; what has not begun is counted in one line."""
    lines = list(screen(log, "tasks"))
    assert len(lines) <= 23
    assert all(len(line) <= 80 for line in lines)
    names = [line.split()[0] for line in lines[1:7]]
    assert names == ["schema", "notes", "uses-schema", "uses-uses", "parser", "lexer"]
    assert lines[1].endswith("'price'"), "the cause is at the end of a reason"
    assert lines[-1].startswith("and 19 not begun; ")
    assert "by schema" in lines[3]


def test_tasks_all_has_every_task_in_the_order_of_the_plan(log: Path) -> None:
    """A terminal scrolls then."""
    lines = list(screen(log, "tasks", "--all"))
    assert [line.split()[0] for line in lines[1:34]] == list(WAITS)
    assert len(lines) == 41


def test_status_says_within_a_screen_what_waits_what_is_stuck_and_how_far_the_fleet_is(log: Path) -> None:
    """The counts are at the top, then the decision, the failure with its cause and what it blocks, and the agents."""
    lines = list(screen(log, "status"))
    assert len(lines) <= 23
    assert all(len(line) <= 80 for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "0 of 40 tasks closed, 1 failed, 1 waiting for approval, 2 blocked, 2 running, 34 not begun" in text
    assert "! notes is done and waits for your approval: " in text
    assert "no field 'price' (after 1 attempt; blocks uses-schema and uses-uses): " in text
    assert text.index("! notes") < text.index("x schema has failed") < text.index("AGENT")
    assert [line.split()[0] for line in lines[-4:]] == ["ann", "bob", "cyd", "dan"]


def test_a_screen_without_colours_has_none(log: Path) -> None:
    """``NO_COLOR`` is honoured; otherwise a failure is red, and what waits is yellow."""
    with Terminal(log.parent, "status", "--db", str(log), env={"NO_COLOR": "1"}) as terminal:
        terminal.rest()
        assert b"\x1b[3" not in terminal.raw
    with Terminal(log.parent, "status", "--db", str(log), env={"COLORTERM": ""}) as terminal:
        terminal.rest()
        assert b"\x1b[31mx schema" in terminal.raw
        assert b"\x1b[33m! notes" in terminal.raw
