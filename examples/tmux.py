"""Agents in tmux: every session is a window that you can watch and type into. Replaces one activity, and its end.

It shows three things:

- an activity that outlives its runner and is found again
- an end that is certain before it is confirmed
- the two effects that belong to the same process

    lifefold run examples/tmux.toml
    tmux -L lifefold attach              (in another terminal; C-b s shows all sessions)

*Found again.* A session of tmux is named after the fleet, the log's run, the agent and its attempt. The server of tmux
keeps the session if the runner dies, and accepts no name twice. So no session is ever started twice.

*Ended with certainty.* Every process of a session has the session's name in its environment. To end a session, its
processes get TERM, then KILL. The end is reported when two checks in a row have found no process with that name. A
process that wipes its environment is not found, and without ``/proc`` (macOS) only the first process is.

The standard interpreter can do more. Its sessions have a lease, and end if their runner never comes back. A second
Ctrl-C kills its sessions. It keeps the whole output, and not only the lines that tmux remembers.
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
"""The environment variable that names the session of a process."""

OURS: Final = "@lifefold"
"""The tmux option that marks the window of a session; windows that a user opens beside it do not have it."""

KEEPER: Final = """
import json, os, signal, subprocess, sys
path, status = sys.argv[1:]
order, env = json.load(open(path)), json.load(open(path + ".env"))
os.unlink(path + ".env")
agent = subprocess.Popen(order["argv"], cwd=order["cwd"], env=env)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
code = agent.wait()
with open(status + ".new", "w") as file:
    file.write(str(code))
os.replace(status + ".new", status)
"""
"""The program that tmux starts, in Python: it starts the agent, and records how the agent ended.

A command and an environment may be longer than tmux accepts. And tmux 3.3 sometimes loses the exit status of a program.
"""

LINES: Final = 20_000
"""The number of lines of a session's output that tmux remembers."""

LOOK_S: Final = 0.1
"""The pause between two checks whether a process lives."""

TRIES: Final = 3
"""The number of tries of a start."""

LOOKS: Final = 2
"""The number of checks in a row that must find no process: a new process may start during one check."""


class Window(msgspec.Struct, frozen=True):
    """The names of a session: in tmux, and of its folder among the files of the log."""

    name: str
    folder: Path

    @property
    def order(self) -> Path:
        """The file with the command to be started; the started process is in ``started.json``."""
        return self.folder / "order.json"

    @property
    def status(self) -> Path:
        """The file with the end: an exit status, or the negative number of a signal."""
        return self.folder / "status"


