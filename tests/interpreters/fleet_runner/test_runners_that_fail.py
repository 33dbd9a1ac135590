"""Runners that die, crash, leave or meet another, and agents that spoil their own files: the others go on."""

import json
import os
import re
import select
import signal
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from back_ends import on_asyncio
from fleet_sandbox import Sandbox
from lifefold.core.kernel import Reaction, Refusal
from lifefold.core.lifecycles.session import SessionExited
from lifefold.effects import IncrementSession
from lifefold.interpreters.engine import EffectContext, Interpreter
from lifefold.interpreters.explain import status
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import FleetFolder, Runner, Verdict, handlers, retry_until, sessions, specs
from lifefold.interpreters.processes import (
    ProcessIdentity,
    SurvivorsError,
    adopt,
    identify,
    is_alive,
    read_start,
    signal_if_ours,
)
from lifefold.interpreters.worktrees.verification import end_left_over
from session_scripts import PATIENCE_S, Bell

BEGINS = """
import os, pathlib, signal, subprocess, sys, time
folder = pathlib.Path(os.environ["COUNTS"]).parent
task, agent, attempt = (os.environ[f"LIFEFOLD_{name}"] for name in ("TASK", "AGENT", "ATTEMPT"))
with open(folder / "counts" / task, "a") as file:
    file.write(attempt + "\\n")
prompt = pathlib.Path(sys.argv[1]).read_text()
def ring(bell):
    with open(folder / bell, "w") as file:
        file.write(f"{os.getpid()}\\n")
"""

ENDS = """
pathlib.Path(task + ".txt").write_text(prompt)
"""

WAITS = 'ring("begun"); os.read(os.open(folder / "go", os.O_RDONLY), 3)'

DEAF = 'signal.signal(signal.SIGTERM, lambda *_: ring("asked")); ring("begun")\nwhile True: time.sleep(1000)'

SPOILS = """
if task == "one" and "failed" not in prompt:
    start = folder / ".lifefold/sandbox.db.files/sessions" / agent / f"{int(attempt):04d}" / "start-1"
    os.kill(os.getppid(), signal.SIGSTOP)
    (start / "FILE").write_text("garbage")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
"""

GARBAGE = '.write_text("garbage")'
PIPE = """.unlink(True)
    os.mkfifo(start / "FILE")"""

NESTS = """
if "repositories of its own" not in prompt:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "init", "-q", "sub"], check=True)
    subprocess.run([*git, "-C", "sub", "commit", "-q", "--allow-empty", "-m", "inner"], check=True)
"""


def prepare(sandbox: Sandbox, agent: str, *tasks: str, agents: int = 1, **fleet: str) -> Sandbox:
    """Prepare a fleet of agents that do what is given and then their work, with all the time in the world."""
    sandbox.prepare(*tasks, agents=agents)
    (sandbox.folder / "agent.py").write_text(BEGINS + agent + ENDS)
    text = re.sub(r'session_timeout = "\w+"', 'session_timeout = "1h"', sandbox.fleet.read_text())
    lines = "".join(f'{key} = "{value}"\n' for key, value in fleet.items())
    sandbox.fleet.write_text(text.replace("[fleet]\n", f"[fleet]\n{lines}"))
    return sandbox


def told(bell: Bell) -> ProcessIdentity:
    """Wait for an agent that rings, and return it."""
    found = identify(int(bell.heard_now()))
    assert found is not None
    return found


def killed_at_work(sandbox: Sandbox, begun: Bell, task: str) -> ProcessIdentity:
    """Kill a runner whose agent is at work; return the agent's process, which goes on."""
    with sandbox.running() as run:
        run.until(task, "IN_PROGRESS")
        agent = told(begun)
        run.signal(signal.SIGKILL)
        run.rest()
    assert is_alive(agent)
    return agent


# -- the runner


