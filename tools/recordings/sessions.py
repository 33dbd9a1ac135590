"""Sessions of the real agent programs against a model service on loopback, through their adapters.

A session is a process of its own. Its output goes through the adapter line by line, as in a fleet. A session that
cannot end by itself gets a signal: the service tells when it hangs, or when the program tries again and again.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO, Final

import msgspec

import model_service
from cases import CASES, CHOSEN, LOST, TRIES, UNKNOWN, Case
from dialects import Served
from homes import MODELS, environment
from lifefold.interpreters.adapters import (
    Brief,
    Conversation,
    ConversationBegan,
    Cutter,
    Ended,
    Fact,
    Now,
    adapter_of,
    cut,
    remaining,
)
from lifefold.interpreters.adapters.adapter import beginning
from model_service import Service
from permission_server import NAME, TOOL, config

PATIENCE_S: Final = 240
"""The longest time of a session. It is generous, because a machine may be slow."""

GRACE_S: Final = 30
"""The longest time from SIGTERM to SIGKILL."""

PIECE_BYTES: Final = 1 << 16


class Session(msgspec.Struct, frozen=True):
    """A session that is over: its output, its facts with the end, and its exit status."""

    output: bytes
    status: int
    facts: tuple[Fact, ...]
    requests: int
    served: Served
    """How many requests the model service got, and what its answers have cost."""

    tools: frozenset[str] = frozenset()
    """The names of the tools that the model was offered."""

    @property
    def conversation(self) -> str:
        """The identifier of the conversation; empty if none was named."""
        return next((each.id for each in self.facts if isinstance(each, ConversationBegan)), "")

    @property
    def end(self) -> Ended:
        """The end of the session."""
        end = self.facts[-1]
        assert isinstance(end, Ended)
        return end


class _Reader:
    """Reads the output of a process in a thread: the bytes, and the facts of the adapter."""

    def __init__(self, command: "Command", pipe: IO[bytes], service: Service) -> None:
        self.output = b""
        self.facts = list[Fact]()
        self.is_over = False
        self._adapter: Final = adapter_of(command.program)
        self._state = beginning(self._adapter, tuple(map(str, command.argv)))
        self._pipe: Final = pipe
        self._service: Final = service
        self.thread: Final = Thread(target=self._read_all, daemon=True)
        self.thread.start()

    def finish(self, status: int) -> tuple[Fact, ...]:
        """Return all facts, with the end."""
        self.thread.join(GRACE_S)
        return (*self.facts, self._adapter.finish(self._state, status))

    def _read_all(self) -> None:
        cutter = Cutter()
        while piece := os.read(self._pipe.fileno(), PIECE_BYTES):
            self.output += piece
            cutter, lines = cut(cutter, piece)
            self._take(lines)
        self._take(remaining(cutter))
        self.is_over = True
        self._service.stuck.set()

    def _take(self, lines: tuple[bytes, ...]) -> None:
        for line in lines:
            self._state, facts = self._adapter.read(self._state, line, Now(int(time.time() * 1000)))
            self.facts.extend(facts)


class Command(msgspec.Struct, frozen=True):
    """The command of a session: its program, arguments, environment and folder."""

    program: str
    argv: tuple[str, ...]
    env: dict[str, str]
    work: Path


def run(command: Command, service: Service, ended_by: signal.Signals = signal.SIGTERM) -> Session:
    """Run a session to its end, and read it. A session that cannot end by itself gets a signal."""
    with subprocess.Popen(  # noqa: S603  # it runs the programs that are tested
        command.argv,
        cwd=command.work,
        env=command.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        reader = _Reader(command, process.stdout, service)
        service.stuck.wait(PATIENCE_S)
        status = _ended(process, None if reader.is_over else ended_by)
        facts = reader.finish(status)
    return Session(reader.output, status, facts, len(service.requests), service.served, frozenset(service.tools))


def _ended(process: subprocess.Popen[bytes], by: signal.Signals | None) -> int:
    """End the processes of a session, with this signal if they are stuck, and return the exit status."""
    if by is not None:
        os.killpg(process.pid, by)
    try:
        return process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


class Sandbox:
    """A repository and a home for the sessions of one program, and the sessions by their cases."""

    def __init__(self, program: str, folder: Path) -> None:
        """Make both in an empty folder."""
        self.program: Final = program
        self.folder: Final = folder
        self.home: Final = folder / "home"
        self.work: Final = folder / "repo"
        self.home.mkdir()
        git = ["git", "-C", str(self.work), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "init", "-q", self.work], check=True)  # noqa: S603, S607  # a new repository
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "start"], check=True)  # noqa: S603  # as above

    def case(self, name: str) -> Case:
        """Return a case of the program by its name."""
        return CASES[self.program][name]

    def chain(self, name: str, *, resets_at_s: int | None = None) -> dict[str, Session]:
        """Run the session of a case, and of the cases before it; return them by name, in order."""
        case = self.case(name)
        earlier = self.chain(case.after) if case.after else {}
        before = earlier[case.after].conversation if earlier else ""
        return {**earlier, name: self.session(case, before, resets_at_s=resets_at_s)}

    def session(
        self,
        case: Case,
        before: str = "",
        *,
        resets_at_s: int | None = None,
        ended_by: signal.Signals = signal.SIGTERM,
    ) -> Session:
        """Run the session of a case; ``before`` is the conversation of the case before it.

        A session that cannot end by itself gets the signal ``ended_by``.
        """
        (self.work / "made.txt").unlink(missing_ok=True)
        tries = TRIES.get(self.program, model_service.TRIES)
        with Service(case.mode, resets_at_s=resets_at_s, tries=tries) as service:
            env = environment(self.program, self.home, service.url, case.settings)
            argv = adapter_of(self.program).argv(self._brief(case), self._conversation(case, before))
            return run(Command(self.program, argv, env, self.work), service, ended_by)

    def _brief(self, case: Case) -> Brief:
        asked = (f"--mcp-config={config(case.asked)}",) if case.asked else ()
        return Brief(
            case.prompt,
            MODELS.get(self.program, ""),
            case.permissions,
            (*asked, *case.arguments),
            budget_microusd=case.budget_microusd,
            turns=case.turns,
            permission_tool=f"mcp__{NAME}__{TOOL}" if case.asked else "",
        )

    def _conversation(self, case: Case, before: str) -> Conversation | None:
        names = {"new": CHOSEN, "resumed": before, "lost": UNKNOWN.get(self.program, LOST)}
        return Conversation(names[case.conversation], case.conversation != "new") if case.conversation else None
