"""Sessions of real processes are followed: their facts are in the log once, and their claims are turns."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from fleet_ground import HANG_S, Ground
from lifefold.core.fleet.worker.output import Doing, Output, State, Work, WorkSeen
from lifefold.core.kernel import Aggregate, Entity, Event, PersistentMap
from lifefold.core.lifecycles import session
from lifefold.effects import Begin, FollowOutput
from lifefold.interpreters.adapters import Adapter, adapter_of
from lifefold.interpreters.adapters.command import Command
from lifefold.interpreters.adapters.reading import Reading, Step
from lifefold.interpreters.engine import ActivityContext, EffectContext
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.follower import AdapterFailed, Follower, adapter_for, follow
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.processes.growing_output import GrowingOutput
from lifefold.interpreters.processes.shim.output import OutputLog

AGENT: Final = r"""
import os, pathlib, sys, time

counts = pathlib.Path(os.environ["COUNTS"])
for number in (1, 2):
    print('{"type": "thread.started", "thread_id": "t-%d"}' % number, flush=True)
    while not (counts / f"go-{number}").exists():
        time.sleep(0.05)
pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".txt").write_text("done")
"""


def ground(folder: Path) -> Ground:
    """Return a fleet whose session names its conversation, and waits until it may go on."""
    of = Ground(folder).prepare("plain-1", repository=False, timeout=f"{HANG_S}s")
    (folder / "agent.py").write_text(AGENT)
    return of


def go(of: Ground, *steps: int) -> None:
    """Let the session go on after its first and its second conversation."""
    for step in steps:
        (of.folder / "counts" / f"go-{step}").touch()


def agent_of(of: Ground) -> Any:
    """Return what is known of the agent."""
    (agent,) = of.json("status")["agents"]
    return agent


def until(of: Ground, is_so: Callable[[Any], bool]) -> Any:
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


def moves(of: Ground, machine: str, *, every: bool = False) -> list[str]:
    """Return the states that an entity of the worker has entered; with ``every``, the names of all its events."""
    found = json.loads(of.call("log", "--agent", "agent", "--json").stdout)
    mine = [each for each in found if each["entity_type"] == machine]
    return [each["metadata"]["event"] for each in mine] if every else [each["to_status"] for each in mine]


def test_a_claim_is_a_turn_and_its_session_is_followed(tmp_path: Path) -> None:
    """While it runs, status shows the phase, the looks and the words of the documents."""
    of = ground(tmp_path)
    with of.running() as run:
        run.until("SessionStarted")
        agent = until(of, partial(has_named, "t-1"))
        shown = of.call("status").stdout
        go(of, 1, 2)
        run.rest()
    assert (agent["turn"]["state"], agent["turn"]["task"], agent["turn"]["number"]) == ("RUNNING", "plain-1", 1)
    assert agent["appearance"] == {"lifecycle": "working", "status": "RUNNING", "word": "working", "launched_ms": 0}
    assert (agent["looks"]["state"], agent["looks"]["indicator"]) == ("RUNNING", "●")
    assert "● Running" in shown
    assert "TURN" in shown
    assert moves(of, "turn") == [
        "IDLE", "CLAIMING", "SPAWNING", "RUNNING", "VERIFYING", "COMPLETING", "REAPED"
    ]  # fmt: skip
    assert agent_of(of)["looks"]["state"] == "DEAD"


def test_a_runner_that_comes_back_reads_the_output_again_and_reports_nothing_twice(tmp_path: Path) -> None:
    """The session outlives the first runner; the second one adopts it."""
    of = ground(tmp_path)
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


def test_a_turn_that_fails_has_the_classification_of_its_session(tmp_path: Path) -> None:
    """It is in the log, and in the status of the agent."""
    of = Ground(tmp_path).prepare("plain-1", repository=False)
    (of.folder / "agent.py").write_text("import os, sys\nos.kill(os.getpid(), 9)\n")
    of.demand("plain-1", "max_retries = 0")
    of.run(1)
    turn = agent_of(of)["turn"]
    assert (turn["state"], turn["transition_reason"], turn["abort_reason"]) == ("REAPED", "retry", "oom")
    assert moves(of, "turn")[-2:] == ["FAILED", "REAPED"]


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

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, GrowingOutput(tmp_path), adapter_of("claude"), told)
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

    def read(self, state: Reading, line: bytes, now: Any) -> Step:
        del state, line, now
        raise LookupError("no such key")


def test_an_adapter_with_a_mistake_ends_the_reading_and_nothing_else(tmp_path: Path) -> None:
    """The error says where it comes from."""
    log = OutputLog(str(tmp_path), 1_000_000)
    log.write(b"hello\n")
    log.finish()
    broken: Adapter[Any] = Broken()
    with pytest.raises(AdapterFailed, match="no such key"):
        anyio.run(follow, GrowingOutput(tmp_path), broken, Told())


def test_a_follower_begins_nothing_only_to_clean_up(tmp_path: Path) -> None:
    """A file needs no end."""
    follower = Follower(FleetFolder(tmp_path / "log.db"), lambda _agent: "", Notices())
    anyio.run(partial(follower.follow_output, FollowOutput(), Told(cleanup_only=True)))


@pytest.mark.parametrize(("kind", "name"), [("claude", "claude"), ("python", "command"), ("", "command")])
def test_an_agent_is_read_by_the_adapter_of_its_kind(kind: str, name: str) -> None:
    """Any other is a plain command."""
    assert adapter_for(kind).name == name
