"""The files of a session's run directory: the order to start, the record of the start, and the record of the end."""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from lifefold.interpreters.processes.identity import ProcessIdentity
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.processes.shim import durable

Outcome = Literal["exited", "signalled", "timeout", "ended", "killed", "lease-expired", "spawn-failed", "lost"]
"""Why a session is over. It exited, or died of a signal, by itself; it timed out; it was asked to end, with or without
SIGKILL in the end. It was killed at once; its lease expired; its command could not be started. Or its shim died too,
and its end is unknown."""

RECORD_BYTES: Final = 16_777_216
"""The number of bytes that are read of a record."""

Record = TypeVar("Record", bound=msgspec.Struct)


class SessionError(Exception):
    """An operation on a session's process failed."""


class SessionFileError(SessionError):
    """A file of a run directory is missing or has wrong contents."""


class LaunchError(SessionError):
    """The session was not started, and provably will not start."""


class ShimUnresponsiveError(SessionError):
    """The shim lives, but its pipe of orders is full of unread ones: it is stopped, or the machine is frozen."""


class SurvivorsError(SessionError):
    """Processes of a lost session survive SIGKILL for now: try again later."""


class Fence(NamedTuple):
    """The time after which another host may have a session: it must not live then.

    ``until_boot_ms`` is a time of the clock since boot. The session is ended then, and killed ``grace_ms`` later.
    """

    until_boot_ms: int
    grace_ms: int


class SessionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The command of a session: ``argv``, run without a shell, with ``env`` as its whole environment.

    ``cwd`` is made absolute. Output beyond ``output_limit_bytes`` is dropped from the middle. A session that must end
    gets SIGTERM and, ``grace_ms`` later, SIGKILL. The record of the start repeats ``generation``. The order keeps
    ``kind``, the caller's word for the program, by which its output is read.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    generation: int | str
    timeout_ms: int | None = None
    grace_ms: int = 10_000
    output_limit_bytes: int = 16 * 1024 * 1024
    kind: str = ""


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
        """The value of ``LIFEFOLD_SHIM`` in the environment of each of the session's processes."""
        return f"{self.shim_pid}:{self.shim_start_time}:{self.boot_id}"


class SessionUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the agent and of the children that it waited for. ``maxrss_kib`` is at least that of the shim."""

    utime_ms: int
    stime_ms: int
    maxrss_kib: int


class SessionExit(msgspec.Struct, frozen=True, kw_only=True):
    """``exit.json``: how the session ended. It exists only when none of the session's processes lives.

    ``code`` is set if the agent exited, ``signal`` if it died of one. ``message`` explains an unusual end to operators.
    ``at_ms`` is the time of day, in ms of the epoch. ``escaped`` are pids (a hundred at most) outside the agent's
    process group, which were signalled one by one.
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
    """Read the record of the start; None if there is none. Without a record no agent has run yet."""
    return _read(directory / durable.STARTED, SessionStart)


def read_exit(directory: Path) -> SessionExit | None:
    """Read the record of the end, if there is one."""
    return _read(directory / durable.EXIT, SessionExit)


class SessionOrder(msgspec.Struct, frozen=True):
    """The command of a session as it was begun; changes of the fleet file are for later sessions."""

    argv: tuple[str, ...]
    kind: str = ""
    cwd: str = ""


def read_order(directory: Path) -> SessionOrder | None:
    """Return the order to start a session; None if it cannot be read."""
    try:
        return msgspec.json.decode(_contents(directory / durable.SPEC), type=SessionOrder)
    except (OSError, SessionFileError, *_UNREADABLE):
        return None


def _read(path: Path, record: type[Record]) -> Record | None:
    try:
        return msgspec.json.decode(_contents(path), type=record)
    except FileNotFoundError:
        return None
    except _UNREADABLE as error:
        raise SessionFileError(f"{path} is no record of a session ({error}): was it edited?") from error


def _contents(path: Path) -> bytes:
    """Return the contents of a record. A pipe that an agent has put there is refused, and does not block the runner."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SessionFileError(f"{path} is no file: was it replaced?")
        return file.read(RECORD_BYTES)


def write_exit(directory: Path, record: SessionExit) -> None:
    """Write the record of the end durably, instead of the shim. The caller holds the directory's lock."""
    durable.write_durably(str(directory), durable.EXIT, msgspec.json.encode(record).decode())


def write_spec(
    directory: Path, spec: SessionSpec, *, lease_until_boot_ms: int | None, fence: Fence | None = None
) -> None:
    """Make the directory and write the order to start durably. Raises LaunchError for a command that cannot be run.

    The order has only the names of the variables. Their values are on no disk: the shim gets ``environment_of``.
    """
    if not spec.argv or any("\0" in text for text in (*spec.argv, *spec.env, *spec.env.values())):
        raise LaunchError(f"argv {spec.argv!r} must not be empty, and neither it nor the environment may hold a NUL")
    if not directory.is_dir():
        make_private(directory)
        durable.sync_directory(str(directory.parent))
    order = {
        "argv": list(spec.argv),
        "cwd": str(Path(spec.cwd).absolute()),
        "env": sorted(spec.env),
        "generation": spec.generation,
        "kind": spec.kind,
        "timeout_ms": spec.timeout_ms,
        "grace_ms": spec.grace_ms,
        "output_limit_bytes": spec.output_limit_bytes,
        "lease_until_boot_ms": lease_until_boot_ms,
        "fence": None if fence is None else fence._asdict(),
    }
    # Not by msgspec, which refuses the surrogates that stand for bytes outside UTF-8 in paths and environments.
    temporary = f"{durable.SPEC}.{secrets.token_hex(8)}.tmp"
    try:
        durable.write_durably(str(directory), durable.SPEC, json.dumps(order), temporary)
    finally:
        with contextlib.suppress(FileNotFoundError):
            (directory / temporary).unlink()


def environment_of(directory: Path, spec: SessionSpec) -> bytes:
    """Return the variables of a session with their values, in the form that the shim reads from standard input.

    One of them names the directory of the session.
    """
    named = {**spec.env, durable.PLACE_VARIABLE: str(directory.absolute())}
    return json.dumps(named).encode()  # not by msgspec: see above


def tail_lines(path: Path, size_bytes: int = 2048) -> str:
    """Read the end of a small log, for a message."""
    try:
        return _contents(path)[-size_bytes:].decode("utf-8", "replace").strip()
    except (FileNotFoundError, SessionFileError):
        return ""


_UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
"""The errors of decoding bytes that are no record: an agent can write any."""