def test_a_runner_that_goes_down_leaves_the_sessions_to_the_next(sandbox: Sandbox) -> None:
    """An error of the runner's own (here: its log becomes unreadable) is no error of any agent's."""
    prepare(sandbox, WAITS, "one", "two", agents=2)
    begun, go = Bell(sandbox.folder / "begun"), Bell(sandbox.folder / "go")
    with sandbox.running() as run:
        agents = [told(begun), told(begun)]
        run.until("IN_PROGRESS")
        run.until("IN_PROGRESS")
        _execute(sandbox.log, "ALTER TABLE posts RENAME TO hidden")
        run.rest()
        assert run.process.returncode == 3
    assert all(is_alive(agent) for agent in agents)
    _execute(sandbox.log, "ALTER TABLE hidden RENAME TO posts")
    go.ring()
    go.ring()
    sandbox.run()
    assert (sandbox.sessions("one"), sandbox.sessions("two")) == (1, 1)
    assert [agent["total_errors"] for agent in sandbox.json("status")["agents"]] == [0, 0]
    assert sandbox.processes() == []


def _execute(log: Path, statement: str) -> None:
    with closing(sqlite3.connect(log, timeout=PATIENCE_S, isolation_level=None)) as connection:
        connection.execute(statement)


def test_an_adopted_session_gets_its_lease_at_once(sandbox: Sandbox) -> None:
    """However little the lease of the runner before has left, the session does not end under the next one."""
    prepare(sandbox, WAITS, "one", lease="1h")  # no shim renews its lease by itself during this test
    begun, go = Bell(sandbox.folder / "begun"), Bell(sandbox.folder / "go")
    killed_at_work(sandbox, begun, "one")
    directory = FleetFolder(sandbox.log).last_start("agent", 1)
    start = read_start(directory)
    assert start is not None
    assert signal_if_ours(start.shim, signal.SIGSTOP)  # so that it is we who read what the shim is told
    control = os.open(directory / "control", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with sandbox.running() as run:
            assert select.select([control], [], [], PATIENCE_S)[0], "the lease was not renewed"
            assert json.loads(os.read(control, 4096).splitlines()[0]).keys() == {"lease_until_boot_ms"}
            assert signal_if_ours(start.shim, signal.SIGCONT)
            go.ring()
            assert "1 of 1 tasks closed" in run.rest()
    finally:
        os.close(control)
        signal_if_ours(start.shim, signal.SIGCONT)
    assert sandbox.sessions("one") == 1


def test_a_second_interrupt_also_kills_what_an_earlier_runner_has_left(sandbox: Sandbox) -> None:
    """A stopped agent's session that survived its runner ends within its grace, or when the next runner is left."""
    prepare(sandbox, DEAF, "one")
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('grace = "300ms"', 'grace = "1h"'))
    begun, asked = Bell(sandbox.folder / "begun"), Bell(sandbox.folder / "asked")
    agent = killed_at_work(sandbox, begun, "one")
    sandbox.call("stop", "--all")
    with sandbox.running() as run:
        assert told(asked) == agent
        run.signal(signal.SIGINT)
        run.until("leaving")
        run.signal_again(signal.SIGINT)
        run.rest()
        assert run.process.returncode == Verdict.LEFT
    assert sandbox.processes() == []


