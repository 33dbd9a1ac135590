"""Agents in tmux: every session is a window that you can look into, and type into. Replaces one activity, and its end.

What it shows: an activity that outlives its runner and is found again; an end that is certain before it is confirmed;
the two effects that belong to the same process.

    lifefold run examples/tmux.toml
    tmux -L lifefold attach              (in another terminal; C-b s shows all sessions)

*Found again.* A session of tmux is named after the fleet, the log's run, the agent and its attempt. tmux keeps it
whatever becomes of the runner, and takes no name twice: so nothing is ever started twice.

*Ended with certainty.* Whatever is started in a session has its name in the environment. What is to end gets TERM, then
KILL, and its end is reported when twice in a row no process of that name was found. A process that wipes its
environment is not found, and without ``/proc`` (macOS) only the first one is.

What the standard interpreter has beyond this: a lease, so that sessions end if their runner never comes back; nobody is
killed here by a second Ctrl-C; an output that is kept whole, not just as many lines as tmux remembers.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final, TypeAlias

import anyio
import msgspec
from anyio import to_thread

from lifefold.core.lifecycles import session
from lifefold.effects import CancelSession, ForceStopSession, RunSession
from lifefold.interpreters.engine import ActivityContext, EffectContext, handles
from lifefold.interpreters.fleet_runner import RunContext
from lifefold.interpreters.processes import (
    ProcessIdentity,
    SessionSpec,
    SessionStart,
    identify,
    is_alive,
    read_start,
    signal_group_if_ours,
    signal_if_ours,
)
from lifefold.interpreters.processes.private import make_private, open_private

Outcome: TypeAlias = session.Success | session.Error | session.Timeout

MARK: Final = "LIFEFOLD_TMUX"
"""The environment variable that says to which session a process belongs."""

OURS: Final = "@lifefold"
"""The option that the window of a session has in tmux, and no other that somebody may open beside it."""

KEEPER: Final = """
import json, os, signal, subprocess, sys
order, status = sys.argv[1:]
told, env = json.load(open(order)), json.load(open(order + ".env"))
os.unlink(order + ".env")
agent = subprocess.Popen(told["argv"], cwd=told["cwd"], env=env)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
code = agent.wait()
with open(status + ".new", "w") as file:
    file.write(str(code))
os.replace(status + ".new", status)
"""
"""What tmux starts, a program in Python: it starts the agent, and writes down how that ended.

A command and an environment may be longer than what tmux lets itself be told; and of how a program ended tmux 3.3 loses
sight now and then.
"""

LINES: Final = 20_000
"""How much of what a session prints tmux remembers."""

LOOK_S: Final = 0.1
"""How often it is looked whether a process lives."""

TRIES: Final = 3
"""How often a start is tried."""

LOOKS: Final = 2
"""How often in a row no process of a session has to be found: one may be born behind the back of one look."""


class Window(msgspec.Struct, frozen=True):
    """A session's place: its name in tmux, and its folder among the files of the log."""

    name: str
    folder: Path

    @property
    def order(self) -> Path:
        """The file that says what was to be started; which process that was is in ``started.json``."""
        return self.folder / "order.json"

    @property
    def status(self) -> Path:
        """The file that says how it ended: an exit status, or the number of a signal, negative."""
        return self.folder / "status"


