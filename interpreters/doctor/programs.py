"""Agent programs on this machine: where they are, their versions, and whether a login can be seen.

A version comes from the program itself, by the adapter's ``version_argv``: with a time limit, and with bounded output.
A login is looked for by names and places alone, so nothing here says that a program is not logged in.
"""

import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from lifefold.interpreters.adapters import Adapter, Login, LoginFile, login_of
from lifefold.interpreters.adapters.adapter import Spoken
from lifefold.interpreters.doctor.finding import ProgramFinding, Verdict
from lifefold.interpreters.processes.command import Limits, plain, run

LIMITS: Final = Limits(timeout_ms=30_000, grace_ms=1_000, keep_bytes=4_096)
"""The longest time for a version, and the most bytes that are read of it."""

_VERSION: Final = re.compile(r"\b\d{1,9}\.\d{1,9}(?:\.\d{1,9})*(?:-[0-9A-Za-z.]{1,40})?\b")


class AgentProgram(msgspec.Struct, frozen=True):
    """A program to look for: its adapter, its name or path, the environment of its sessions, and who needs it.

    ``arguments`` are those with which it speaks a protocol. ``refuses`` says why the program accepts no session of
    these agents on this machine.
    """

    adapter: Adapter[Any]
    name: str
    env: Mapping[str, str]
    agents: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    refuses: str = ""

    @property
    def what(self) -> str:
        """The program in a report: the name of its adapter, and its agents."""
        return f"{self.adapter.name} ({', '.join(self.agents)})" if self.agents else self.adapter.name


async def examined(program: AgentProgram) -> ProgramFinding:
    """Return what was found of a program."""
    needed = bool(program.agents)
    path = shutil.which(program.name, path=program.env.get("PATH"))
    if path is None:
        found, remedy = f"there is no program {program.name}", "install it, or name its place by the key program"
        return ProgramFinding(program.what, Verdict.MISSING, found, remedy=remedy, needed=needed)
    version, trouble = await _version(program, path)
    if trouble:
        remedy = f"try it: {' '.join((path, *(program.arguments or program.adapter.version_argv[1:])))}"
        return ProgramFinding(program.what, Verdict.MISSING, trouble, path, remedy, needed=needed)
    if program.refuses:
        remedy = 'run lifefold as another user, or write permissions = "edit"'
        return ProgramFinding(program.what, Verdict.MISSING, program.refuses, path, remedy, needed=needed)
    is_tested = version in program.adapter.tested_versions
    tested = "tested" if is_tested else f"not tested (tested: {', '.join(program.adapter.tested_versions) or 'none'})"
    description = login_of(program.adapter)
    login = seen(description, program.env)
    return ProgramFinding(
        program.what,
        Verdict.OK if is_tested and login else Verdict.NOTE,
        f"{version or 'unknown version'}, {tested}; login: {login or _unseen(description)}",
        path,
        needed=needed,
        version=version,
        is_tested=is_tested,
        login=login,
    )


async def _version(program: AgentProgram, path: str) -> tuple[str, str]:
    """Return the version of a program, or else what went wrong.

    A program that speaks a protocol tells its name and its version in its first answer; it gets no prompt.
    """
    spoken = program.adapter if isinstance(program.adapter, Spoken) else None
    argv: tuple[str, ...] = (path, *program.adapter.version_argv[1:])
    if spoken is not None:
        argv = (sys.executable, "-P", "-m", spoken.client, path, "--describe", "--", *program.arguments)
    try:
        done = await run(argv, Path("/"), LIMITS, env=program.env)
    except (OSError, ValueError) as error:
        return "", f"{path} cannot be run: {error}"
    if done.status is None:
        return "", f"{path} tells no version within {LIMITS.timeout_ms // 1000} s"
    if spoken is not None:
        return _told(done.output, path)
    if done.status != 0:
        words = plain(done.errors or done.output).strip().splitlines()
        return "", f"{path} ends with status {done.status}{f': {words[-1][:200]}' if words else ''}"
    version = _VERSION.search(plain(done.output))
    return (version[0] if version else "", "")


class _Line(msgspec.Struct, frozen=True):
    """A line of a client: what the agent is, or why it did not tell."""

    acp: str = ""
    name: str = ""
    version: str = ""
    text: str = ""


def _told(output: bytes, path: str) -> tuple[str, str]:
    """Return the name and the version of an agent that speaks a protocol, or else what went wrong."""
    for text in output.splitlines():
        with suppress(msgspec.MsgspecError):
            line = msgspec.json.decode(text, type=_Line)
            if line.acp == "agent":
                return plain(f"{line.name} {line.version}".encode()), ""
            if line.acp == "failed":
                return "", plain(line.text.encode())
    return "", f"{path} does not say what it is"


def seen(login: Login, env: Mapping[str, str]) -> str:
    """Return a visible login: a variable that is set, or an existing file; empty without one."""
    variable = login.variable_of({name for name, value in env.items() if value})
    if variable:
        return f"{variable} is set"
    return next((f"{path} is there" for path in (_place(file, env) for file in login.files) if path.is_file()), "")


def _unseen(login: Login) -> str:
    return f"cannot tell; none is seen, and it may be in {login.elsewhere}" if login.elsewhere else "none is seen"


def _place(file: LoginFile, env: Mapping[str, str]) -> Path:
    """Return the path of a file with a login."""
    home = Path(env.get("HOME") or Path.home())
    named = env.get(file.variable, "") if file.variable else ""
    return (Path(named) if named else home / file.folder) / file.name
