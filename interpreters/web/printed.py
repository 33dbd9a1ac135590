"""The files of a session as text: what it has printed, decoded by its adapter, and its prompt.

All of it was written by agents. So only the end of a large file is read, and no name leaves the folder of the fleet. A
file that is no plain file is passed over.
"""

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.adapters import Now, adapter_or_command
from lifefold.interpreters.desk.output_lines import OutputLine, OutputReader
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.fleet_runner.session_facts import status_of
from lifefold.interpreters.processes import SessionError, read_exit, read_order
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.processes.shim.durable import OUTPUT

MOST_BYTES: Final = 200_000
"""The most bytes of the end of an output that are read."""

MOST_LINES: Final = 400
"""The most lines of an output on a page."""

_MINUTE_S: Final = 60

_MOST_DIGITS: Final = 6
"""The most digits of the number of a session: a longer name is no session's."""


def end_of(file: Path, most: int = MOST_BYTES) -> tuple[bytes, bool]:
    """Return the end of a plain file, and whether something before it was left out; nothing if it is not readable."""
    with contextlib.suppress(OSError):
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as opened:
            found = os.fstat(number)
            if stat.S_ISREG(found.st_mode):
                opened.seek(max(0, found.st_size - most))
                return opened.read(most), found.st_size > most
    return b"", False


def sessions_of(folder: FleetFolder, agent: str) -> tuple[int, ...]:
    """Return the numbers of an agent's sessions that have a folder, the first one first."""
    with contextlib.suppress(OSError):
        names = [each.name for each in folder.session(agent, 1).parent.iterdir()]
        return tuple(sorted(int(each) for each in names if each.isdecimal() and len(each) <= _MOST_DIGITS))
    return ()


def text_of(file: Path, secrets: Secrets) -> str:
    """Return the end of a text file without secrets and control characters."""
    return plain(secrets.hidden(end_of(file)[0].decode("utf-8", "replace")).encode("utf-8", "replace"))


def printed_by(folder: FleetFolder, agent: str, session: int, secrets: Secrets) -> tuple[tuple[OutputLine, ...], bool]:
    """Return the last lines of a session's output, and whether earlier ones were left out."""
    try:
        directory = folder.last_start(agent, session)
        order, ended = read_order(directory), read_exit(directory)
    except (SessionError, OSError):
        return (), False
    data, is_cut = end_of(directory / OUTPUT)
    if is_cut:
        data = data.partition(b"\n")[2]  # the rest of a line says nothing, or the wrong thing
    at_ms = time.time_ns() // 1_000_000 if ended is None else ended.at_ms
    now = Now(at_ms, time.localtime(at_ms // 1_000).tm_gmtoff // _MINUTE_S)
    reader = OutputReader(adapter_or_command("" if order is None else order.kind), lambda: now)
    lines = list(reader.take(0, data))
    if ended is not None:
        lines += reader.finish(status_of(ended))
    hidden = (msgspec.structs.replace(line, text=secrets.hidden(line.text)) for line in lines[-MOST_LINES:])
    return tuple(hidden), is_cut or len(lines) > MOST_LINES
