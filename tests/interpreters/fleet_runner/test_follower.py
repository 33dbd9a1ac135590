"""Sessions of real processes are followed: their facts are in the log once, and their claims are turns."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from agent_recordings import FOLDER, recordings
from fleet_sandbox import HANG_S, Sandbox
from lifefold.core.fleet.worker.output import Doing, Output, State, Work, WorkSeen
from lifefold.core.kernel import Aggregate, Entity, Event, PersistentMap
from lifefold.core.lifecycles import session
from lifefold.effects import Begin, FollowOutput
from lifefold.interpreters.adapters import Adapter, Now, WorkEnded, WorkStarted, adapter_of, adapter_or_command
from lifefold.interpreters.adapters.command import Command
from lifefold.interpreters.engine import ActivityContext, EffectContext
from lifefold.interpreters.fleet_runner.facts_seen import FactsSeen
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.follower import AdapterFailed, Follower, follow
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.processes import SessionSpec
from lifefold.interpreters.processes.growing_output import GrowingOutput
from lifefold.interpreters.processes.session_files import write_spec
from lifefold.interpreters.processes.shim.output import OutputLog
from program_sandbox import ProgramSandbox

AGENT: Final = r"""
import os, pathlib, sys, time

counts = pathlib.Path(os.environ["COUNTS"])
for number in (1, 2):
    print('{"type": "thread.started", "thread_id": "t-%d"}' % number, flush=True)
    while not (counts / f"go-{number}").exists():
        time.sleep(0.05)
pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".txt").write_text("done")
"""


def sandbox(folder: Path) -> Sandbox:
    """Return a fleet whose session names its conversation, and waits until it may go on."""
    of = Sandbox(folder).prepare("plain-1", repository=False, timeout=f"{HANG_S}s")
    (folder / "agent.py").write_text(AGENT)
    return of


def go(of: Sandbox, *steps: int) -> None:
    """Let the session go on after its first and its second conversation."""
    for step in steps:
        (of.folder / "counts" / f"go-{step}").touch()


def agent_of(of: Sandbox) -> Any:
    """Return what is known of the agent."""
    (agent,) = of.json("status")["agents"]
    return agent


def until(of: Sandbox, is_so: Callable[[Any], bool]) -> Any:
    """Return what is known of the agent as soon as it is so."""
    found: Any = None
    for _ in range(HANG_S * 5):
        found = agent_of(of)
        if is_so(found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"it is never so: {found}")


def has_named(conversation: str, agent: Any) -> bool:
    """Tell whether the session was heard to name this conversation."""
    return bool(agent["turn"] and agent["turn"]["conversation"] == conversation)


def moves(of: Sandbox, machine: str, *, every: bool = False) -> list[str]:
    """Return the states that an entity of the worker has entered; with ``every``, the names of all its events."""
    found = json.loads(of.call("log", "--agent", "agent", "--json").stdout)
    mine = [each for each in found if each["entity_type"] == machine]
    return [each["metadata"]["event"] for each in mine] if every else [each["to_status"] for each in mine]


def test_a_claim_is_a_turn_and_its_session_is_followed(tmp_path: Path) -> None:
    """While it runs, status shows the phase, the looks and the words of the documents."""
    of = sandbox(tmp_path)
    with of.running() as run:
        run.until("SessionStarted")
        agent = until(of, partial(has_named, "t-1"))
        shown = of.call("status").stdout
        go(of, 1, 2)
        run.rest()
    assert (agent["turn"]["state"], agent["turn"]["task"], agent["turn"]["number"]) == ("RUNNING", "plain-1", 1)
    assert agent["appearance"] == {"lifecycle": "working", "status": "RUNNING", "word": "working", "launched_ms": 0}
    assert (agent["looks"]["state"], agent["looks"]["indicator"]) == ("RUNNING", "●")
    assert "● running" in shown
    assert "TURN" in shown
    assert moves(of, "turn") == [
        "IDLE", "CLAIMING", "SPAWNING", "RUNNING", "VERIFYING", "COMPLETING", "REAPED"
    ]  # fmt: skip
    assert agent_of(of)["looks"]["state"] == "DEAD"


def test_a_runner_that_comes_back_reads_the_output_again_and_reports_nothing_twice(tmp_path: Path) -> None:
    """The session outlives the first runner; the second one adopts it."""
    of = sandbox(tmp_path)
    with of.running() as run:
        run.until("SessionStarted")
        until(of, partial(has_named, "t-1"))
        run.process.kill()
        run.rest()
    assert agent_of(of)["looks"]["state"] == "RUNNING"
    with of.running() as run:
        run.until("continuing")
        go(of, 1)
        until(of, partial(has_named, "t-2"))
        go(of, 2)
        run.rest()
    events = moves(of, "output", every=True)
    assert events.count("ConversationSeen") == 2
    assert events.count("SessionRuns") == 1
    assert moves(of, "turn")[-1] == "REAPED"


SLOW: Final = """#!/bin/sh
head -n {shown} {output}
while [ ! -e {counts}/go-1 ]; do sleep 0.05; done
tail -n +{rest} {output}
echo done > "$LIFEFOLD_TASK".txt
"""


def lines_until_a_tool(kind: str) -> int:
    """Return after how many lines of a recording a tool is in use."""
    adapter, under_way = adapter_of(kind), set[str]()
    state = adapter.initial
    for number, line in enumerate(recordings(kind)["written"].output.splitlines(), 1):
        state, facts = adapter.read(state, line, Now(0))
        for fact in facts:
            if isinstance(fact, WorkStarted):
                under_way.add(fact.id)
            elif isinstance(fact, WorkEnded):
                under_way.discard(fact.id)
        if under_way:
            return number
    raise AssertionError(f"{kind} shows no tool while it is used")


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_a_tool_of_an_agent_program_is_a_phase_of_its_turn(tmp_path: Path, kind: str) -> None:
    """While the tool is used, status and why name it."""
    of, shown, counts = ProgramSandbox(tmp_path), lines_until_a_tool(kind), tmp_path / "counts"
    script = SLOW.format(shown=shown, rest=shown + 1, output=FOLDER / kind / "written.txt", counts=counts)
    of.cast(of.agent(kind, "agent", script=script))
    with of.running() as run:
        run.until("SessionStarted")
        turn = until(of, lambda agent: agent["turn"] and agent["turn"]["state"] == "TOOL_USE")["turn"]
        why = of.call("why", "agent").stdout
        go(of, 1)
        run.rest()
    assert turn["tools"] == 1
    assert f"; agent uses a tool ({turn['doing'][0]})" in why
    assert moves(of, "turn") == [
        "IDLE", "CLAIMING", "SPAWNING", "RUNNING", "TOOL_USE", "RUNNING", "VERIFYING", "COMPLETING", "REAPED"
    ]  # fmt: skip


class Told(ActivityContext):
    """An activity that notes what is reported."""

    def __init__(self, folder: FleetFolder | None = None, *, cleanup_only: bool = False) -> None:
        del folder
        within = Aggregate(
            "worker/ann",
            entities=PersistentMap(
                {
                    "output": Entity("output", Output(State.FOLLOWED)),
                    "session": Entity("session", session.Session(attempt=1)),
                }
            ),
        )
        begin = Begin("FollowOutput", FollowOutput())
        super().__init__(begin, EffectContext(within, "output", 1, 0), cleanup_only=cleanup_only)
        self.said: list[Event] = []
        self.heard = anyio.Event()

    async def report(self, event: Event) -> bool:
        self.said.append(event)
        self.heard.set()
        self.heard = anyio.Event()
        return True


USE: Final = (
    b'{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}'
)


def test_a_tool_in_use_is_reported_while_it_is_used(tmp_path: Path) -> None:
    """Without the end of a line there is no fact yet."""
    log, told = OutputLog(str(tmp_path), 1_000_000), Told()
    seen = FactsSeen(adapter_of("claude"), told.origin.entity.record)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, GrowingOutput(tmp_path), seen, told)
            log.write(USE)
            heard = told.heard
            log.write(b"\n")
            with anyio.fail_after(HANG_S):
                await heard.wait()
            tasks.cancel_scope.cancel()

    anyio.run(run)
    log.finish()
    assert [(each.works, each.tools) for each in told.said if isinstance(each, WorkSeen)] == [
        ((Doing(Work.TOOL, "Bash"),), 1)
    ]


class Broken(Command):
    """An adapter with a mistake."""

    def read(self, state: Any, line: bytes, now: Any) -> Any:
        del state, line, now
        raise LookupError("no such key")


def test_an_adapter_with_a_mistake_ends_the_reading_and_nothing_else(tmp_path: Path) -> None:
    """The error says where it comes from."""
    log = OutputLog(str(tmp_path), 1_000_000)
    log.write(b"hello\n")
    log.finish()
    broken: Adapter[Any] = Broken()
    told = Told()
    seen = FactsSeen(broken, told.origin.entity.record)
    with pytest.raises(AdapterFailed, match="no such key"):
        anyio.run(follow, GrowingOutput(tmp_path), seen, told)


@pytest.mark.parametrize(("began", "tools"), [("claude", ["Bash"]), ("", [])])
def test_a_session_is_read_by_the_adapter_with_which_it_began(tmp_path: Path, began: str, tools: list[str]) -> None:
    """The agent may be of another kind since, and so may be one that was a command."""
    folder, told = FleetFolder(tmp_path / "log.db"), Told()
    spec = SessionSpec(argv=("agent",), cwd=".", env={}, generation=1, kind=began)
    write_spec(folder.next_start("ann", 1), spec, lease_until_boot_ms=None)
    log = OutputLog(str(folder.last_start("ann", 1)), 1_000_000)
    log.write(USE + b"\n" + b'{"type": "thread.started", "thread_id": "t-1"}\n')
    follower = Follower(folder, lambda _agent: "codex" if began else "claude", Notices())

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            heard = told.heard
            tasks.start_soon(follower.follow_output, FollowOutput(), told)
            with anyio.fail_after(HANG_S):
                await heard.wait()
            tasks.cancel_scope.cancel()

    anyio.run(run)
    log.finish()
    assert [doing.name for each in told.said if isinstance(each, WorkSeen) for doing in each.works] == tools


def test_a_follower_begins_nothing_only_to_clean_up(tmp_path: Path) -> None:
    """A file needs no end."""
    follower = Follower(FleetFolder(tmp_path / "log.db"), lambda _agent: "", Notices())
    told = Told(cleanup_only=True)
    anyio.run(partial(follower.follow_output, FollowOutput(), told))
    assert not told.said


@pytest.mark.parametrize(("kind", "name"), [("claude", "claude"), ("python", "command"), ("", "command")])
def test_an_agent_is_read_by_the_adapter_of_its_kind(kind: str, name: str) -> None:
    """Any other is a plain command."""
    assert adapter_or_command(kind).name == name
