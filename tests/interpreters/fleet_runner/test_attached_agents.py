"""An operator continues the conversation of an agent by hand, and gives it back: nothing of it is lost."""

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import msgspec
import pytest

from agent_recordings import FOLDER
from fleet_log import FleetLog, said
from fleet_sandbox import HANG_S
from lifefold.core.fleet import AgentPlan, ServicePlan, TaskPlan
from lifefold.core.fleet.system.plan import Talks
from lifefold.core.fleet.worker import assignment
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.task import Brief
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.store import SqliteStore
from program_sandbox import ProgramSandbox

LOOK_S: Final = 0.1
"""The time between two looks at a log."""

TALKS = """#!/bin/sh
case " $* " in
*" -p "*"--resume="*) printf '%s\\n' "$@" > {counts}/resumed; cat {data}/claude/resumed.txt; cp by_hand talks.txt ;;
*" -p "*) echo $$ > {counts}/pid; cat {data}/claude/success.txt | head -n 3; exec sleep 600 ;;
*) echo "$PWD $*" > by_hand; echo "at the terminal with $CLAUDE_CONFIG_DIR"; exit {status} ;;
esac
"""
"""A program that hangs in its first session, works by hand, and succeeds in the session that resumes it."""


def talking(folder: Path, *, status: int = 0) -> ProgramSandbox:
    """Return a fleet of one agent, and a task, with such a program."""
    sandbox = ProgramSandbox(folder)
    script = TALKS.format(counts=shlex.quote(str(folder / "counts")), data=shlex.quote(str(FOLDER)), status=status)
    agent = sandbox.agent("claude", "talks", script=script)
    return sandbox.cast(agent.replace("env = { ", 'env = { CLAUDE_CONFIG_DIR = "/its own", '), repository=True)


def begun(sandbox: ProgramSandbox) -> str:
    """Wait until the log has the name of the agent's conversation, and return it."""
    patience = time.monotonic() + HANG_S
    while time.monotonic() < patience:
        with SqliteStore.peek(sandbox.log) as store:
            entries = anyio.run(store.read)
        events = [msgspec.json.decode(each.envelope)["event"] for each in entries]
        for event in events:
            if event["type"] == "ConversationSeen":
                return str(event["id"])
        time.sleep(LOOK_S)
    raise AssertionError("the agent has never named its conversation")


def test_an_attached_conversation_goes_on_by_hand_and_then_with_the_agent(tmp_path: Path) -> None:
    """The session is over when the command is printed; it runs in the worktree; the next session resumes the same."""
    sandbox = talking(tmp_path)
    with sandbox.running() as run:
        run.until("Spawning -> Running")
        conversation = begun(sandbox)
        printed = sandbox.call("attach", "agent:talks").stdout.splitlines()
        pid = (tmp_path / "counts" / "pid").read_text().strip()
        assert not Path("/proc", pid).exists()
        worktree = tmp_path / ".lifefold" / "sandbox.db.files" / "worktrees" / "talks"
        program = tmp_path / "programs" / "talks"
        command = f"CLAUDE_CONFIG_DIR='/its own' {program} --resume={conversation}"
        assert printed == [
            "talks: paused, until lifefold resume talks",
            f"cd {worktree} && {command}",
            "lifefold resume talks gives it back: the next session resumes the conversation",
        ]
        again = sandbox.call("attach", "task:talks", "--exec").stdout.splitlines()
        assert again == ["talks: is paused already", printed[1], "at the terminal with /its own", printed[2]]
        answers = [json.loads(line) for line in sandbox.call("attach", "task:talks", "--json").stdout.splitlines()]
        assert [(each["command"], each["target"], each["reason"]) for each in answers] == [
            ("attach", "talks", printed[1])
        ]
        assert "accepted: one of them" in sandbox.call("attach", "task:talks", "--json", "--exec", code=2).stderr
        assert (worktree / "by_hand").read_text() == f"{worktree} --resume={conversation}\n"
        sandbox.call("resume", "talks")
        run.rest()
    assert f"--resume={conversation}" in (tmp_path / "counts" / "resumed").read_text().splitlines()
    assert sandbox.tasks()["talks"]["state"] == "CLOSED"
    assert sandbox.git("show", "main:talks.txt") == f"{worktree} --resume={conversation}\n"


def test_a_program_on_the_search_path_of_its_agent_is_attached_by_its_place(tmp_path: Path) -> None:
    """The terminal has another search path. Without the program, the command says how to give the agent back."""
    sandbox = talking(tmp_path)
    programs = tmp_path / "programs"
    text = sandbox.fleet.read_text().replace(f'program = "{programs / "talks"}"', 'program = "talks"')
    sandbox.fleet.write_text(text.replace("env = { ", f'env = {{ PATH = "{programs}:/usr/bin:/bin", '))
    with sandbox.running() as run:
        run.until("Spawning -> Running")
        conversation = begun(sandbox)
        told = sandbox.call("attach", "agent:talks", "--exec").stdout
        assert f"CLAUDE_CONFIG_DIR='/its own' {programs / 'talks'} --resume={conversation}\nat the terminal" in told
        (programs / "talks").unlink()
        failed = sandbox.call("attach", "agent:talks", "--exec", code=2).stderr
        assert failed.endswith("run it by hand; lifefold resume talks gives it back\n")