class Tmux:
    """Runs the fleet's sessions in sessions of tmux, on a server of tmux of their own."""

    def __init__(self, surroundings: RunContext, server: str = "lifefold") -> None:
        """Take the options of the fleet file; ``server`` is what tmux is told with ``-L``."""
        if shutil.which("tmux") is None:
            raise FileNotFoundError("there is no program tmux on PATH")
        self._server: Final = server
        self._surroundings: Final = surroundings

    @handles(RunSession)
    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Start the session or find it again, say that it runs, wait, say how it ended; or see to it that it does."""
        window = self.window(
            context.occasion, activity.attempt, begins=not context.resumed and not context.cleanup_only
        )
        try:
            if context.cleanup_only:
                await self._end(window, activity.grace_ms)
                return
            outcome = await self._attended(window, activity, context)
        except anyio.get_cancelled_exc_class():
            if context.ending:
                with anyio.CancelScope(shield=True):
                    await self._end(window, activity.grace_ms)
            raise
        await context.report(session.SessionExited(outcome))

    @handles(CancelSession)
    async def cancel_session(self, _effect: CancelSession, occasion: EffectContext) -> None:
        """Ask a session to end. Once more, after a crash, asks the same one, or nobody if that is over."""
        leader = await self._leader(self.window(occasion, occasion.within.record("session").attempt))
        if leader is not None:
            signal_group_if_ours(leader, signal.SIGTERM)

    @handles(ForceStopSession)
    async def force_stop_session(self, _effect: ForceStopSession, occasion: EffectContext) -> None:
        """Kill a session; who attends to it sees its end."""
        await self._kill(self.window(occasion, occasion.within.record("session").attempt))

    def window(self, occasion: EffectContext, attempt: int, *, begins: bool = False) -> Window:
        """Return the place of an agent's n-th session: no other session has it, in this log or in any other."""
        agent, around = occasion.within.key, self._surroundings
        folder = around.folder.next_start(agent, attempt) if begins else around.folder.last_start(agent, attempt)
        return Window(f"{around.fleet.name}-{around.run}-{agent}-{attempt}", folder)

    async def _attended(self, window: Window, activity: RunSession, context: ActivityContext) -> Outcome:
        try:
            if not window.order.exists():
                with anyio.CancelScope(shield=True):  # half a start would have to be found out about
                    await self._start(window, self._surroundings.session(activity, context.occasion))
            if context.occasion.entity.state is session.State.SPAWNING:
                await context.report(session.SessionStarted(activity.session_seq))
            with anyio.move_on_after(seconds_left(window, activity.timeout_ms)) as in_time:
                await death(await self._leader(window))
            if in_time.cancelled_caught:
                await self._end(window, activity.grace_ms)
                return session.Timeout()
            return await self._result(window)
        except (OSError, CalledProcessError) as error:
            await self._end(window, activity.grace_ms)
            said = error.stderr.decode(errors="replace").strip() if isinstance(error, CalledProcessError) else ""
            return session.Error(f"tmux: {said or error}")

    async def _start(self, window: Window, spec: SessionSpec) -> None:
        """Have tmux start a session. That it was to be is on the disk before, and which process it is right after.

        That record is lifefold's own, so that `lifefold status` looks for the process, too.
        """
        write_order(window, spec)
        keep = ("set-option", "-g", "remain-on-exit", "on", ";", "set-option", "-g", "history-limit", str(LINES), ";")
        new = ("new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", window.name, "-e", f"{MARK}={window.name}")
        program = (sys.executable, "-I", "-c", KEEPER, str(window.order), str(window.status), ";")
        ours = ("set-option", "-p", "-t", f"={window.name}:", OURS, "yes")
        pid = int(await self._begun("start-server", ";", *keep, *new, *program, *ours))
        leader = identify(pid) or ProcessIdentity(pid, 0, "")  # it may be dead already
        (window.folder / "started.json").write_bytes(msgspec.json.encode(record_of(leader, spec)))

    async def _begun(self, *words: str) -> str:
        """Have tmux do something, once more if it was just leaving: its server goes with its last session."""
        for _ in range(TRIES - 1):
            try:
                return await self._tmux(*words, check=True)
            except CalledProcessError:
                await anyio.sleep(LOOK_S)
        return await self._tmux(*words, check=True)

    async def _result(self, window: Window) -> Outcome:
        """Keep what a session that is over has printed, and remove what is left of it."""
        await self._kill(window)
        pane = await self._ask(window, "#{pane_id}")
        printed = await self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane) if pane else ""
        lines = [line.rstrip() for line in printed.splitlines() if line.strip() and not line.startswith("Pane is dead")]
        (window.folder / "output.log").write_text("\n".join([*lines, ""]))
        await self._tmux("kill-session", "-t", f"={window.name}")
        status = window.status.read_text() if window.status.exists() else "unknown"
        if status == "0":
            return session.Success()
        return session.Error(": ".join((f"exit status {status}", *lines[-1:])))

    async def _end(self, window: Window, grace_ms: int) -> None:
        """End a session, if there is one; return when nothing of it is left."""
        leader = await self._leader(window)
        if leader is not None and signal_group_if_ours(leader, signal.SIGTERM):
            with anyio.move_on_after(grace_ms / 1_000):
                await death(leader)
        await self._kill(window)
        await self._tmux("kill-session", "-t", f"={window.name}")

    async def _kill(self, window: Window) -> None:
        """Kill every process of a session, until none is found any more."""
        leader, looks = await self._leader(window), 0
        while looks < LOOKS:
            found = {*await to_thread.run_sync(bearers, window.name), *([leader] if leader else [])}
            killed = [who for who in found if signal_if_ours(who, signal.SIGKILL)]
            looks = 0 if killed else looks + 1
            await anyio.sleep(LOOK_S / 10)

    async def _leader(self, window: Window) -> ProcessIdentity | None:
        """Return a session's first process, if it lives."""
        start = read_start(window.folder)
        if start is not None:
            return start.agent if is_alive(start.agent) else None
        # The runner may have died right after the start. tmux says a number, which may be another's by now.
        pid = await self._ask(window, "#{pane_pid}")
        return identify(int(pid)) if pid and bears(int(pid), window.name) else None

    async def _ask(self, window: Window, what: str) -> str:
        """Return what tmux says of a session's own window; nothing if there is none."""
        of_ours = ("-f", f"#{{{OURS}}}", "-F", what)
        return (await self._tmux("list-panes", "-s", "-t", f"={window.name}", *of_ours)).strip()

    async def _tmux(self, *words: str, check: bool = False) -> str:
        command = ["tmux", "-L", self._server, "-f", os.devnull, *words]
        return (await anyio.run_process(command, check=check)).stdout.decode(errors="replace")


