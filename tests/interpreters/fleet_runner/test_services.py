"""Services of real processes: what triggers them is run in its order, once, and who is stopped runs nothing more."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fleet_sandbox import HANG_S, Sandbox
from lifefold.interpreters.fleet_runner import Verdict

SERVICE: Final = r"""
import os, pathlib, sys, time

out = pathlib.Path(os.environ["OUT"])
text = sys.argv[1]
with (out / "runs").open("a") as file:
    file.write(f"{os.environ['LIFEFOLD_TRIGGER']} {text}\n")
behaviour = text.partition(" ")[0]
gate = out / "gate"
if behaviour == "slow" and gate.exists():
    gate.open().read()
if behaviour == "fail":
    sys.exit("I fail")
with (out / "ends").open("a") as file:
    file.write(f"{text}\n")
"""

FLEET: Final = """
[[agents]]
name = "web"
kind = "service"
command = ["{python}", "{folder}/service.py", "{{prompt}}"]
env = {{ OUT = "{folder}/out" }}
triggers = [{triggers}]
session_timeout = "60s"
grace = "300ms"
"""

QUEUE: Final = "{ queue = true }"


def sandbox(folder: Path, *tasks: str, triggers: str = QUEUE, more: str = "") -> Sandbox:
    """Return a fleet with one service, and with agents that do these tasks, if there are any."""
    of = Sandbox(folder).prepare(*tasks)
    (folder / "service.py").write_text(SERVICE)
    (folder / "out").mkdir()
    text = of.fleet.read_text()
    if not tasks:
        text = text[: text.index("[[agents]]")]
    of.fleet.write_text(text + FLEET.format(python=sys.executable, folder=folder, triggers=triggers) + more)
    return of


def runs(of: Sandbox, name: str = "runs") -> list[str]:
    """Return what was run, in its order; with the name ``ends``, what of it has come to a good end."""
    file = of.folder / "out" / name
    return file.read_text().splitlines() if file.exists() else []


def send(of: Sandbox, *texts: str) -> None:
    """Send messages, one after the other."""
    for text in texts:
        assert of.call("send", "web", text, "--db", str(of.log)).returncode == 0


def test_messages_are_run_in_their_order_each_once_and_the_fleet_ends_when_it_is_said(tmp_path: Path) -> None:
    """It takes no tasks; the present run ends first."""
    of = sandbox(tmp_path)
    with of.running("--watch") as run:
        run.until("more may come")
        send(of, "one", "two", "three")
        run.until("Invoked: three")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert runs(of) == ["message one", "message two", "message three"]
    assert run.process.returncode == 0
    assert of.processes() == []


def test_an_interval_is_run_time_and_again_beside_tasks_and_ends_with_them(tmp_path: Path) -> None:
    """The service takes no task; when all are settled it is sent home, and nothing of it is left."""
    of = sandbox(tmp_path, "T-1", triggers='{ every = "1s" }')
    with of.running("--watch") as run:
        for _ in range(3):
            run.until("invocation web", "Running -> Idle")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert set(runs(of)) == {"interval every 1s"}
    assert len(runs(of)) >= 3
    assert of.agents_of("T-1") == ["agent"]
    assert run.process.returncode == 0
    assert of.processes() == []


def test_a_fleet_that_is_not_watched_ends_with_its_tasks_and_its_services_with_it(tmp_path: Path) -> None:
    """Without ``--watch`` no command is needed."""
    of = sandbox(tmp_path, "T-1", triggers='{ every = "1h" }')
    of.run()
    assert runs(of) == []
    assert of.processes() == []


def test_a_run_of_a_removed_service_is_adopted_by_the_next_runner_and_ends(tmp_path: Path) -> None:
    """The next runner has no service of that name in its file: the run ends by itself, and nothing else is run."""
    of = sandbox(tmp_path, "plain-1")
    gate = tmp_path / "out" / "gate"
    os.mkfifo(gate)
    with of.running("--watch") as run:
        run.until("task plain-1", "CLOSED")
        send(of, "slow one")
        run.until("invocation web", "Spawning -> Running")
        text = of.fleet.read_text()
        of.fleet.write_text(text[: text.index('\n[[agents]]\nname = "web"')])
        assert "change 1: accepted" in of.call("plan", str(of.fleet), "--accept", "--db", str(of.log)).stdout
        run.process.kill()
        run.rest()
    with of.running("--watch") as run:
        run.until("1 session adopted")
        with gate.open("wb"):
            gate.unlink()
        run.until("invocation web", "Running -> Idle")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert run.process.returncode == 0
    assert runs(of, "ends") == ["slow one"]


def test_a_runner_that_is_killed_loses_no_message_and_runs_none_twice(tmp_path: Path) -> None:
    """The run in flight is adopted, what waits is run by the next runner, and what comes meanwhile, too."""
    of = sandbox(tmp_path)
    gate = tmp_path / "out" / "gate"
    os.mkfifo(gate)
    with of.running("--watch") as run:
        run.until("more may come")
        send(of, "slow one", "two")
        run.until("Spawning -> Running")
        run.process.kill()
        run.rest()
    send(of, "three")
    with of.running("--watch") as run:
        run.until("1 session adopted")
        with gate.open("wb"):
            gate.unlink()
        run.until("Invoked: three")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert runs(of) == ["message slow one", "message two", "message three"]
    assert runs(of, "ends") == ["slow one", "two", "three"]


def test_a_service_that_is_stopped_ends_its_run_and_runs_nothing_more(tmp_path: Path) -> None:
    """What waits is given back to people, and who writes later is refused."""
    of = sandbox(tmp_path)
    os.mkfifo(tmp_path / "out" / "gate")
    with of.running("--watch") as run:
        run.until("more may come")
        send(of, "slow one", "two")
        run.until("Spawning -> Running")
        of.call("stop", "web", "--db", str(of.log))
        told = run.rest()
    assert runs(of) == ["message slow one"]
    assert "message 'two' was not run: stopped by the operator" in told
    assert of.processes() == []
    refused = of.call("send", "web", "three", "--db", str(of.log), code=2)
    assert "it has stopped, for good" in refused.stdout


def test_a_service_that_is_paused_runs_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    """Messages wait, and are run in their order then."""
    of = sandbox(tmp_path)
    with of.running("--watch") as run:
        run.until("more may come")
        of.call("pause", "web", "--db", str(of.log))
        send(of, "one", "two")
        (agent,) = of.json("status", "--db", str(of.log))["agents"]
        assert (agent["state"], agent["messages"], agent["sessions"]) == ("suspended", 2, 0)
        told = of.call("why", "web", "--db", str(of.log)).stdout
        assert re.search(r"web is suspended for \d+ s \(manual\)\.\nWhat waits to be run: 'one' and 'two'\n", told)
        assert "lifefold resume web" in told
        of.call("resume", "web", "--db", str(of.log))
        run.until("Invoked: two")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert runs(of) == ["message one", "message two"]


def test_a_runner_that_leaves_lets_the_run_end_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """No message is run twice, and none is lost."""
    of = sandbox(tmp_path)
    gate = tmp_path / "out" / "gate"
    os.mkfifo(gate)
    with of.running("--watch") as run:
        run.until("more may come")
        send(of, "slow one", "two")
        run.until("Spawning -> Running")
        run.signal(signal.SIGINT)
        run.until("leaving")
        with gate.open("wb"):
            gate.unlink()
        run.rest()
    assert runs(of, "ends") == ["slow one"]
    with of.running("--watch") as run:
        run.until("Invoked: two")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert runs(of, "ends") == ["slow one", "two"]


@pytest.mark.parametrize("again", [signal.SIGHUP, signal.SIGTERM], ids=lambda number: number.name)
def test_a_closed_terminal_makes_the_runner_leave_and_another_signal_ends_the_run(
    tmp_path: Path, again: signal.Signals
) -> None:
    """The run is waited for, although the output has no reader any more, until an operator ends the wait."""
    of = sandbox(tmp_path)
    os.mkfifo(tmp_path / "out" / "gate")
    with of.running("--watch") as run:
        assert run.process.stdout is not None
        run.until("more may come")
        send(of, "slow one")
        run.until("Spawning -> Running")
        run.signal(signal.SIGHUP)
        run.until("leaving: sessions are asked to end")
        run.process.stdout.close()
        run.signal_again(again)
        assert run.process.wait(HANG_S) == Verdict.LEFT
    assert of.processes() == []
    assert runs(of, "ends") == []


def test_a_fleet_of_services_takes_no_tasks_and_a_service_without_a_queue_no_messages(tmp_path: Path) -> None:
    """The answer says so, and nothing has changed."""
    of = sandbox(tmp_path, triggers='{ every = "1h" }')
    with of.running("--watch") as run:
        run.until("more may come")
        told = of.call("task", "add", "--id", "T9", "--prompt", "do it", "--db", str(of.log), code=2)
        assert "this fleet has no agents" in told.stderr
        told = of.call("send", "web", "hello", "--db", str(of.log), code=2)
        assert "it takes no messages" in told.stdout
        assert "its interval, due in" in of.call("why", "web", "--db", str(of.log)).stdout
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert runs(of) == []


def test_a_service_is_run_for_files_that_change_also_while_no_runner_was_there(tmp_path: Path) -> None:
    """In its folder: the next runner finds the changes of the time without a runner, and they are one run."""
    of = sandbox(tmp_path, triggers='{ path = "inbox/" }')
    inbox = tmp_path / "repo" / "inbox"
    with of.running("--watch") as run:
        run.until("more may come")
        _until(of, lambda: "Noticed" in of.call("log", "--all", "--db", str(of.log)).stdout)
        inbox.mkdir()
        (inbox / "a.txt").write_text("a")
        run.until("invocation web", "Running -> Idle")
        run.process.kill()
        run.rest()
    before = len(runs(of))
    for name in ("b.txt", "c.txt"):
        (inbox / name).write_text("b")
    with of.running("--watch") as run:
        run.until("Invoked: changed inbox")
        run.until("invocation web", "Running -> Idle")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert set(runs(of)) == {"path changed inbox"}
    assert len(runs(of)) == before + 1
    assert of.processes() == []


def test_a_service_that_watches_where_its_log_is_does_not_trigger_itself(tmp_path: Path) -> None:
    """Changes by others trigger it. The files that the fleet writes for its runs do not."""
    of = sandbox(tmp_path, triggers=f'{{ path = "**/*" }}, {QUEUE}')
    of.log = tmp_path / "repo" / "run.db"
    with of.running("--watch", "--db", str(of.log)) as run:
        run.until("more may come")
        _until(of, lambda: "Noticed" in of.call("log", "--all", "--db", str(of.log)).stdout)
        for text in ("one", "two", "three"):
            send(of, text)
            run.until(f"Invoked: {text}")
            run.until("invocation web", "Running -> Idle")
        (tmp_path / "new.txt").write_text("new")
        (tmp_path / "new.txt").rename(tmp_path / "repo" / "new.txt")
        run.until("Invoked: changed **/*")
        run.until("invocation web", "Running -> Idle")
        send(of, "four")
        run.until("Invoked: four")
        of.call("finish", "--db", str(of.log))
        run.rest()
    assert runs(of) == [*(f"message {text}" for text in ("one", "two", "three")), "path changed **/*", "message four"]


def _until(of: Sandbox, holds: Callable[[], bool]) -> None:
    """Ask until it is so, or until the sandbox's patience is over."""
    gives_up_s = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < gives_up_s, of.log
