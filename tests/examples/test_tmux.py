"""The example of agents in tmux: users can watch, a crash loses no session, and an ended session leaves no process."""

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import monotonic
from uuid import uuid4

import pytest

from example_commands import EXAMPLES
from examples.tmux import MARK, Tmux
from fleet_bench import FleetBench
from fleet_sandbox import HANG_S, Sandbox
from lifefold.effects import CancelSession, ForceStopSession, RunSession
from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.testing import Bench, InterpreterConformance
from session_scripts import processes_about

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed here")


@pytest.fixture
def server() -> Generator[str]:
    """Return the name of a server of tmux; whatever a test has left there is ended."""
    name = f"lifefold-{uuid4().hex[:12]}"
    yield name
    tmux(name, "kill-server")
    (Path(os.environ.get("TMUX_TMPDIR", "/tmp")) / f"tmux-{os.getuid()}" / name).unlink(missing_ok=True)  # noqa: S108 - tmux's own place


def tmux(server: str, *words: str) -> list[str]:
    """Return the lines that tmux says to a command; none if there is no such server."""
    command = [str(shutil.which("tmux")), "-L", server, *words]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines()


def windows(server: str, what: str = "#{session_name}") -> list[str]:
    """Return what tmux says of the sessions that are there."""
    return tmux(server, "list-panes", "-a", "-F", what)


def environment(pid: int) -> bytes:
    """Return the environment of a process that may have gone."""
    try:
        return proc.read_bytes(f"/proc/{pid}/environ")
    except OSError:
        return b""


class TmuxBench(FleetBench):
    """The bench, with a look at tmux."""

    def __init__(self, folder: Path, server: str) -> None:
        super().__init__(folder, lambda around: Tmux(around, server))
        self.server = server
        mine = (RunSession, CancelSession, ForceStopSession)
        self.examples = [each for each in self.examples if isinstance(each.what, mine)]

    async def look(self) -> object:
        """Return what is there; the server of tmux itself may go a moment after its last session."""
        alive = {pid for pid in processes_about(self.folder) if f"{MARK}=".encode() in environment(pid)}
        return windows(self.server), alive


@pytest.fixture
def bench(tmp_path: Path, server: str) -> Bench:
    return TmuxBench(tmp_path, server)


class TestAgentsInTmux(InterpreterConformance):
    """Every check of the kit, with what runs in tmux."""


@pytest.fixture
def sandbox(tmp_path: Path) -> Generator[Sandbox]:
    """Return a sandbox where the example lies, to be prepared ``in_tmux``."""
    (tmp_path / "tmux.py").write_text((EXAMPLES / "tmux.py").read_text())
    sandbox = Sandbox(tmp_path)
    yield sandbox
    sandbox.kill_all()


def in_tmux(sandbox: Sandbox, server: str, *tasks: str, gates: tuple[str, ...] = (), timeout: str = "60s") -> Sandbox:
    """Prepare a fleet of one agent whose sessions run in tmux."""
    sandbox.prepare(*tasks, gates=gates, timeout=timeout)
    entry = f'[[interpreters]]\nuse = "tmux:Tmux"\nserver = "{server}"\n'
    sandbox.fleet.write_text(sandbox.fleet.read_text() + entry)
    return sandbox


@pytest.mark.parametrize(
    ("tasks", "timeout"),
    [
        ({"one": 1, "crash-two": 2, "child-three": 1}, "60s"),
        pytest.param({"deaf-one": 2, "hang-two": 2}, "3s", marks=pytest.mark.campaign),
    ],
    ids=["ending", "timed out"],
)
def test_agents_work_in_windows_and_no_end_leaves_anything(
    sandbox: Sandbox, server: str, tasks: dict[str, int], timeout: str
) -> None:
    """Who crashes, leaves a child behind, takes too long or does not listen is dealt with as in any fleet."""
    in_tmux(sandbox, server, *tasks, timeout=timeout)
    said = sandbox.run()
    assert ("exit status 1: I crash" in said) == ("crash-two" in tasks)
    assert ("SessionExited: Timeout" in said) == ("deaf-one" in tasks)
    assert {task: sandbox.sessions(task) for task in tasks} == tasks
    assert len(sandbox.merges()) == len(tasks)
    assert (windows(server), sandbox.processes()) == ([], [])


@contextmanager
def killed_at_work(sandbox: Sandbox, server: str) -> Generator[str]:
    """Kill a runner whose agent stands at its gate; give the session's name and process, which goes on afterwards."""
    of = "#{session_name} #{pane_pid} #{pane_dead}"
    with sandbox.running() as run, sandbox.at_gate("one"):
        run.until("one", "IN_PROGRESS")
        (before,) = windows(server, of)
        run.signal(signal.SIGKILL)
        run.rest()
        assert windows(server, of) == [before]
        yield before


def wait_for(is_so: Callable[[], bool]) -> None:
    """Ask until it is so, and not for ever."""
    until_s = monotonic() + HANG_S
    while not is_so():
        assert monotonic() < until_s


def entries(sandbox: Sandbox) -> int:
    """Return how long the log is; a runner that goes on with it writes so into it."""
    with closing(sqlite3.connect(sandbox.log, timeout=HANG_S)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
        return int(count)


def test_a_session_is_found_again_after_a_crash(sandbox: Sandbox, server: str) -> None:
    """Nothing is started twice: the next runner waits for the very process that the last one has started."""
    in_tmux(sandbox, server, "one", gates=("one",))
    with ExitStack() as opened:
        with killed_at_work(sandbox, server) as session:
            before = entries(sandbox)
            run = opened.enter_context(sandbox.running())
            wait_for(lambda: entries(sandbox) != before)
        said = run.rest()
    assert "-agent-1 " in session
    assert "continuing: 1 session adopted, 1 task in progress" in said
    assert "1 of 1 tasks closed" in said
    assert sandbox.sessions("one") == 1
    assert (windows(server), sandbox.processes()) == ([], [])


def test_a_session_that_ended_without_a_runner_is_not_lost(sandbox: Sandbox, server: str) -> None:
    """How it ended is kept by tmux, and the next runner takes it from there."""
    in_tmux(sandbox, server, "one", gates=("one",))
    with killed_at_work(sandbox, server):
        pass
    wait_for(lambda: windows(server, "#{pane_dead}") == ["1"])
    assert "1 of 1 tasks closed" in sandbox.run()
    assert sandbox.sessions("one") == 1
    assert (windows(server), sandbox.processes()) == ([], [])


def test_leaving_ends_what_runs_and_the_next_run_goes_on(sandbox: Sandbox, server: str) -> None:
    """Ctrl-C interrupts a session; one that is stopped for good is over as well."""
    in_tmux(sandbox, server, "slow-one")
    with sandbox.running() as run:
        run.until("slow-one", "IN_PROGRESS")
        run.signal(signal.SIGINT)
        assert "left before the end" in run.rest()
    assert (windows(server), sandbox.processes()) == ([], [])
    with sandbox.running() as run:
        run.until("agent", "Spawning -> Running")
        sandbox.call("stop", "agent")
        run.rest()
    assert (windows(server), sandbox.processes()) == ([], [])