@on_asyncio
def test_an_end_is_confirmed_only_when_it_is_certain(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """A session that lives on although it was killed is told of, and looked after until it is gone."""
    prepare(sandbox, WAITS, "one")
    begun, _go = Bell(sandbox.folder / "begun"), Bell(sandbox.folder / "go")
    agent = killed_at_work(sandbox, begun, "one")
    sandbox.call("stop", "--all")
    error = SurvivorsError("processes live on")
    monkeypatch.setattr(sessions, "adopt", _failing_twice(adopt, error))
    monkeypatch.setattr(retry_until, "PAUSE_S", 0.01)
    verdict, notices = anyio.run(partial(_run, sandbox), backend=backend)
    assert (verdict, notices[1:]) == (Verdict.SOME_FAILED, [("agent", f"waits to end what is left: {error}")])
    assert not is_alive(agent)


def test_a_verification_that_was_left_is_ended_for_certain(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification begins again only when nothing of its first beginning is at work any more."""
    prepare(sandbox, "", "one")
    begun, once = Bell(sandbox.folder / "begun"), sandbox.folder / "once"
    command = f"[ -e {once} ] || {{ touch {once}; echo $$ > {begun}; exec sleep 1000; }}"
    sandbox.fleet.write_text(
        sandbox.fleet.read_text().replace('["test", "-s", "one.txt"]', f'["sh", "-c", "{command}"]')
    )
    with sandbox.running() as run:
        left = told(begun)
        run.signal(signal.SIGKILL)
        run.rest()
    monkeypatch.setattr(handlers, "end_left_over", _failing_twice(end_left_over, OSError("no descriptor")))
    monkeypatch.setattr(retry_until, "PAUSE_S", 0.01)
    verdict, notices = anyio.run(_run, sandbox)
    assert notices[0][1] == "continuing: 0 sessions adopted, 0 tasks in progress, 1 to be verified or merged"
    assert (verdict, notices[1:]) == (Verdict.ALL_CLOSED, [("agent", "waits to end what is left: no descriptor")])
    assert not is_alive(left)


def _failing_twice(real: Any, error: Exception) -> Any:
    left = [error, error]

    async def failing(*arguments: object) -> object:
        if left:
            raise left.pop()
        return await real(*arguments)

    return failing


async def _run(sandbox: Sandbox, interpreter: Interpreter | None = None) -> tuple[Verdict, list[tuple[str, str]]]:
    runner = await Runner.open(load(sandbox.fleet), sandbox.log, interpreter=interpreter)
    try:
        return await runner.run(), runner.notices
    finally:
        runner.close()


# -- the agent's own files


@pytest.mark.parametrize("file", ["exit.json", "started.json", "output.position", "exit.json.tmp"])
@pytest.mark.parametrize("how", [GARBAGE, PIPE], ids=["garbage", "pipe"])
def test_an_agent_that_spoils_its_records_fails_alone(sandbox: Sandbox, file: str, how: str) -> None:
    """It is an error of its session; the others go on, and the task is tried again."""
    prepare(sandbox, SPOILS.replace(GARBAGE, how).replace("FILE", file), "one", "two", agents=2)
    sandbox.run()
    assert (sandbox.sessions("one"), sandbox.sessions("two")) == (2, 1)
    assert sorted(agent["total_errors"] for agent in sandbox.json("status")["agents"]) == [0, 1]
    assert sandbox.processes() == []


def test_a_session_finds_its_prompt_however_slow_effects_are(sandbox: Sandbox) -> None:
    """The file is there when the agent starts, also if effects before it have not been performed yet."""
    ended = 0

    def watch(_name: str, outcome: Reaction | Refusal) -> None:
        nonlocal ended
        steps = outcome.transitions if isinstance(outcome, Reaction) else ()
        ended += sum(isinstance(step.event, SessionExited) for step in steps)

    async def slow(_effect: IncrementSession, _occasion: EffectContext) -> None:
        while ended < 2:  # noqa: ASYNC110 - the engine reports no late effect
            await anyio.sleep(0.01)

    async def run() -> int:
        runner = await Runner.open(load(sandbox.fleet), sandbox.log, interpreter=Interpreter({IncrementSession: slow}))
        runner.observers.append(watch)
        try:
            await runner.run()
            return sum(agent.total_errors for agent in status.agents(runner.aggregates))
        finally:
            runner.close()

    prepare(sandbox, "", "one", "two")
    assert anyio.run(run) == 0
    assert "one" in (sandbox.folder / "repo" / "one.txt").read_text()


def test_a_prompt_that_has_become_too_long_for_an_argument_is_read_from_its_file(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows by messages and by what went wrong, and nothing of it is lost: the argument says where it is."""
    prepare(sandbox, '(folder / "said").write_text(sys.argv[2])', "one", "two")
    long = "ü" * 300
    text = sandbox.fleet.read_text().replace('"{prompt_file}"]', '"{prompt_file}", "{prompt}"]')
    sandbox.fleet.write_text(text.replace('"Write one.txt"', '"short"').replace('"Write two.txt"', f'"{long}"'))
    monkeypatch.setattr(specs, "ARGUMENT_BYTES", 500)
    assert anyio.run(_run, sandbox)[0] is Verdict.ALL_CLOSED
    said = (sandbox.folder / "said").read_text()
    assert "too long for an argument" in said
    assert str(FleetFolder(sandbox.log).prompt("agent", 2)) in said
    assert long in (sandbox.folder / "repo" / "two.txt").read_text()


def test_work_that_can_never_be_merged_is_tried_again_with_the_reason(sandbox: Sandbox) -> None:
    """It is no use to wait for it: the next prompt says what was wrong."""
    prepare(sandbox, NESTS, "one")
    sandbox.run()
    assert sandbox.sessions("one") == 2
    assert sandbox.merges() == ["Merge one: Write one.txt"]


# -- other runs


def test_a_second_run_of_the_fleet_on_another_log_is_refused(sandbox: Sandbox) -> None:
    """It exits with 2, names the log of the first, and disturbs nothing."""
    prepare(sandbox, WAITS, "one")
    begun, go = Bell(sandbox.folder / "begun"), Bell(sandbox.folder / "go")
    with sandbox.running() as run:
        told(begun)
        before = sandbox.git("for-each-ref")
        refused = sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", "other.db", code=2)
        assert f"with the log {sandbox.log}" in refused.stderr
        assert sandbox.git("for-each-ref") == before
        assert not list(sandbox.folder.glob("other.db*"))
        go.ring()
        assert "1 of 1 tasks closed" in run.rest()


def test_a_run_whose_name_another_has_taken_over_cannot_be_continued(sandbox: Sandbox) -> None:
    """Its claims are the other one's now; that one can be continued."""
    prepare(sandbox, WAITS, "one")
    begun, go = Bell(sandbox.folder / "begun"), Bell(sandbox.folder / "go")
    agent = killed_at_work(sandbox, begun, "one")
    go.ring()
    go.ring()
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", "other.db")
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
    assert "taken over" in refused.stderr
    assert str(sandbox.folder / "other.db") in refused.stderr
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", "other.db")
    signal_if_ours(agent, signal.SIGKILL)


def test_a_run_that_cannot_begin_changes_nothing_in_the_repository(sandbox: Sandbox) -> None:
    """Where the log cannot be written, what an earlier run has left remains as it is."""
    prepare(sandbox, "", "one")
    sandbox.run()
    before = sandbox.git("for-each-ref")
    assert "lifefold/sandbox/one/1" in before
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", "repo/README/x.db", code=2)
    assert sandbox.git("for-each-ref") == before


def test_a_beginning_that_was_interrupted_is_made_up_for(sandbox: Sandbox) -> None:
    """As long as nothing is in the log, the run takes over the fleet's name, whatever earlier ones have left."""
    prepare(sandbox, "", "one")
    sandbox.run()

    async def begin() -> None:
        runner = await Runner.open(load(sandbox.fleet), sandbox.folder / "new.db")
        runner.close()

    anyio.run(begin)
    file = sandbox.folder / "repo" / ".git" / "lifefold" / "sandbox"
    assert str(sandbox.folder / "new.db") in file.read_text()
    file.write_text(f"another\n{sandbox.log}\n")  # as if the name had not been taken over yet
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", "new.db")
    assert len(sandbox.merges()) == 1, "nothing was left to be changed"