def test_a_program_finds_its_conversation_in_the_home_of_its_agent(tmp_path: Path) -> None:
    """The home and the folders of data are where the session had them. Other variables of the agent stay its own."""
    sandbox = talking(tmp_path)
    (tmp_path / "its home").mkdir()
    more = f'HOME = "{tmp_path}/its home", XDG_DATA_HOME = "/its/data", GREETING = "hello", '
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace("env = { ", f"env = {{ {more}"))
    with sandbox.running() as run:
        run.until("Spawning -> Running")
        begun(sandbox)
        _, typed, _ = sandbox.call("attach", "agent:talks").stdout.splitlines()
    words = shlex.split(typed.partition(" && ")[2])
    given = dict(each.split("=", 1) for each in words if not each.startswith("-") and "=" in each)
    assert given == {
        "HOME": f"{tmp_path}/its home", "XDG_DATA_HOME": "/its/data", "CLAUDE_CONFIG_DIR": "/its own",
    }  # fmt: skip


def test_a_program_by_hand_has_the_login_of_its_agent_which_is_not_printed(tmp_path: Path) -> None:
    """A variable that is no login of the program stays the agent's own."""
    sandbox = talking(tmp_path)
    program = tmp_path / "programs" / "talks"
    program.write_text(program.read_text().replace("exit 0", 'echo "$ANTHROPIC_API_KEY $MY_TOKEN" > login; exit 0'))
    more = 'ANTHROPIC_API_KEY = "sk-of-the-agent", MY_TOKEN = "its-other-secret", '
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace("env = { ", f"env = {{ {more}"))
    with sandbox.running() as run:
        run.until("Spawning -> Running")
        begun(sandbox)
        told = sandbox.call("attach", "agent:talks", "--exec")
    assert "of-the-agent" not in told.stdout + told.stderr
    worktree = tmp_path / ".lifefold" / "sandbox.db.files" / "worktrees" / "talks"
    assert (worktree / "login").read_text() == "sk-of-the-agent \n"


def test_the_end_of_the_program_is_that_of_the_command(tmp_path: Path) -> None:
    """A program that fails by hand makes the command fail with 1, and the agent stays paused."""
    sandbox = talking(tmp_path, status=7)
    with sandbox.running() as run:
        run.until("Spawning -> Running")
        begun(sandbox)
        assert "gives it back" in sandbox.call("attach", "agent:talks", "--exec", code=1).stdout
        (found,) = sandbox.json("status")["agents"]
        assert found["desired_state"] == "Pause"


def test_a_session_without_a_runner_is_not_attached(tmp_path: Path) -> None:
    """Its process still works at the conversation. When the process is gone, the conversation is attached."""
    sandbox = talking(tmp_path)
    with sandbox.running() as run:
        run.until("Spawning -> Running")
        begun(sandbox)
        run.process.kill()
        run.process.wait()
    pid = (tmp_path / "counts" / "pid").read_text().strip()
    refused = sandbox.call("attach", "agent:talks", code=2).stderr
    assert f"talks: the session still runs as process {pid}, without a runner" in refused
    sandbox.kill_all()
    assert "is paused already" in sandbox.call("attach", "agent:talks").stdout


TALKER = AgentPlan("ann", talks=Talks(chooses=False, resumes=True))


def unchanged(log: FleetLog) -> FleetLog:
    """Let nothing happen."""
    return log


def claimed(log: FleetLog) -> FleetLog:
    """Let ann claim T1, and not know of it yet."""
    return log.claimed("T1")


def assigned(log: FleetLog) -> FleetLog:
    """Give T1 to ann, who has not begun a session at it."""
    log.reported("worker/ann", "session", session.WorktreeReady())
    return log.happens("worker/ann", "assignment", assignment.Assigned(Brief("T1", 1, "do it")))


@pytest.mark.parametrize(
    ("made", "name", "what"),
    [
        (claimed, "agent:bob", "bob is no agent program with conversations"),
        (unchanged, "ann", "ann has no task now"),
        (assigned, "ann", "ann has not begun its conversation about T1 yet"),
        (unchanged, "T1", "no agent has the task T1 now"),
        (unchanged, "web", "web is a service"),
        (unchanged, "bob", "accepted: agent:bob for the agent, task:bob for the task"),
        (unchanged, "task:bo", "there is no task 'bo'; did you mean bob?"),
        (unchanged, "agent:bo", "there is no agent 'bo'; did you mean bob?"),
        (unchanged, "anne", "there is no agent or task 'anne'; did you mean ann?"),
    ],
    ids=["command", "idle", "not-begun", "open", "service", "two-meanings", "no-task", "no-agent", "unknown"],
)
def test_an_agent_without_a_conversation_is_refused_before_it_is_paused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    made: Callable[[FleetLog], FleetLog],
    name: str,
    what: str,
) -> None:
    """Exit code 2, with what is accepted; nothing is written."""
    log = tmp_path / "fleet.db"
    tasks = (TaskPlan("T1", "do it"), TaskPlan("bob", "do it"))
    made(FleetLog(log, *tasks, agents=(TALKER, AgentPlan("bob")), services=(ServicePlan("web"),)))
    assert main(["attach", name, "--db", str(log)]) == 2
    error = capsys.readouterr().err
    assert what in error
    assert "accepted: " in error or "did you mean" in error
    assert said(log) == []
