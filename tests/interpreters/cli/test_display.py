"""The lines that a run prints where there is no terminal: in which order they stand."""

from pathlib import Path

import anyio
import pytest

from fleet_sandbox import Sandbox
from lifefold.core.lifecycles import session
from lifefold.effects import RunSession
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.display import Lines
from lifefold.interpreters.engine import ActivityContext, Interpreter
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner


def test_a_notice_stands_below_the_transitions_that_it_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An agent stops by its only error: its session's end and its task's failure come first, and then the notice."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    text = sandbox.fleet.read_text()
    sandbox.fleet.write_text(text.replace('grace = "300ms"', 'grace = "300ms"\nmax_total_errors = 1'))

    async def run() -> None:
        runner: Runner

        async def crash(_activity: RunSession, context: ActivityContext) -> None:
            runner.handlers.tell("agent", "told while the end is not in the log yet")
            await context.report(session.SessionExited(session.Error("no program")))

        runner = await Runner.open(
            load(sandbox.fleet), sandbox.log, interpreter=Interpreter(activities={RunSession: crash})
        )
        lines = Lines(runner, Account(), transitions=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lines.run)
            with anyio.fail_after(60):
                await runner.run()
            tasks.cancel_scope.cancel()
        runner.close()

    anyio.run(run)
    printed = capsys.readouterr().out.splitlines()
    stopped, failed = (
        next(n for n, line in enumerate(printed) if each in line) for each in ("-> Stopped", "-> FAILED")
    )
    notices = [n for n, line in enumerate(printed) if "! agent: " in line]
    assert len(notices) == 2
    assert min(notices) > stopped
    assert min(notices) > failed


def test_a_run_prints_the_story_that_log_tells_and_transitions_only_on_demand(tmp_path: Path) -> None:
    """Attempts are counted on: the second run begins with the attempt of the first one in the log."""
    sandbox = Sandbox(tmp_path).prepare("crash-1", agents=1, repository=False)
    printed = sandbox.call("run", str(sandbox.fleet), "--no-live").stdout
    story = sandbox.call("log").stdout.splitlines()
    assert any("crash-1         begun by agent, attempt 2" in line for line in story)
    assert [line for line in printed.splitlines() if line in story] == story
    assert "->" not in printed
    again = sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", str(tmp_path / "other.db")).stdout
    assert "IN_PROGRESS -> FAILED" in again
    assert "begun by" not in again
