"""The errors of the PostgreSQL store, and the translation of psycopg's errors into them."""

from pathlib import Path
from typing import ClassVar, Final

import psycopg
from psycopg import errors

from lifefold.interpreters.store.errors import NotAStore, Unwritable, damaged
from lifefold.interpreters.store.postgres.address import Address
from lifefold.interpreters.store.protocol import Busy, Full, StoreError

SAFE: Final = "nothing of this was acknowledged, and what was acknowledged before is safe"


class Unreachable(StoreError):
    """The server gives no answer, or the connection is lost. A later try can succeed."""

    waits: ClassVar[str] = "waiting until it can be reached; the run goes on by itself then"
    """What a waiting writer logs."""


class OutcomeUnknown(Unreachable):
    """The connection was lost while a transaction was committed: it may be written as a whole, or not at all."""


class NotThere(NotAStore):
    """The database has no log of this name."""


def translated(path: Path, address: Address, error: psycopg.Error) -> StoreError:
    """Return the error of a store for one of psycopg. It names the log and its address, and has no password."""
    why = " ".join(str(error).split()) or type(error).__name__
    match error:
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName():
            return damaged(path, why)
        case errors.InsufficientPrivilege():
            return Unwritable(f"{path}: this user may not do that on {address} ({why}); nothing of this was written")
        case errors.ReadOnlySqlTransaction():
            return Unreachable(f"{path}: {address} is a standby, which cannot be written ({why}); {SAFE}")
        case errors.DiskFull() | errors.OutOfMemory():
            return Full(f"{path}: the server {address} has no room ({why}); nothing of this was written yet")
        case errors.LockNotAvailable() | errors.DeadlockDetected() | errors.SerializationFailure():
            return Busy(f"{path}: another program keeps the log busy ({why}); nothing of this was written yet")
        case errors.QueryCanceled():
            return Busy(f"{path}: {address} has ended the statement ({why}); nothing of this was written yet")
        case psycopg.ProgrammingError() if error.sqlstate is None:
            return NotAStore(f"the address {address} cannot be used: {why}")
        case psycopg.OperationalError() if _is_lost(error):
            return Unreachable(f"{path}: {address} cannot be reached ({why}); {SAFE}")
        case _:
            message = f"{path}: {why}; nothing of this was written, and what was written before is safe"
            return StoreError(message)


def _is_lost(error: psycopg.OperationalError) -> bool:
    """Tell whether an error means that there is no server, no connection, or none for now."""
    state = error.sqlstate
    return state is None or state.startswith(("08", "57P")) or state == "53300"
