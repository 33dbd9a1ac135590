"""What agents and services wait for, as their runner found it, for commands in other terminals.

The waits are in a file beside the log, not in the log: every try observes them again, and no rule depends on them. For
example a merge waits for local changes of a user. The file is replaced as a whole, and each run begins without one.
After a killed runner the file stays, and shows its age.
"""

import contextlib
import time
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.processes.private import write_whole
from lifefold.interpreters.worktrees.aside import read_regular


class Wait(msgspec.Struct, frozen=True):
    """An agent or service that waits: ``said`` is ``waits to merge T3: ...``. Times are Unix milliseconds.

    The wait began at ``since_ms``, and was last observed at ``seen_ms``.
    """

    agent: str
    said: str
    since_ms: int
    seen_ms: int


class Waits:
    """The waits of agents and services, kept in a file; without a file, in this process only."""

    def __init__(self, file: Path | None = None) -> None:
        """Begin empty; the file of an earlier run stays until the first change."""
        self._file: Final = file
        self._found: Final[dict[tuple[str, str], Wait]] = {}

    @property
    def present(self) -> tuple[Wait, ...]:
        """The waits of now."""
        return tuple(self._found.values())

    def seen(self, agent: str, what: str, said: str) -> bool:
        """Record that an agent waits to do ``what``, for the reason ``said``; return whether that is new."""
        before, now_ms = self._found.get((agent, what)), time.time_ns() // 1_000_000
        since_ms = now_ms if before is None else before.since_ms
        self._found[agent, what] = Wait(agent, said, since_ms, now_ms)
        self._keep()
        return before is None or before.said != said

    def over(self, agent: str, what: str) -> None:
        """Record that the agent does not wait for this any more."""
        if self._found.pop((agent, what), None) is not None:
            self._keep()

    def begin(self) -> None:
        """Remove the waits of an earlier run."""
        self._found.clear()
        self._keep()

    def _keep(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # the runner shows the wait on its own screen, too
            if self._found:
                write_whole(self._file, msgspec.json.encode(list(self._found.values())).decode())
            else:
                self._file.unlink(missing_ok=True)


WAITS_BYTES: Final = 16_777_216
"""The most bytes read of the file."""


def read_waits(file: Path) -> tuple[Wait, ...]:
    """Return the waits of a run; empty if the file is missing or unreadable."""
    try:
        return msgspec.json.decode(read_regular(file, WAITS_BYTES), type=tuple[Wait, ...])
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
