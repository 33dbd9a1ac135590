"""What is in the way of a fleet's agents, as its runner found it: evidence for whoever asks from another terminal.

It stands in a file beside the log, and not in the log: whether a file of a person's is in the way of a merge is found
out again with every try, and nothing follows from it. The file is written as a whole, and a run begins without any. So
what a runner that was killed has left stays there with its age, and says no more than that.
"""

import contextlib
import time
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.fleet_runner.specs import write_whole
from lifefold.interpreters.worktrees.aside import read_regular


class Wait(msgspec.Struct, frozen=True):
    """What an agent, or a service, waits for: ``said`` is ``waits to merge T3: ...``. Times are Unix time.

    Something has been in the way since ``since_ms``, and at ``seen_ms`` it still was.
    """

    agent: str
    said: str
    since_ms: int
    seen_ms: int


class Waits:
    """Keeps what is in the way in a file; without one, for this process alone."""

    def __init__(self, file: Path | None = None) -> None:
        """Begin with nothing; what an earlier run has left in the file stays until something changes."""
        self._file: Final = file
        self._found: Final[dict[tuple[str, str], Wait]] = {}

    def seen(self, agent: str, what: str, said: str) -> bool:
        """Something is in the way of what an agent is to do; return whether that is news."""
        before, now_ms = self._found.get((agent, what)), time.time_ns() // 1_000_000
        since_ms = now_ms if before is None else before.since_ms
        self._found[agent, what] = Wait(agent, said, since_ms, now_ms)
        self._keep()
        return before is None or before.said != said

    def over(self, agent: str, what: str) -> None:
        """Nothing is in the way of that any more."""
        if self._found.pop((agent, what), None) is not None:
            self._keep()

    def begin(self) -> None:
        """Forget what an earlier run has left."""
        self._found.clear()
        self._keep()

    def _keep(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # people are told on the runner's own screen all the same
            if self._found:
                write_whole(self._file, msgspec.json.encode(list(self._found.values())).decode())
            else:
                self._file.unlink(missing_ok=True)


WAITS_BYTES: Final = 16_777_216
"""How much of the file is read."""


def read_waits(file: Path) -> tuple[Wait, ...]:
    """Return what a run has found in the way of its agents; nothing if nobody can read it."""
    try:
        return msgspec.json.decode(read_regular(file, WAITS_BYTES), type=tuple[Wait, ...])
    except (OSError, msgspec.DecodeError):
        return ()
