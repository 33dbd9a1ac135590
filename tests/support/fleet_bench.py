"""The bench for interpreters of a fleet: two agents at work in real places, one whose session ends and one whose hangs.

Worktrees are folders here: git has tests of its own.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from anyio.lowlevel import checkpoint

from lifefold.core import fleet
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Input, Refusal, World
from lifefold.core.lifecycles import session
from lifefold.effects import (
    CancelSession,
    CheckOutWork,
    DeliverNotification,
    ForceStopSession,
    HoldTimeLimit,
    IncrementSession,
    InspectWork,
    InterruptSession,
    LogFatal,
    MergeWork,
    Notification,
    NotificationKind,
    NotifyProcess,
    ParkWork,
    PauseTriggers,
    PrepareWorktree,
    ResumeTriggers,
    RunSession,
    SteerSession,
    StorePrompt,
    VerifyWork,
    WarnOfSilence,
    WatchBranch,
)
from lifefold.interpreters.engine import Interpreter
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import FleetFolder, RunContext
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.testing import Example
from lifefold.interpreters.worktrees.workplace import FolderWorkplace
from session_scripts import processes_about

FLEET: Final = """
[fleet]
name = "bench"

[[notify]]
name = "people"
on = ["closed"]
run = ["true"]

[[agents]]
name = "brief"
command = ["sh", "-c", "echo done"]

[[agents]]
name = "endless"
command = {hangs}

[[tasks]]
id = "T1"
prompt = "do it"

[[tasks]]
id = "T2"
prompt = "do it for ever"
"""

GRACE_MS: Final = 5_000

HANGS: Final = ("sh", "-c", "sleep 600 & sleep 600")
"""A command that does not end, and has a child that does not either."""

Make = Callable[[RunContext], object]
"""Makes what is to be looked at, to be laid over the standard interpreter."""


class FleetBench:
    """Handlers of a fleet, with an example of everything that a fleet asks for."""

    def __init__(self, folder: Path, make: Make | None = None) -> None:
        file = folder / "fleet.toml"
        file.write_text(FLEET.format(hangs=json.dumps(HANGS)))
        self.folder: Final = folder
        self.system: Final = fleet.system
        place = FolderWorkplace(folder / "work")
        for task in ("T1", "T2"):
            place.folder("", task).mkdir(parents=True, exist_ok=True)
        self.handlers: Final = Handlers(load(file), FleetFolder(folder / "log.db"), place)
        standard = self.handlers.interpreter()
        self.context: Final = RunContext(
            self.handlers.fleet, uuid4().hex, self.handlers.folder, place, standard, self.handlers.tell
        )
        made = make(self.context) if make else standard
        mine = made if isinstance(made, Interpreter) else Interpreter.of(made)
        self.interpreter: Interpreter = mine.over(standard)
        brief, endless, board = at_work(self.handlers.fleet.plan)
        self.examples: Sequence[Example] = (
            Example(PrepareWorktree(), brief, "session", ends=True),
            Example(CheckOutWork("T1", 1), brief, "assignment", ends=True),
            Example(RunSession("do it", 0, 1, GRACE_MS), brief, "session", ends=True),
            Example(RunSession("do it for ever", 0, 1, GRACE_MS), endless, "session", under_way=self.under_way),
            Example(
                VerifyWork("T1", 1, (("echo", "yes"), ("test", "-d", ".")), 60_000), brief, "assignment", ends=True
            ),
            Example(
                VerifyWork("T2", 1, (("env", f"BENCH={folder}", *HANGS),), 600_000),
                endless,
                "assignment",
                under_way=self.under_way,
            ),
            Example(InspectWork("T1", 1), brief, "assignment", ends=True),
            Example(WatchBranch("T1", "c0ffee"), brief, "assignment", ends=True),
            Example(ParkWork("T1", 1, "T1"), brief, "assignment", ends=True),
            Example(MergeWork("T1", 1, "T1"), brief, "assignment", ends=True),
            *(Example(each, brief, "session") for each in (StorePrompt("do it"), IncrementSession(1))),
            *(Example(each, brief, "session") for each in (CancelSession(), ForceStopSession())),
            *(
                Example(each, brief, "session")
                for each in (WarnOfSilence(60_000, 120_000), InterruptSession(90_000), HoldTimeLimit(held=True))
            ),
            Example(SteerSession(1, "look"), brief, "session"),
            Example(LogFatal("no key"), brief, "session"),
            Example(
                DeliverNotification("people", 1, 0, Notification(NotificationKind.CLOSED, "T1 is closed", "T1")),
                board,
                "notifier:1",
                ends=True,
            ),
            *(Example(each, brief, "session") for each in (NotifyProcess("failed", "x"), NotifyProcess("started"))),
            *(Example(each, brief, "session") for each in (PauseTriggers(), ResumeTriggers())),
        )

    async def under_way(self) -> None:
        """Return when a command that hangs has begun all that it does: there are two that sleep."""
        while sum(name_of(pid) == b"sleep\n" for pid in processes_about(self.folder)) < len(HANGS[-1].split("&")):
            await checkpoint()

    async def look(self) -> object:
        """Return the notices to operators, the prompt, and the living processes; a prepared worktree may stay.

        Who is told the same once more, after a crash, knows no more than before.
        """
        prompt = self.handlers.folder.prompt("brief", 1)
        told = prompt.read_text() if prompt.exists() else "do it"
        return {*self.handlers.notices}, told, processes_about(self.folder)


def name_of(pid: int) -> bytes:
    """Return the name of a process that may have gone."""
    try:
        return proc.read_bytes(f"/proc/{pid}/comm")
    except OSError:
        return b""


def at_work(plan: fleet.Plan) -> list[Aggregate]:
    """Return the workers of a fleet when each is about to begin a session with a task, and the board."""
    world = World(fleet.system)
    for name, envelope in fleet.opening(plan, 0):
        world = taken(world, Input(name, envelope))
    names = sorted(name for name in world.aggregates if name.startswith("worker/"))
    while any(world.aggregates[name].record("session").state is not session.State.SPAWNING for name in names):
        while messages := world.next_messages():
            world = taken(world, next(iter(messages.values())))
        for each in [*world.choices()]:
            if isinstance(each.envelope.event, session.WorktreeReady | assignment.CheckedOut):
                world = taken(world, each)
    return [world.aggregates[name] for name in (*names, "board")]


def taken(world: World, given: Input) -> World:
    """Return the world after an input that is not refused."""
    came = world.step(given)
    assert not isinstance(came, Refusal), came
    return came[0]
