"""What a session's run directory says: the order to start, the record of the start, and the record of the end."""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from lifefold.interpreters.processes.identity import ProcessIdentity
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.processes.shim import durable

Outcome = Literal["exited", "signalled", "timeout", "ended", "killed", "lease-expired", "spawn-failed", "lost"]
"""Why a session is over: it exited or died of a signal by itself; its time was over; it was asked to end (whether or
not it took SIGKILL in the end); it was to be killed at once; nobody renewed its lease; its command could not be
started; or its shim died too, and what became of it is not known."""

RECORD_BYTES: Final = 16_777_216
"""How much of a record is read."""

Record = TypeVar("Record", bound=msgspec.Struct)


class SessionError(Exception):
    """Something about a session's process could not be done."""


class SessionFileError(SessionError):
    """A file of a run directory is missing or does not say what it should."""


class LaunchError(SessionError):
    """The session was not started, and provably will not be."""


class ShimUnresponsiveError(SessionError):
    """The shim lives, but has not read its orders for so long that no more fit (stopped, or a frozen machine)."""


class SurvivorsError(SessionError):
    """Processes of a lost session live on although they were killed: try again later."""


class SessionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: ``argv`` directly and never through a shell, with ``env`` as its whole environment.

    ``cwd`` is made absolute. Output beyond ``output_limit_bytes`` is dropped from the middle. Whoever is to end gets
    SIGTERM and, ``grace_ms`` later, SIGKILL. ``generation`` is told back in the record of the start.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    generation: int | str
    timeout_ms: int | None = None
    grace_ms: int = 10_000
    output_limit_bytes: int = 16 * 1024 * 1024


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """``started.json``: the agent's process and its shim's. ``at_ms`` is the time of day, in ms of the epoch."""

    pid: int
    pgid: int
    start_time: int
    boot_id: str
    shim_pid: int
    shim_start_time: int
    at_ms: int
    generation: int | str

    @property
    def agent(self) -> ProcessIdentity:
        """The agent's process, which leads its group."""
        return ProcessIdentity(self.pid, self.start_time, self.boot_id)

    @property
    def shim(self) -> ProcessIdentity:
        """The shim's process."""
        return ProcessIdentity(self.shim_pid, self.shim_start_time, self.boot_id)

    @property
    def mark(self) -> str:
        """What the environment of each of the session's processes says in ``LIFEFOLD_SHIM``."""
        return f"{self.shim_pid}:{self.shim_start_time}:{self.boot_id}"


class SessionUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent and those of its children that it waited for used. ``maxrss_kib`` is at least the shim's own."""

    utime_ms: int
    stime_ms: int
    maxrss_kib: int


class SessionExit(msgspec.Struct, frozen=True, kw_only=True):
    """``exit.json``: how the session ended. It exists only when none of the session's processes lives.

    ``code`` or ``signal`` is set as the agent exited or died of a signal, ``message`` says for people what is not as it
    should be, ``at_ms`` is the time of day, in ms of the epoch. ``escaped`` are pids (a hundred at most) that had left
    the agent's process group and were signalled one by one.
    """

    outcome: Outcome
    at_ms: int
    code: int | None = None
    signal: int | None = None
    message: str = ""
    output_bytes: int = 0
    output_dropped_bytes: int = 0
    escaped: tuple[int, ...] = ()
    usage: SessionUsage | None = None


def read_start(directory: Path) -> SessionStart | None:
    """Read the record of the start; None if there is none, which proves that no agent ran (or that one still may)."""
    return _read(directory / durable.STARTED, SessionStart)


def read_exit(directory: Path) -> SessionExit | None:
    """Read the record of the end, if there is one."""
    return _read(directory / durable.EXIT, SessionExit)


def _read(path: Path, record: type[Record]) -> Record | None:
    try:
        return msgspec.json.decode(_contents(path), type=record)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise SessionFileError(f"{path} is not a record of ours ({error}): was it edited?") from error


def _contents(path: Path) -> bytes:
    """Return what a record says. An agent can put a pipe there, which keeps no runner waiting: it is no record."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SessionFileError(f"{path} is no file: was it replaced?")
        return file.read(RECORD_BYTES)


def write_exit(directory: Path, record: SessionExit) -> None:
    """Write the record of the end durably, in the shim's place. Only for who holds the directory's lock."""
    durable.write_durably(str(directory), durable.EXIT, msgspec.json.encode(record).decode())


def write_spec(directory: Path, spec: SessionSpec, *, lease_until_boot_ms: int | None) -> None:
    """Make the directory and write the order to start durably. Refuses (LaunchError) what could not be run anywhere.

    Of the environment it has the names. The values are on no disk: ``environment_of`` is what the shim is told of them.
    """
    if not spec.argv or any("\0" in text for text in (*spec.argv, *spec.env, *spec.env.values())):
        raise LaunchError(f"argv {spec.argv!r} must not be empty, and neither it nor the environment may hold a NUL")
    if not directory.is_dir():
        make_private(directory)
        durable.sync_directory(str(directory.parent))
    told = {
        "argv": list(spec.argv),
        "cwd": str(Path(spec.cwd).absolute()),
        "env": sorted(spec.env),
        "generation": spec.generation,
        "timeout_ms": spec.timeout_ms,
        "grace_ms": spec.grace_ms,
        "output_limit_bytes": spec.output_limit_bytes,
        "lease_until_boot_ms": lease_until_boot_ms,
    }
    # Not by msgspec, which refuses the surrogates that stand for bytes outside UTF-8 in paths and environments.
    temporary = f"{durable.SPEC}.{secrets.token_hex(8)}.tmp"
    try:
        durable.write_durably(str(directory), durable.SPEC, json.dumps(told), temporary)
    finally:
        with contextlib.suppress(FileNotFoundError):
            (directory / temporary).unlink()


def environment_of(spec: SessionSpec) -> bytes:
    """Return the variables of a session with their values, as the shim reads them from its standard input."""
    return json.dumps(dict(spec.env)).encode()  # not by msgspec: see above


def tail_lines(path: Path, size_bytes: int = 2048) -> str:
    """Read the end of a small log, for a message."""
    try:
        return _contents(path)[-size_bytes:].decode("utf-8", "replace").strip()
    except (FileNotFoundError, SessionFileError):
        return ""
