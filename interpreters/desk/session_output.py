"""The output of one session on the disk, read as it grows and decoded by the adapter with which the session began."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.adapters import Now
from lifefold.interpreters.desk.history import SessionRecord
from lifefold.interpreters.desk.output_lines import OutputLine, OutputReader
from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.follower import PIECE_BYTES
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.fleet_runner.session_facts import adapter_of_start, status_of
from lifefold.interpreters.fleet_runner.variables import secrets_of
from lifefold.interpreters.processes import SessionError, SessionExit, is_alive, read_exit, read_order, read_start
from lifefold.interpreters.processes.growing_output import GrowingOutput
from lifefold.interpreters.store import LogStore

_MINUTE_S: Final = 60


class SessionOutput:
    """The output of a session, from its beginning on; each call of ``read`` goes on where the last one ended."""

    def __init__(self, folder: FleetFolder, record: SessionRecord, secrets: Secrets) -> None:
        """Take the session; its texts are shown without the ``secrets``."""
        self.record: Final = record
        self.directory: Final = folder.last_start(record.agent, record.number)
        self.path: Final = folder.output(record.agent, record.number)
        order = read_order(self.directory)
        self.kind: Final = "" if order is None else order.kind
        self.is_over = False
        self._at_ms = 0
        self._secrets: Final = secrets
        self._output: Final = GrowingOutput(self.directory)
        self._reader: Final = OutputReader(adapter_of_start(self.directory), self._now)

    @property
    def is_there(self) -> bool:
        """Whether the session has an output."""
        return self.path.is_file()

    def read(self) -> Iterator[OutputLine]:
        """Yield the new lines, the end of the session as the last one; ``is_over`` is true after it."""
        ended = self._ended()
        self._at_ms = time.time_ns() // 1_000_000 if ended is None else ended.at_ms
        is_gone = ended is None and self._is_gone()  # both are found before the rest is read, so that nothing is missed
        for start, piece in self._pieces():
            for line in self._reader.take(start, piece):
                yield self._hidden(line)
        if ended is not None:
            self.is_over = True
            status = status_of(ended)
            for line in self._reader.finish(status, "" if status is not None else ended.message):
                yield self._hidden(line)
        elif is_gone:
            self.is_over = True
            yield OutputLine("end", "its process is gone, and its end is not recorded", is_bad=True)

    def raw(self) -> Iterator[bytes]:
        """Yield the new bytes as the session wrote them; ``is_over`` is true after the last ones."""
        is_over = self._ended() is not None or self._is_gone()
        for start, piece in self._pieces():
            self._reader.offset = start + len(piece)
            yield piece
        self.is_over = is_over

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        while True:
            start, piece = self._output.read(self._reader.offset, PIECE_BYTES)
            if not piece:
                return
            yield start, piece

    def _ended(self) -> SessionExit | None:
        try:
            return read_exit(self.directory)
        except (SessionError, OSError):
            return None

    def _is_gone(self) -> bool:
        """Tell whether neither the session nor its shim lives, so that no end will be recorded by itself."""
        try:
            start = read_start(self.directory)
        except (SessionError, OSError):
            return False
        return start is not None and not is_alive(start.agent) and not is_alive(start.shim)

    def _now(self) -> Now:
        return Now(self._at_ms, time.localtime(self._at_ms // 1_000).tm_gmtoff // _MINUTE_S)

    def _hidden(self, line: OutputLine) -> OutputLine:
        return msgspec.structs.replace(line, text=self._secrets.hidden(line.text))


def secrets_of_log(store: LogStore) -> Secrets:
    """Return the secrets of the fleet file of a log, and of this process; only the latter if the file is unreadable."""
    try:
        return secrets_of(load(Path(store.meta("source") or ""), watch=True), os.environ)
    except (FleetFileError, OSError):
        return Secrets(os.environ.items())
