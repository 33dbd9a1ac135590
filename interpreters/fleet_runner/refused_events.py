"""The refused events of one run: late events, stale reports, messages for stopped agents (D12).

They are not in the log, because they have changed nothing. A file beside it has the first ones, a line each.
"""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from lifefold.core.kernel import Refusal
from lifefold.interpreters.processes.private import open_private

LIMIT: Final = 10_000
"""The most refused events that one run records; all are counted."""


class RefusedEvents:
    """Counts refused events by their kind, and records the first ones."""

    def __init__(self, path: Path) -> None:
        """Record the events in the file at ``path``."""
        self.counts: Final[Counter[str]] = Counter()
        self._path: Final = path

    def add(self, aggregate: str, refusal: Refusal) -> None:
        """Count and record a refusal."""
        self.counts[refusal.kind] += 1
        if self.counts.total() <= LIMIT:
            with suppress(OSError), open_private(self._path, "a") as file:
                file.write(_line(aggregate, refusal))


def _line(aggregate: str, refusal: Refusal) -> str:
    envelope = refusal.envelope
    entry = {
        "at_ms": envelope.at_ms,
        "aggregate": aggregate,
        "entity": envelope.entity,
        "event": type(envelope.event).__name__,
        "actor": envelope.actor,
        "kind": refusal.kind,
        "reason": refusal.reason,
    }
    return json.dumps(entry) + "\n"
