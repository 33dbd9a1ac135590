"""The errors of the PostgreSQL store, and the translation of psycopg's errors into them."""

from pathlib import Path
from typing import Final

import psycopg
from psycopg import errors

from lifefold.interpreters.store.address import Address
from lifefold.interpreters.store.errors import NotAStore, Unreachable, Unwritable, damaged
from lifefold.interpreters.store.protocol import Busy, Full, StoreError

SAFE: Final = "nothing of this was acknowledged, and what was acknowledged before is safe"


def translated(path: Path, address: Address, error: psycopg.Error) -> StoreError:
    """Return the error of a store for one of psycopg. It names the log and its address, and has no password."""
    why = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, _MISSING):
        return damaged(path, why)
    for kind, made, what in _KINDS:
        if isinstance(error, kind):
            return made(f"{path}: {what.format(address=address)} ({why}); nothing of this was written yet")
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return NotAStore(f"the address {address} cannot be used: {why}")
    if isinstance(error, psycopg.OperationalError) and _is_lost(error):
        return Unreachable(f"{path}: {address} cannot be reached ({why}); {SAFE}")
    return StoreError(f"{path}: {why}; nothing of this was written, and what was written before is safe")


_MISSING: Final = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName)

_BUSY: Final = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)

_KINDS: Final[tuple[tuple[type[psycopg.Error] | tuple[type[psycopg.Error], ...], type[StoreError], str], ...]] = (
    (errors.InsufficientPrivilege, Unwritable, "this user may not do that on {address}"),
    (errors.ReadOnlySqlTransaction, Unreachable, "{address} is a standby, which cannot be written"),
    ((errors.DiskFull, errors.OutOfMemory), Full, "the server {address} has no room"),
    (_BUSY, Busy, "another program keeps the log busy on {address}"),
    (errors.QueryCanceled, Busy, "{address} has ended the statement"),
)
"""psycopg's errors, the errors of a store for them, and their sentences."""


def _is_lost(error: psycopg.OperationalError) -> bool:
    """Tell whether an error means that there is no server, no connection, or none for now."""
    state = error.sqlstate
    return state is None or state.startswith(("08", "57P")) or state == "53300"
