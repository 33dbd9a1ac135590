"""The files of a fleet as text: what a session has printed, decoded by its adapter; its prompt; verifications.

All of it was written by agents. Only the end of a large file is read, names never leave the folder of the fleet, and a
file that is no plain file is passed over.
"""

import contextlib
import os
import shlex
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lifefold.interpreters.adapters import Adapter, Now
from lifefold.interpreters.cli.wording import moment
from lifefold.interpreters.desk.output_lines import OutputReader
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.session_facts import adapter_of_start, status_of
from lifefold.interpreters.processes import SessionError, read_exit, read_order
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.processes.shim.durable import OUTPUT
from lifefold.interpreters.web.structs import Printed, Verification

MOST_BYTES: Final = 200_000
"""The most bytes of the end of an output that are read."""

MOST_LINES: Final = 400
"""The most lines of an output on a page."""

MOST_CLAIMS: Final = 3
"""The latest claims whose verification is on a page."""

MOST_COMMANDS: Final = 20
"""The most commands of one verification on a page."""

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


def text_of(file: Path) -> str:
    """Return the end of a text file, with unprintable characters as escapes."""
    return plain(end_of(file)[0])


def sessions_of(folder: FleetFolder, agent: str) -> tuple[int, ...]:
    """Return the numbers of an agent's sessions that have a folder, the first one first."""
    with contextlib.suppress(OSError):
        names = [each.name for each in folder.session(agent, 1).parent.iterdir()]
        return tuple(sorted(int(each) for each in names if each.isdecimal() and len(each) <= _MOST_DIGITS))
    return ()


def printed_by(folder: FleetFolder, agent: str, session: int) -> tuple[tuple[Printed, ...], bool]:
    """Return the last lines of a session's output, and whether earlier ones were left out."""
    try:
        directory = folder.last_start(agent, session)
        adapter = adapter_of_start(directory)
    except (SessionError, OSError):
        return (), False
    data, is_cut = end_of(directory / OUTPUT)
    if is_cut:
        data = data.partition(b"\n")[2]  # the first line is torn
    lines = list(_decoded(adapter, data, directory))
    return tuple(lines[-MOST_LINES:]), is_cut or len(lines) > MOST_LINES


def _decoded(adapter: Adapter[Any], data: bytes, directory: Path) -> Iterator[Printed]:
    """Yield an output as the lines of ``lifefold output``, with the end of the session if it is over."""
    now_s = time.time()
    now = Now(int(now_s * 1_000), time.localtime(now_s).tm_gmtoff // _MINUTE_S)
    reader = OutputReader(adapter, lambda: now)
    with contextlib.suppress(SessionError, OSError):
        ended = read_exit(directory)
        found = (*reader.take(0, data), *(() if ended is None else reader.finish(status_of(ended))))
        for each in found:
            until = f", until {moment(each.until_ms)}" if each.until_ms else ""
            yield Printed(each.kind, f"{each.text}{until}")


def verifications(folder: FleetFolder, task: str, claims: int) -> Iterator[Verification]:
    """Yield the outputs of the commands that verified a task, the latest claim first."""
    for claim in range(claims, max(0, claims - MOST_CLAIMS), -1):
        try:
            places = sorted(each for each in folder.verification(task, claim).iterdir() if each.is_dir())
        except OSError:
            continue
        for place in places[:MOST_COMMANDS]:
            yield Verification(claim, _command(place), text_of(place / OUTPUT))


def _command(place: Path) -> str:
    """Return a command that has verified a claim, and how it ended."""
    order = read_order(place)
    words = place.name if order is None else shlex.join(order.argv)
    try:
        ended = read_exit(place)
    except (SessionError, OSError):
        ended = None
    if ended is None:
        return words
    return f"{words} {f'exited with {ended.code}' if ended.outcome == 'exited' else ended.message or ended.outcome}"
