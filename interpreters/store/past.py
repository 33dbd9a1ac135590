"""A log as it was at one of its positions, for reading: it has no later entries, and no process writes it."""

from pathlib import Path

from lifefold.interpreters.store.log_store import LogStore
from lifefold.interpreters.store.opening import peek_log


class UnknownPosition(Exception):
    """A position that a log does not have; the message has those that it has."""


def log_at(path: Path, seq: int) -> LogStore:
    """Open a log until the entry at position ``seq``; its metadata is that of today.

    Raises ``UnknownPosition``, ``Busy``, ``NotAStore``.
    """
    store = peek_log(path)
    moment = store.time_of(seq)
    if moment is None:
        store.close()
        message = f"{path} has no position {seq}"
        raise UnknownPosition(message)
    store.past = (seq, moment)
    return store
