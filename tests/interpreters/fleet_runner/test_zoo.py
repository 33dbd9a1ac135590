"""Agents that do what no agent should, as real processes: each has a defined end, and harms no other process.

A task is called after what is done by its first session; the next one does the work, and has its prompt for it.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from back_ends import on_asyncio, on_trio
from fleet_operator import run, when
from fleet_sandbox import Sandbox
from lifefold.core.lifecycles import task
from lifefold.interpreters.fleet_runner import Runner, Verdict
from lifefold.interpreters.fleet_runner.folder import FleetFolder

ZOO: Final = r"""
import os, pathlib, signal, sys, time

name, worktree = os.environ["LIFEFOLD_TASK"], pathlib.Path.cwd()
counts = pathlib.Path(os.environ["COUNTS"])
with (counts / name).open("a") as file:
    file.write(f"{os.environ['LIFEFOLD_AGENT']}\n")
prompt = pathlib.Path(sys.argv[1]).read_text()
first = "failed" not in prompt
match name.partition("-")[0] if first else "":
    case "crash":
        os.abort()
    case "hang":
        time.sleep(600)
    case "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    case "fork":
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    case "flood":
        while not (counts / "enough").exists():
            os.write(1, b"x" * 65_536)
            os.write(2, b"\xff\x00" * 32_768)
    case "mute":
        os.close(0), os.close(1), os.close(2)
        (counts / "muted").open("w").close()
    case "lie":
        print("all done, every test passes")
        sys.exit(0)
    case "same":
        (counts / "meeting").open("w" if name.endswith("1") else "r").close()
    case "garbage":
        os.write(1, (counts / f"{name}.garbage").read_bytes())
if name.startswith("same"):
    with open("README", "a") as file:
        file.write(name + "\n")
pathlib.Path(name + ".txt").write_text(prompt)
"""

LIMIT_BYTES: Final = 64_000


def kept(sandbox: Sandbox, *tasks: str, **options: Any) -> Sandbox:
    """Return the sandbox with a fleet of such agents."""
    sandbox.prepare(*tasks, **options)
    (sandbox.folder / "agent.py").write_text(ZOO)
    head = sandbox.fleet.read_text()
    sandbox.fleet.write_text(
        head.replace('grace = "300ms"', f'grace = "300ms"\noutput_limit = "{LIMIT_BYTES // 1000}kB"')
    )
    return sandbox


def alone(_runner: Runner) -> None:
    """Leave a fleet to itself."""


def ends_well(sandbox: Sandbox, backend: str, arrange: Any = alone) -> None:
    """Run the fleet, which must close all its tasks, merge each once, and leave no process."""
    assert anyio.run(partial(run, sandbox, arrange), backend=backend) is Verdict.ALL_CLOSED
    names = sorted(each["id"] for each in sandbox.json("tasks"))
    assert sorted(subject.split()[1].rstrip(":") for subject in sandbox.merges()) == names
    assert sandbox.processes() == []


def told(sandbox: Sandbox, name: str) -> str:
    """Return the prompt of the session whose work was merged."""
    return sandbox.git("show", f"main:{name}.txt")


@on_trio
@pytest.mark.parametrize(
    ("name", "reason"),
    [("crash-1", "signal 6"), ("hang-1", "time"), ("deaf-1", "time"), ("lie-1", "test -s lie-1.txt")],
)
def test_whatever_ends_a_session_the_next_one_is_told_why_and_does_the_work(
    sandbox: Sandbox, backend: str, name: str, reason: str
) -> None:
    """A crash, a hang, one deaf to TERM, and one that says it is done and is not: one more session, one merge."""
    timeout = "3s" if name in {"hang-1", "deaf-1"} else "60s"
    ends_well(kept(sandbox, name, timeout=timeout), backend)
    assert sandbox.sessions(name) == 2
    assert reason.lower() in told(sandbox, name).lower()


@on_asyncio
def test_a_child_that_escapes_by_forking_twice_is_gone_when_the_session_is(sandbox: Sandbox, backend: str) -> None:
    """The work is taken at its first session, and nothing of it goes on."""
    ends_well(kept(sandbox, "fork-1"), backend)
    assert sandbox.sessions("fork-1") == 1


@on_trio
def test_a_flood_of_output_is_bounded_on_disk_and_the_others_go_on_meanwhile(sandbox: Sandbox, backend: str) -> None:
    """It floods until the other agent's task is merged: a runner that it kept from its work would never come there."""
    kept(sandbox, "flood-1", "plain-2", agents=2)

    def arrange(runner: Runner) -> None:
        when(runner, "task:plain-2", task.State.CLOSED, lambda _: (sandbox.folder / "counts" / "enough").touch())

    ends_well(sandbox, backend, arrange)
    logs = list((FleetFolder(sandbox.log).root / "sessions").rglob("output.log"))
    assert len(logs) == 2
    assert LIMIT_BYTES <= max(each.stat().st_size for each in logs) < LIMIT_BYTES + 200
    assert sandbox.sessions("flood-1") == 1


