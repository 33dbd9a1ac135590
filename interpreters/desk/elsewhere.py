"""Where the output of a session is that is not on this machine, and how the session ended by the log.

A host keeps the outputs of its own sessions. The log has the end of each, and a host says which sessions it has now.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from lifefold.interpreters.desk.history import RUNNING, SessionRecord
from lifefold.interpreters.desk.output_lines import OutputLine
from lifefold.interpreters.fleet_runner.hosts import Host

GOOD: Final = frozenset({"success", "suspended"})
"""The outcomes of a session that are no failure."""


def host_of(record: SessionRecord, hosts: Iterable[Host]) -> Host | None:
    """Return the host that has a session now; None if the session is over, or no host says so."""
    if record.ended_ms:
        return None
    there = (each for each in hosts if not each.is_lost)
    return next((each for each in there if record.agent in {one.agent for one in each.said.sessions}), None)


def where(record: SessionRecord, host: Host | None) -> str:
    """Return in a sentence, without a full stop, where the output of a session is that is not here."""
    folder = f"sessions/{record.agent}/{record.number:04d} of the files beside its log"
    if host is None:
        return f"no output of this session is on this machine; the host that has run it keeps it, in {folder}"
    return f"the output of this session is on the host {host.status.name}, machine {host.said.machine}, in {folder}"


def known(record: SessionRecord, host: Host | None) -> Iterator[OutputLine]:
    """Yield where the output is, and the end of the session that the log has."""
    yield OutputLine("elsewhere", where(record, host))
    if record.outcome != RUNNING:
        said = f"{record.outcome}: {record.reason}" if record.reason else record.outcome
        yield OutputLine("end", said, is_bad=record.outcome not in GOOD)
