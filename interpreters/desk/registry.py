"""The fleets of this machine: each runner notes its log in a file of its user, so that all can be found.

The files are in ``$XDG_STATE_HOME/lifefold/fleets``, by default ``~/.local/state/lifefold/fleets``, one for each log. A
file stays when its runner has ended, because a fleet without a runner can wait for an operator, too. Whether the runner
lives is never believed: its pid, its start time and the boot identify it. The next runner removes the files of logs
that do not exist any more.
"""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.processes import ProcessIdentity, identify, is_alive
from lifefold.interpreters.processes.private import make_private, write_whole

ENTRY_BYTES: Final = 65_536
"""The most bytes that are read of a file."""

_NAME: Final = 24
"""The characters of a file's name."""


class Noted(msgspec.Struct, frozen=True):
    """A log with its last runner; ``began_ms`` is when that runner began, in Unix milliseconds."""

    log: str
    fleet: str
    source: str
    runner: ProcessIdentity
    began_ms: int

    @property
    def is_alive(self) -> bool:
        """Whether the runner lives."""
        return is_alive(self.runner)


def folder() -> Path:
    """Return the folder of the files."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return home / "lifefold" / "fleets"


def note(log: Path, fleet: str, source: Path) -> None:
    """Note that this process runs the fleet of a log. A folder that cannot be written is no error: a run goes on."""
    runner = identify(os.getpid())
    if runner is None:
        return
    real = os.path.realpath(log)
    noted = Noted(real, fleet, str(source), runner, time.time_ns() // 1_000_000)
    with suppress(OSError, RuntimeError):  # there may be no home
        make_private(folder())
        _remove_gone()
        write_whole(_file(real), msgspec.json.encode(noted).decode())


def found() -> tuple[Noted, ...]:
    """Return the logs that are noted and still exist; living runners first, then the latest first."""
    with suppress(OSError, RuntimeError):
        read = [each for file in folder().glob("*.json") if (each := _read(file)) is not None]
        there = [each for each in read if os.path.exists(each.log)]  # noqa: PTH110 - never raises
        return tuple(sorted(there, key=lambda each: (not each.is_alive, -each.began_ms)))
    return ()


def _file(log: str) -> Path:
    return folder() / f"{hashlib.sha256(os.fsencode(log)).hexdigest()[:_NAME]}.json"


def _read(file: Path) -> Noted | None:
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(ENTRY_BYTES), type=Noted)
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _remove_gone() -> None:
    for file in folder().glob("*.json"):
        known = _read(file)
        if known is None or not os.path.exists(known.log):  # noqa: PTH110 - never raises
            file.unlink(missing_ok=True)