def write_order(window: Window, spec: SessionSpec) -> None:
    """Write down what is to be started, for this user alone. What tmux starts removes the environment from the disk."""
    make_private(window.folder)
    with open_private(window.order.with_name(f"{window.order.name}.env")) as environment:
        json.dump({**spec.env, MARK: window.name}, environment)
    with open_private(window.order) as order:
        json.dump({"argv": spec.argv, "cwd": spec.cwd}, order)


def record_of(leader: ProcessIdentity, spec: SessionSpec) -> SessionStart:
    """Return the record of a start. There is no shim here: the leader stands for it."""
    return SessionStart(
        pid=leader.pid,
        pgid=leader.pid,
        start_time=leader.start_time,
        boot_id=leader.boot_id,
        shim_pid=leader.pid,
        shim_start_time=leader.start_time,
        at_ms=time.time_ns() // 1_000_000,
        generation=spec.generation,
    )


def seconds_left(window: Window, timeout_ms: int | None) -> float | None:
    """Return how long a session may still take; it began when it was started, whoever attends to it now."""
    start = read_start(window.folder)
    return None if timeout_ms is None or start is None else (start.at_ms + timeout_ms) / 1_000 - time.time()


async def death(who: ProcessIdentity | None) -> None:
    """Return when a process is dead."""
    while who is not None and is_alive(who):  # noqa: ASYNC110 - another process sets no event of ours
        await anyio.sleep(LOOK_S)


def bears(pid: int, name: str) -> bool:
    """Tell whether a process bears the mark of a session."""
    try:
        return f"{MARK}={name}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it is gone, or another user's
        return False


def bearers(name: str) -> list[ProcessIdentity]:
    """Return the living processes that bear the mark of a session."""
    found = [identify(int(folder.name)) for folder in Path("/proc").glob("[0-9]*")]
    return [who for who in found if who is not None and bears(who.pid, name)]