class Tmux:
    """Runs the fleet's sessions in sessions of tmux, on a separate tmux server."""

    def __init__(self, context: RunContext, server: str = "lifefold") -> None:
        """Take the options of the fleet file; ``server`` is the name after tmux's ``-L``."""
        if shutil.which("tmux") is None:
            raise FileNotFoundError("there is no program tmux on PATH")
        self._server: Final = server
        self._context: Final = context

    @handles(RunSession)
    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Start the session or find it again, report its start, wait, and report its end; or clean it up."""
        window = self.window(context.origin, activity.attempt, begins=not context.resumed and not context.cleanup_only)
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
    async def cancel_session(self, _effect: CancelSession, context: EffectContext) -> None:
        """Ask a session to end. A repetition after a crash asks the same session, or none if it is over."""
        leader = await self._leader(self.window(context, context.within.record("session").attempt))
        if leader is not None:
            signal_group_if_ours(leader, signal.SIGTERM)

    @handles(ForceStopSession)
    async def force_stop_session(self, _effect: ForceStopSession, context: EffectContext) -> None:
        """Kill a session; the handler of its activity reports the end."""
        await self._kill(self.window(context, context.within.record("session").attempt))

    def window(self, context: EffectContext, attempt: int, *, begins: bool = False) -> Window:
        """Return the window of an agent's n-th session: no other session has it, in this log or in any other."""
        agent, run = context.within.key, self._context
        folder = run.folder.next_start(agent, attempt) if begins else run.folder.last_start(agent, attempt)
        return Window(f"{run.fleet.name}-{run.run}-{agent}-{attempt}", folder)

    async def _attended(self, window: Window, activity: RunSession, context: ActivityContext) -> Outcome:
        try:
            if not window.order.exists():
                with anyio.CancelScope(shield=True):  # an incomplete start could not be found again
                    await self._start(window, self._context.session(activity, context.origin))
            if context.origin.entity.state is session.State.SPAWNING:
                await context.report(session.SessionStarted(activity.session_seq))
            with anyio.move_on_after(seconds_left(window, activity.timeout_ms)) as in_time:
                await death(await self._leader(window))
            if in_time.cancelled_caught:
                await self._end(window, activity.grace_ms)
                return session.Timeout()
            return await self._result(window)
        except (OSError, CalledProcessError) as error:
            await self._end(window, activity.grace_ms)
            stderr = error.stderr.decode(errors="replace").strip() if isinstance(error, CalledProcessError) else ""
            return session.Error(f"tmux: {stderr or error}")

    async def _start(self, window: Window, spec: SessionSpec) -> None:
        """Start a session of tmux. The order is on the disk before the start, and the process's identity right after.

        That record has lifefold's own format, so `lifefold status` looks for the process too.
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
        """Run a command of tmux, again if its server was just exiting: it exits with its last session."""
        for _ in range(TRIES - 1):
            try:
                return await self._tmux(*words, check=True)
            except CalledProcessError:
                await anyio.sleep(LOOK_S)
        return await self._tmux(*words, check=True)

    async def _result(self, window: Window) -> Outcome:
        """Keep the output of an ended session, and remove its remains."""
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
        """End a session, if there is one; return when no process of it remains."""
        leader = await self._leader(window)
        if leader is not None and signal_group_if_ours(leader, signal.SIGTERM):
            with anyio.move_on_after(grace_ms / 1_000):
                await death(leader)
        await self._kill(window)
        await self._tmux("kill-session", "-t", f"={window.name}")

    async def _kill(self, window: Window) -> None:
        """Kill every process of a session, until none is found."""
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
        # The runner may have died right after the start. tmux has the pid, which may be reused by now.
        pid = await self._ask(window, "#{pane_pid}")
        return identify(int(pid)) if pid and bears(int(pid), window.name) else None

    async def _ask(self, window: Window, what: str) -> str:
        """Return a format of tmux for a session's own window; empty if there is none."""
        of_ours = ("-f", f"#{{{OURS}}}", "-F", what)
        return (await self._tmux("list-panes", "-s", "-t", f"={window.name}", *of_ours)).strip()

    async def _tmux(self, *words: str, check: bool = False) -> str:
        command = ["tmux", "-L", self._server, "-f", os.devnull, *words]
        return (await anyio.run_process(command, check=check)).stdout.decode(errors="replace")


def write_order(window: Window, spec: SessionSpec) -> None:
    """Write the order, readable for this user only. The started program removes the environment from the disk."""
    make_private(window.folder)
    with open_private(window.order.with_name(f"{window.order.name}.env")) as environment:
        json.dump({**spec.env, MARK: window.name}, environment)
    with open_private(window.order) as order:
        json.dump({"argv": spec.argv, "cwd": spec.cwd}, order)


def record_of(leader: ProcessIdentity, spec: SessionSpec) -> SessionStart:
    """Return the record of a start. There is no shim here: the leader is entered instead."""
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
    """Return the remaining time of a session, counted from its start, also under another runner."""
    start = read_start(window.folder)
    return None if timeout_ms is None or start is None else (start.at_ms + timeout_ms) / 1_000 - time.time()


async def death(who: ProcessIdentity | None) -> None:
    """Return when a process is dead."""
    while who is not None and is_alive(who):  # noqa: ASYNC110 - another process sets no event here
        await anyio.sleep(LOOK_S)


def bears(pid: int, name: str) -> bool:
    """Tell whether a process has the mark of a session."""
    try:
        return f"{MARK}={name}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it is dead, or belongs to another user
        return False


def bearers(name: str) -> list[ProcessIdentity]:
    """Return the living processes with the mark of a session."""
    found = [identify(int(folder.name)) for folder in Path("/proc").glob("[0-9]*")]
    return [who for who in found if who is not None and bears(who.pid, name)]