@on_asyncio
def test_an_agent_that_closes_its_output_and_goes_on_is_waited_for(sandbox: Sandbox, backend: str) -> None:
    """That its output has ended is no end of it."""
    os.mkfifo((kept(sandbox, "mute-1", "plain-2", agents=2).folder / "counts") / "muted")

    def arrange(runner: Runner) -> None:
        # A task with all parts closed gets here. It goes on when the work of another agent is merged.
        when(
            runner,
            "task:plain-2",
            task.State.CLOSED,
            lambda _: _open_later(runner, sandbox.folder / "counts" / "muted"),
        )

    ends_well(sandbox, backend, arrange)
    assert sandbox.sessions("mute-1") == 1


def _open_later(runner: Runner, fifo: Path) -> None:
    async def opened() -> None:
        async with await anyio.open_file(fifo):
            pass

    runner.engine.spawn(opened)


@on_trio
def test_an_agent_that_has_ended_before_it_can_be_said_to_have_started_is_an_error_like_any_other(
    sandbox: Sandbox, backend: str
) -> None:
    """The shortest program there is; then the work is done."""
    kept(sandbox, "quick-1")
    shell = '[ -e "$COUNTS/tried" ] && exec "$0" "$@"; : > "$COUNTS/tried"; exit 3'
    text = sandbox.fleet.read_text().replace("command = [", f'command = ["sh", "-c", {shell!r}, ', 1)
    sandbox.fleet.write_text(text)
    ends_well(sandbox, backend)
    assert sandbox.sessions("quick-1") == 1
    assert "exit status 3" in sandbox.call("log").stdout


@on_asyncio
def test_two_neighbours_that_change_the_same_line_are_merged_one_after_the_other_and_no_commit_is_lost(
    sandbox: Sandbox, backend: str
) -> None:
    """The second to come is a conflict, a failure with a reason: it begins anew from what the first has merged."""
    os.mkfifo((kept(sandbox, "same-1", "same-2", agents=2).folder / "counts") / "meeting")
    ends_well(sandbox, backend)
    assert sandbox.git("show", "main:README").splitlines()[0] == "hello"
    assert sorted(sandbox.git("show", "main:README").splitlines()[1:]) == ["same-1", "same-2"]
    assert sandbox.sessions("same-1") + sandbox.sessions("same-2") == 3
    (again,) = [each for each in ("same-1", "same-2") if sandbox.sessions(each) == 2]
    assert "README" in told(sandbox, again)
    assert "conflict" in told(sandbox, again).lower()


GARBAGE: Final = {
    "bytes that are no text": b'\n{"lifefold": {"cost_usd": "\xff\xfe\x80"}}\n',
    "an enormous line": b'\n{"lifefold": {"cost_usd": 1' + b"0" * 3_000_000 + b"}}\n",
    "a line that never ends": b'\n{"lifefold": {"cost_usd": 0.1, "x": "' + b"y" * 100_000,
    "depth": b'\n{"lifefold": ' + b"[" * 20_000 + b"]" * 20_000 + b"}\n",
    "impossible numbers": b'\n{"lifefold": {"cost_usd": -1e999, "input_tokens": NaN, "output_tokens": -5}}\n',
    "other things": b'\n{"lifefold": [null, {"cost_usd": {}}]}\n{"type": "result", "usage": 7, "modelUsage": []}\n',
}


@on_trio
def test_nonsense_in_the_place_of_a_cost_costs_nothing_and_stops_no_agent(sandbox: Sandbox, backend: str) -> None:
    """Each task is done; what it has cost is not known, and everything that is shown can be shown."""
    names = [f"garbage-{number}" for number in range(len(GARBAGE))]
    kept(sandbox, *names)
    for name, garbage in zip(names, GARBAGE.values(), strict=True):
        (sandbox.folder / "counts" / f"{name}.garbage").write_bytes(garbage)
    ends_well(sandbox, backend)
    found = {each["id"]: (each["state"], each["cost_usd"]) for each in sandbox.json("tasks")}
    assert found == dict.fromkeys(names, ("CLOSED", None))
    assert [sandbox.sessions(name) for name in names] == [1] * len(names)
    assert "spent" not in sandbox.call("status").stdout
