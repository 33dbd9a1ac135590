"""Noticing that no one has changed a log since the last transaction of its writer.

A writer verifies in each transaction what it relies on: its epoch, the anchor and the newest entry, and the newest
version of each stream. All of that is as it was written as long as SQLite has counted no change by another connection
(``PRAGMA data_version``), and none by this one (``total_changes``). So one query replaces the others then.
"""

import sqlite3
from collections.abc import Mapping
from typing import Final

MOST_STREAMS: Final = 10_000
"""The largest number of streams whose versions are kept."""


class Unchanged:
    """The counted changes of a log at the end of its writer's last transaction, and the versions known then."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Start without knowledge of the log."""
        self._connection: Final = connection
        self._others = -1
        self._own = -1
        self.versions: Final[dict[str, int]] = {}
        """The newest versions of streams. They are right if ``is_so`` was true in the present transaction."""

    def is_so(self) -> bool:
        """Tell whether nothing has changed since ``note``. Call it once, within the next transaction that writes."""
        (others,) = self._connection.execute("PRAGMA data_version").fetchone()
        found = (int(others), self._connection.total_changes) == (self._others, self._own)
        self._others, self._own = int(others), -1  # a transaction that fails leaves no knowledge
        if not found:
            self.versions.clear()
        return found

    def note(self, versions: Mapping[str, int]) -> None:
        """Note the end of that transaction, with the newest versions of the streams that it has looked up."""
        self._own = self._connection.total_changes
        self.versions.update(versions)
        if len(self.versions) > MOST_STREAMS:
            self.versions.clear()
